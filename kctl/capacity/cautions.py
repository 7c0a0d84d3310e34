"""What is wrong with a plan, or what it does not know. Each rule is a function that yields cautions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from kctl.base.text import counted
from kctl.base.units import format_duration
from kctl.capacity import arithmetic as sums
from kctl.capacity.fields import BYTES, BYTES_PER_S, DEFAULT, MEASURED, Inputs
from kctl.capacity.model import CapacityPlan, Caution, TopicPlan, Workload
from kctl.capacity.sheet import shown
from kctl.doctor.rules_sizes import MOST_REPLICAS, MOST_REPLICAS_PER_BROKER

MAPS_PER_SEGMENT = 2  # the offset and the time index are mapped (Kafka's documentation, «OS»)
LINUX_MAPS = 65_530  # vm.max_map_count as Linux has it
_QUIET = 2  # records that live so many times as long as retention says


def cautions(
    plan: CapacityPlan, workloads: Sequence[Workload], loads: Sequence[sums.Load], cluster: Inputs
) -> tuple[Caution, ...]:
    """Of the whole first, then of each topic. plan: without cautions."""
    found = [*_bounds(plan, cluster), *_rates(workloads, loads), *_replicas(plan, cluster)]
    found += [*_fullest(plan, cluster), *_maps(plan, loads, cluster)]
    for topic, each, load in zip(plan.topic_plans, workloads, loads, strict=True):
        found += [
            *_durability(topic, cluster),
            *_partitions(topic, each, load, cluster),
            *_times(topic, each),
        ]
    return tuple(found)


# --- the cluster --------------------------------------------------------------------------------------------------


def _bounds(plan: CapacityPlan, cluster: Inputs) -> Iterator[Caution]:
    if "disk" not in cluster:
        yield Caution("no_disk", "the size of a broker's disks is not given: the plan has no bound by disk")
    if "network" not in cluster and any(
        term.name == "network_in" and term.value for topic in plan.topic_plans for term in topic.terms
    ):
        yield Caution("no_network", "the network of a broker is not given: the plan has no bound by network")
    if "brokers" in cluster:
        for bound in plan.bounds:
            if bound.least > plan.broker_count:
                yield Caution(
                    "too_few_brokers",
                    f"{plan.broker_count:,} brokers are too few: {bound.name} is {bound.least:,}",
                )


def _rates(workloads: Sequence[Workload], loads: Sequence[sums.Load]) -> Iterator[Caution]:
    rates = [each.inputs["consumer_rate"] for each, load in zip(workloads, loads, strict=True) if load.planned]
    for rate in dict.fromkeys(rates):
        said = shown(rate.value, BYTES_PER_S)
        if rate.source == DEFAULT:
            text = (
                f"what a consumer takes is not known, {said} is assumed: measure your own, or kctl's with --measure,"
                " which does nothing with what it reads"
            )
            yield Caution("consumer_rate_assumed", text)
        elif rate.source == MEASURED:
            text = (
                f"the {said} of a consumer are kctl's, which does nothing with what it reads: yours takes less, so give"
                " its own as --consumer-rate"
            )
            yield Caution("consumer_rate_measured", text)


def _replicas(plan: CapacityPlan, cluster: Inputs) -> Iterator[Caution]:
    left = max(1, plan.broker_count - int(cluster["survive"].value))
    each = -(-plan.replica_count // left)
    advice = "clusters with ZooKeeper are advised to stay below it, KRaft carries more"
    if each > MOST_REPLICAS_PER_BROKER:
        yield Caution(
            "replicas_per_broker",
            f"{each:,} replicas a broker, with {counted(plan.broker_count - left, 'broker')} lost, are more than"
            f" {MOST_REPLICAS_PER_BROKER:,}: {advice}",
        )
    if plan.replica_count > MOST_REPLICAS:
        yield Caution("replicas", f"{plan.replica_count:,} replicas are more than {MOST_REPLICAS:,}: {advice}")


def _fullest(plan: CapacityPlan, cluster: Inputs) -> Iterator[Caution]:
    """Of brokers that could carry all, if partitions could be cut. Where they could not, `too_few_brokers` tells it."""
    if "disk" not in cluster:
        return
    survive = int(cluster["survive"].value)
    left = max(1, plan.broker_count - survive)
    disks = int(cluster["disk"].value * cluster["disks_per_broker"].value)
    sizes = [(each.disk_bytes, each.partition_count * each.replication_factor) for each in plan.topic_plans]
    held = sums.fullest_broker(sizes, left)
    if plan.disk_bytes <= disks * left and held > disks:
        lost = f", with {counted(plan.broker_count - left, 'broker')} lost," if survive else ""
        yield Caution(
            "fullest_broker",
            f"the fullest broker{lost} can hold {shown(held, BYTES)}, more than its disks of {shown(disks, BYTES)}:"
            " a partition is on one broker as a whole",
        )


def _maps(plan: CapacityPlan, loads: Sequence[sums.Load], cluster: Inputs) -> Iterator[Caution]:
    left = max(1, plan.broker_count - int(cluster["survive"].value))
    segments = sum(
        topic.partition_count * topic.replication_factor * -(-topic.partition_bytes // load.segment_size)
        for topic, load in zip(plan.topic_plans, loads, strict=True)
    )
    maps = -(-segments // left) * MAPS_PER_SEGMENT
    if maps > LINUX_MAPS:
        yield Caution(
            "memory_maps",
            f"{maps:,} indexes a broker are mapped into memory: Linux allows {LINUX_MAPS:,} unless vm.max_map_count"
            " says more",
        )


# --- a topic ------------------------------------------------------------------------------------------------------


def _durability(topic: TopicPlan, cluster: Inputs) -> Iterator[Caution]:
    factor, least = topic.replication_factor, topic.min_insync_replicas
    name, survive = topic.topic, int(cluster["survive"].value)
    if factor > 1 and least > factor:
        text = f"min.insync.replicas {least} is more than the replication factor {factor}: {factor} is what counts"
        yield Caution("min_insync_above_replicas", text, name)
    if "brokers" in cluster and factor > cluster["brokers"].value:
        text = f"replication factor {factor} is more than the {cluster['brokers'].value} brokers: it cannot be created"
        yield Caution("replicas_above_brokers", text, name)
    writes, data = sums.survivable(factor, least, 0)
    if factor == 1:
        text = "replication factor 1: a broker that is down stops it, a disk that is lost takes its data along"
        yield Caution("one_replica", text, name)
        return
    if survive > writes:
        text = (
            f"writes with acks=all survive {writes} lost, not {survive}: replication factor {factor} −"
            f" min.insync.replicas {min(least, factor)}"
        )
        yield Caution("writes_stop", text, name)
    if survive > data:
        text = f"data survive {data} lost for certain, not {survive}: min.insync.replicas {min(least, factor)} − 1"
        yield Caution("data_at_risk", text, name)


def _partitions(topic: TopicPlan, each: Workload, load: sums.Load, cluster: Inputs) -> Iterator[Caution]:
    most, name = int(each.inputs["max_partition_size"].value), topic.topic
    size = shown(topic.partition_bytes, BYTES)
    if topic.partition_bytes > most:
        text = f"a partition holds {size}, more than {shown(most, BYTES)}: moving and recovering it takes long"
        yield Caution("large_partition", text, name)
    if "disk" in cluster:
        disk = int(cluster["disk"].value * (1 - cluster["headroom"].value))
        if topic.partition_bytes > disk:
            text = f"a partition holds {size}, and a disk {shown(disk, BYTES)} beside its headroom: it fits on none"
            yield Caution("partition_above_disk", text, name)
    if topic.partition_count < load.least:
        text = f"{topic.partition_count:,} partitions are fewer than the {load.least:,} that are needed"
        yield Caution("too_few_partitions", text, name)
    if each.present_partitions is not None and topic.partition_count > each.present_partitions:
        text = (
            f"it has {each.present_partitions:,} partitions now: with {topic.partition_count:,}, keys come into other"
            " partitions than before"
        )
        yield Caution("more_partitions", text, name)
    needed = next((term.value for term in topic.terms if term.name == "cleaner_buffer"), 0)
    if needed > sums.CLEANER_BUFFER_BYTES:
        text = (
            f"compacting a partition in one pass needs {shown(needed, BYTES)} of log.cleaner.dedupe.buffer.size, whose"
            f" default is {shown(sums.CLEANER_BUFFER_BYTES, BYTES)}: with that it takes"
            f" {ceil(needed / sums.CLEANER_BUFFER_BYTES)} passes"
        )
        yield Caution("cleaner_buffer", text, name)


def _times(topic: TopicPlan, each: Workload) -> Iterator[Caution]:
    if topic.oldest_record_ms is None:
        return
    retention = int(each.inputs["retention"].value)
    if topic.oldest_record_ms >= _QUIET * retention:
        text = (
            f"records live up to {format_duration(topic.oldest_record_ms)}, not {format_duration(retention)}: a segment"
            " is deleted as a whole, once its newest record is old enough"
        )
        yield Caution("records_live_longer", text, topic.topic)
