"""Warn about problems of a plan and about missing inputs. Each check is a generator of warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from kctl.base.text import counted
from kctl.base.units import format_duration
from kctl.capacity import arithmetic
from kctl.capacity.fields import BYTES, BYTES_PER_S, DEFAULT, MEASURED, Inputs
from kctl.capacity.model import CapacityPlan, PlanWarning, TopicPlan, Workload
from kctl.capacity.sheet import format_value
from kctl.doctor.rules_sizes import MAX_REPLICAS, MAX_REPLICAS_PER_BROKER

MAPS_PER_SEGMENT = 2  # the offset index and the time index (Kafka's documentation, "OS")
LINUX_MAPS = 65_530  # Linux default of vm.max_map_count
_LONG_LIVED = 2  # multiple of the retention that a record may live without a warning


def plan_warnings(
    plan: CapacityPlan, workloads: Sequence[Workload], loads: Sequence[arithmetic.TopicLoad], cluster: Inputs
) -> tuple[PlanWarning, ...]:
    """Return the warnings about the cluster, then about each topic. plan: without warnings."""
    warnings = [*_bounds(plan, cluster), *_rates(workloads, loads), *_replicas(plan, cluster)]
    warnings += [*_fullest(plan, cluster), *_maps(plan, loads, cluster)]
    for topic, each, load in zip(plan.topic_plans, workloads, loads, strict=True):
        warnings += [
            *_durability(topic, cluster),
            *_partitions(topic, each, load, cluster),
            *_times(topic, each),
        ]
    return tuple(warnings)


# --- the cluster --------------------------------------------------------------------------------------------------


def _bounds(plan: CapacityPlan, cluster: Inputs) -> Iterator[PlanWarning]:
    if "disk" not in cluster:
        yield PlanWarning("no_disk", "no disk size given: the plan does not consider disks (--disk)")
    if "network" not in cluster and any(
        term.name == "network_in" and term.value for topic in plan.topic_plans for term in topic.terms
    ):
        yield PlanWarning("no_network", "no network rate given: the plan does not consider the network (--network)")
    if "brokers" in cluster:
        for bound in plan.bounds:
            if bound.least > plan.broker_count:
                yield PlanWarning(
                    "too_few_brokers",
                    f"{plan.broker_count:,} brokers are too few: {bound.name} is {bound.least:,}",
                )


def _rates(workloads: Sequence[Workload], loads: Sequence[arithmetic.TopicLoad]) -> Iterator[PlanWarning]:
    rates = [each.inputs["consumer_rate"] for each, load in zip(workloads, loads, strict=True) if load.planned]
    for rate in dict.fromkeys(rates):
        rate_text = format_value(rate.value, BYTES_PER_S)
        if rate.source == DEFAULT:
            text = (
                f"consumer rate unknown, assuming {rate_text}: measure your consumer and set --consumer-rate, or"
                " use --measure, which measures how fast kctl reads without processing"
            )
            yield PlanWarning("consumer_rate_assumed", text)
        elif rate.source == MEASURED:
            text = (
                f"the measured consumer rate of {rate_text} is kctl's, which reads without processing: your consumer is"
                " slower, so set its rate with --consumer-rate"
            )
            yield PlanWarning("consumer_rate_measured", text)


def _replicas(plan: CapacityPlan, cluster: Inputs) -> Iterator[PlanWarning]:
    live_brokers = max(1, plan.broker_count - int(cluster["survive"].value))
    per_broker = -(-plan.replica_count // live_brokers)
    advice = "the recommended limit with ZooKeeper; KRaft supports more"
    if per_broker > MAX_REPLICAS_PER_BROKER:
        yield PlanWarning(
            "replicas_per_broker",
            f"{per_broker:,} replicas per broker (with {counted(plan.broker_count - live_brokers, 'broker')} down)"
            f" exceed {MAX_REPLICAS_PER_BROKER:,}: {advice}",
        )
    if plan.replica_count > MAX_REPLICAS:
        yield PlanWarning("replicas", f"{plan.replica_count:,} replicas exceed {MAX_REPLICAS:,}: {advice}")


def _fullest(plan: CapacityPlan, cluster: Inputs) -> Iterator[PlanWarning]:
    """Warn if the brokers have enough disk in total, but not for whole partitions.

    If even the total is too small, the warning `too_few_brokers` covers it.
    """
    if "disk" not in cluster:
        return
    survive = int(cluster["survive"].value)
    live_brokers = max(1, plan.broker_count - survive)
    disks = int(cluster["disk"].value * cluster["disks_per_broker"].value)
    sizes = [(each.disk_bytes, each.partition_count * each.replication_factor) for each in plan.topic_plans]
    max_held = arithmetic.fullest_broker(sizes, live_brokers)
    if plan.disk_bytes <= disks * live_brokers and max_held > disks:
        down = f" (with {counted(plan.broker_count - live_brokers, 'broker')} down)" if survive else ""
        yield PlanWarning(
            "fullest_broker",
            f"the fullest broker{down} can hold {format_value(max_held, BYTES)}, more than its"
            f" {format_value(disks, BYTES)} of disks: a partition cannot be split between brokers",
        )


def _maps(plan: CapacityPlan, loads: Sequence[arithmetic.TopicLoad], cluster: Inputs) -> Iterator[PlanWarning]:
    live_brokers = max(1, plan.broker_count - int(cluster["survive"].value))
    segments = sum(
        topic.partition_count * topic.replication_factor * -(-topic.partition_bytes // load.segment_size)
        for topic, load in zip(plan.topic_plans, loads, strict=True)
    )
    maps = -(-segments // live_brokers) * MAPS_PER_SEGMENT
    if maps > LINUX_MAPS:
        yield PlanWarning(
            "memory_maps",
            f"{maps:,} memory-mapped indexes per broker exceed the Linux default of {LINUX_MAPS:,}: raise"
            " vm.max_map_count",
        )


# --- a topic ------------------------------------------------------------------------------------------------------


def _durability(topic: TopicPlan, cluster: Inputs) -> Iterator[PlanWarning]:
    factor, min_isr = topic.replication_factor, topic.min_insync_replicas
    name, survive = topic.topic, int(cluster["survive"].value)
    if factor > 1 and min_isr > factor:
        text = f"min.insync.replicas {min_isr} exceeds the replication factor {factor}: Kafka treats it as {factor}"
        yield PlanWarning("min_insync_above_replicas", text, name)
    if "brokers" in cluster and factor > cluster["brokers"].value:
        brokers = cluster["brokers"].value
        text = f"replication factor {factor} exceeds the {brokers} brokers: the topic cannot be created"
        yield PlanWarning("replicas_above_brokers", text, name)
    writes, data = arithmetic.survivable(factor, min_isr, 0)
    if factor == 1:
        text = "replication factor 1: one broker down stops the topic, and a failed disk loses its data"
        yield PlanWarning("one_replica", text, name)
        return
    if survive > writes:
        text = (
            f"writes with acks=all survive the loss of {counted(writes, 'broker')}, not {survive}: replication factor"
            f" {factor} − min.insync.replicas {min(min_isr, factor)}"
        )
        yield PlanWarning("writes_stop", text, name)
    if survive > data:
        text = (
            f"acknowledged data is certain to survive only the loss of {counted(data, 'broker')}, not {survive}:"
            f" min.insync.replicas {min(min_isr, factor)} − 1"
        )
        yield PlanWarning("data_at_risk", text, name)


def _partitions(topic: TopicPlan, each: Workload, load: arithmetic.TopicLoad, cluster: Inputs) -> Iterator[PlanWarning]:
    max_size, name = int(each.inputs["max_partition_size"].value), topic.topic
    size = format_value(topic.partition_bytes, BYTES)
    if topic.partition_bytes > max_size:
        limit = format_value(max_size, BYTES)
        text = f"a partition holds {size}, more than {limit}: moving and recovering the partition takes a long time"
        yield PlanWarning("large_partition", text, name)
    if "disk" in cluster:
        disk = int(cluster["disk"].value * (1 - cluster["headroom"].value))
        if topic.partition_bytes > disk:
            usable = format_value(disk, BYTES)
            text = f"a partition holds {size}, more than the {usable} of a disk without its headroom"
            yield PlanWarning("partition_above_disk", text, name)
    if topic.partition_count < load.min_partitions:
        text = f"{topic.partition_count:,} partitions are fewer than the {load.min_partitions:,} needed"
        yield PlanWarning("too_few_partitions", text, name)
    if each.current_partitions is not None and topic.partition_count > each.current_partitions:
        text = (
            f"raising the partitions from {each.current_partitions:,} to {topic.partition_count:,} moves keys to other"
            " partitions"
        )
        yield PlanWarning("more_partitions", text, name)
    buffer = next((term.value for term in topic.terms if term.name == "cleaner_buffer"), 0)
    if buffer > arithmetic.CLEANER_BUFFER_BYTES:
        text = (
            f"compacting a partition in one pass needs log.cleaner.dedupe.buffer.size of {format_value(buffer, BYTES)};"
            f" with the default of {format_value(arithmetic.CLEANER_BUFFER_BYTES, BYTES)} it takes"
            f" {ceil(buffer / arithmetic.CLEANER_BUFFER_BYTES)} passes"
        )
        yield PlanWarning("cleaner_buffer", text, name)


def _times(topic: TopicPlan, each: Workload) -> Iterator[PlanWarning]:
    if topic.oldest_record_ms is None:
        return
    retention = int(each.inputs["retention"].value)
    if topic.oldest_record_ms >= _LONG_LIVED * retention:
        text = (
            f"records live up to {format_duration(topic.oldest_record_ms)}, not {format_duration(retention)}: Kafka"
            " deletes a segment when its newest record has expired"
        )
        yield PlanWarning("records_live_longer", text, topic.topic)
