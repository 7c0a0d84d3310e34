"""Build a plan from loads, with each calculation as a line that can be checked by hand. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil

from kctl.capacity import arithmetic
from kctl.capacity.fields import BYTES, BYTES_PER_S, COUNT, MS, RATIO, SEEN, Inputs
from kctl.capacity.model import Bound, CapacityPlan, Losses, TopicPlan, Workload
from kctl.capacity.plan_warnings import plan_warnings
from kctl.capacity.sheet import Sheet
from kctl.doctor.rules_sizes import CLEANER_BYTES_PER_KEY
from kctl.errors import Reason, Refused, UsageError

MAX_TOPICS = 100_000
MAX_PARTITIONS = 10_000_000  # far beyond any cluster; a plan that needs more contains a mistake


def plan(
    workloads: Sequence[Workload], cluster: Inputs, *, current_counts: Mapping[str, int] | None = None
) -> CapacityPlan:
    """Return the plan for topics that share one cluster.

    cluster: complete inputs (kctl.capacity.workload.cluster_inputs). current_counts: current numbers of the cluster,
    for comparison. Raises UsageError if there is no topic, and Refused for a load beyond any cluster.
    """
    if not workloads:
        raise UsageError("no topic to plan for")
    if len(workloads) > MAX_TOPICS:
        raise UsageError(f"{len(workloads):,} topics exceed the limit of {MAX_TOPICS:,}")
    factor = arithmetic.growth_factor(cluster)
    loads = [arithmetic.topic_load(each.inputs, factor, each.current_partitions) for each in workloads]
    capacity = arithmetic.broker_capacity(cluster)
    fixed_brokers = cluster.get("brokers")
    brokers = int(fixed_brokers.value) if fixed_brokers else arithmetic.fewest_brokers(loads, capacity)

    max_partitions = max(arithmetic.partitions_of(load, brokers) for load in loads)
    if max_partitions > MAX_PARTITIONS:
        raise Refused(
            f"a topic needs more than {MAX_PARTITIONS:,} partitions",
            hint="check the units",
            reason=Reason.LIMIT_EXCEEDED,
        )

    sheet = Sheet()
    for name, value in (current_counts or {}).items():
        sheet.add_value(name, value, COUNT, SEEN)
    sheet.add_inputs(cluster)
    sheet.add_computed("growth_factor", RATIO, "times × (1 + growth) ^ years", factor)
    shared = Sheet(sheet)  # cluster values that the lines of a topic use
    shared.add_value("broker_count", brokers, COUNT, "computed")
    topics = [_topic_plan(each, load, brokers, shared) for each, load in zip(workloads, loads, strict=True)]
    bounds = _cluster_lines(sheet, cluster, loads, capacity, brokers)
    result = CapacityPlan(
        broker_count=brokers,
        partition_count=sum(topic.partition_count for topic in topics),
        replica_count=sum(topic.partition_count * topic.replication_factor for topic in topics),
        disk_bytes=sum(topic.disk_bytes for topic in topics),
        bounds=bounds,
        terms=sheet.lines(keep=("survive",)),
        topic_plans=tuple(topics),
        cautions=(),
    )
    return replace(result, cautions=plan_warnings(result, workloads, loads, cluster))


# --- a topic ------------------------------------------------------------------------------------------------------


def _topic_plan(each: Workload, load: arithmetic.TopicLoad, brokers: int, above: Sheet) -> TopicPlan:
    sheet = Sheet(above)
    inputs = each.inputs
    sheet.add_inputs(inputs)
    _rate_lines(sheet, inputs, load)
    bounds = arithmetic.partition_bounds(inputs, load.planned, load.retained_limit)
    _retention_line(sheet, inputs, load)
    _partition_lines(sheet, inputs, bounds, load.current_partitions)
    partitions = arithmetic.partitions_of(load, brokers)
    _partition_count_line(sheet, load, partitions)
    _disk_lines(sheet, load, partitions)
    oldest = _oldest_record(sheet, inputs, load, partitions)
    _network_lines(sheet, load)
    if "keys" in inputs:
        _cleaner_lines(sheet, partitions)
    factor, min_isr = load.replication_factor, int(inputs["min_insync_replicas"].value)
    return TopicPlan(
        topic=each.topic,
        partition_count=partitions,
        replication_factor=factor,
        min_insync_replicas=min_isr,
        partition_bytes=ceil(Fraction(arithmetic.disk_bytes(load, partitions), partitions * factor)),
        disk_bytes=arithmetic.disk_bytes(load, partitions),
        oldest_record_ms=oldest,
        bounds=_bounds(bounds),
        losses=tuple(Losses(down, *arithmetic.survivable(factor, min_isr, down)) for down in (0, 1)),
        terms=sheet.lines(keep=("min_insync_replicas",)),
    )


def _bounds(bounds: Mapping[str, int]) -> tuple[Bound, ...]:
    largest = max(bounds.values())
    return tuple(Bound(name, bound, binds=bound == largest) for name, bound in bounds.items())


def _rate_lines(sheet: Sheet, inputs: Inputs, load: arithmetic.TopicLoad) -> None:
    if "messages" in inputs:
        sheet.add_computed("throughput", BYTES_PER_S, "messages × message_size", arithmetic.throughput(inputs))
    if load.planned:
        sheet.add_computed("planned_throughput", BYTES_PER_S, "throughput × growth_factor", load.planned)
        sheet.add_computed("stored_rate", BYTES_PER_S, "planned_throughput ÷ compression_ratio", load.stored)


def _retention_line(sheet: Sheet, inputs: Inputs, load: arithmetic.TopicLoad) -> None:
    if load.retained_limit is None:
        return
    if "data" in inputs:
        formula = "data × growth_factor"
    elif "keys" in inputs:
        formula = "keys × growth_factor × message_size ÷ compression_ratio ÷ (1 − min_cleanable_ratio)"
        sheet.add_value("min_cleanable_ratio", arithmetic.MIN_CLEANABLE_RATIO, RATIO, "default")
    else:
        formula = "stored_rate × retention"
    sheet.add_computed("kept", BYTES, formula, load.retained_limit)


def _partition_lines(sheet: Sheet, inputs: Inputs, bounds: Mapping[str, int], current_partitions: int | None) -> None:
    budget = "max_partition_size" if "data" in inputs else "max_partition_size − segment_size"
    formulas = {
        "partitions_for_consumers": "⌈planned_throughput ÷ consumer_rate⌉",
        "partitions_for_producers": "⌈planned_throughput ÷ producer_rate⌉",
        "partitions_for_size": f"⌈kept ÷ ({budget})⌉" if "−" in budget else f"⌈kept ÷ {budget}⌉",
    }
    for name, bound in bounds.items():
        sheet.add_computed(name, COUNT, formulas[name], bound)
    names = ", ".join(bounds)
    sheet.add_computed("partitions_needed", COUNT, f"max({names})" if len(bounds) > 1 else names, max(bounds.values()))
    if current_partitions is not None:
        sheet.add_value("partitions_now", current_partitions, COUNT, SEEN)


def _partition_count_line(sheet: Sheet, load: arithmetic.TopicLoad, partitions: int) -> None:
    if load.fixed_partitions is not None:
        formula = "partitions"
    elif load.current_partitions is not None and load.current_partitions >= load.min_partitions:
        formula = "partitions_now"
    else:
        formula = "⌈partitions_needed ÷ broker_count⌉ × broker_count"
    sheet.add_computed("partition_count", COUNT, formula, partitions)


def _disk_lines(sheet: Sheet, load: arithmetic.TopicLoad, partitions: int) -> None:
    has_both_limits = load.retained_limit is not None and load.retention_bytes is not None
    size_limit = "partition_count × retention_bytes"
    formula = (
        f"min(kept, {size_limit})" if has_both_limits else "kept" if load.retained_limit is not None else size_limit
    )
    sheet.add_computed("retained", BYTES, formula, arithmetic.retained_bytes(load, partitions))
    total = "retained"
    if load.adds_open_segments:
        full = "partition_count × segment_size"
        formula = f"min({full}, stored_rate × segment_time)" if load.stored else full
        sheet.add_computed("open_segments", BYTES, formula, arithmetic.open_segment_bytes(load, partitions))
        total = "(retained + open_segments)"
    per_partition = ceil(Fraction(arithmetic.disk_bytes(load, partitions), partitions * load.replication_factor))
    sheet.add_computed("partition_bytes", BYTES, f"{total} ÷ partition_count", per_partition)
    sheet.add_computed("disk_bytes", BYTES, f"{total} × replication_factor", arithmetic.disk_bytes(load, partitions))


def _oldest_record(sheet: Sheet, inputs: Inputs, load: arithmetic.TopicLoad, partitions: int) -> int | None:
    """Add and return the maximum age of a record: min(fill time, roll time) + retention."""
    fill = arithmetic.fill_ms(load, partitions)
    if fill is None or "retention" not in inputs:
        return None
    sheet.add_computed("fill_time", MS, "segment_size × partition_count ÷ stored_rate", fill)
    oldest = min(fill, load.segment_ms) + int(inputs["retention"].value)
    sheet.add_computed("oldest_record", MS, "min(fill_time, segment_time) + retention", oldest)
    return oldest


def _network_lines(sheet: Sheet, load: arithmetic.TopicLoad) -> None:
    if load.stored:
        sheet.add_computed("network_in", BYTES_PER_S, "stored_rate × replication_factor", load.network_in)
        sheet.add_computed(
            "network_out", BYTES_PER_S, "stored_rate × (groups + replication_factor − 1)", load.network_out
        )


def _cleaner_lines(sheet: Sheet, partitions: int) -> None:
    sheet.add_value("cleaner_bytes_per_key", CLEANER_BYTES_PER_KEY, BYTES, "default")
    sheet.add_value("cleaner_load", arithmetic.CLEANER_LOAD, RATIO, "default")
    formula = "keys × growth_factor ÷ partition_count × cleaner_bytes_per_key ÷ cleaner_load"
    buffer_bytes = arithmetic.cleaner_bytes(sheet.value("keys"), sheet.value("growth_factor"), partitions)
    sheet.add_computed("cleaner_buffer", BYTES, formula, buffer_bytes)


# --- the brokers --------------------------------------------------------------------------------------------------


def _cluster_lines(
    sheet: Sheet,
    inputs: Inputs,
    loads: Sequence[arithmetic.TopicLoad],
    capacity: arithmetic.BrokerCapacity,
    brokers: int,
) -> tuple[Bound, ...]:
    """Add the lines of the cluster and return the bounds of its number of brokers."""
    bounds = arithmetic.broker_bounds_for(loads, capacity, brokers)
    for name, unit, values in (
        ("disk_bytes", BYTES, [arithmetic.disk_bytes(load, arithmetic.partitions_of(load, brokers)) for load in loads]),
        ("network_in", BYTES_PER_S, [load.network_in for load in loads]),
        ("network_out", BYTES_PER_S, [load.network_out for load in loads]),
    ):
        if any(values) or capacity.network is not None:
            sheet.add_aggregate(name, unit, f"sum of {name}", values, sum(values))
    factors = [load.replication_factor for load in loads]
    sheet.add_aggregate("brokers_for_replicas", COUNT, "largest replication_factor", factors, max(factors))
    if capacity.disk is not None:
        total = "disk × disks_per_broker"
        sheet.add_computed("usable_disk", BYTES, f"{total} × (1 − headroom)", capacity.disk)
        without_headroom = ceil(
            Fraction(sheet.value("disk_bytes")) / (sheet.value("disk") * sheet.value("disks_per_broker"))
        )
        sheet.add_computed("brokers_without_headroom", COUNT, f"⌈disk_bytes ÷ ({total})⌉", without_headroom)
        sheet.add_computed(
            "brokers_for_disk", COUNT, "⌈disk_bytes ÷ usable_disk⌉ + survive", bounds["brokers_for_disk"]
        )
    if "brokers_for_whole_partitions" in bounds:
        description = "largest ⌈partition_count × replication_factor ÷ ⌊usable_disk ÷ partition_bytes⌋⌉ + survive"
        whole = [arithmetic.whole_partition_brokers(load, capacity) for load in loads]
        sheet.add_aggregate("brokers_for_whole_partitions", COUNT, description, whole, max(whole))
    if capacity.network is not None:
        sheet.add_computed("usable_network", BYTES_PER_S, "network × network_limit", capacity.network)
        for direction in ("in", "out"):
            name = f"brokers_for_network_{direction}"
            sheet.add_computed(name, COUNT, f"⌈network_{direction} ÷ usable_network⌉ + survive", bounds[name])
    largest = max(bounds.values())
    if "brokers" not in inputs:
        if largest < brokers:  # with fewer brokers, the rounded number of partitions would need more
            description = "the next number that holds partitions in multiples of it"
            sheet.add_aggregate("brokers_for_even_partitions", COUNT, description, [brokers], brokers)
            bounds["brokers_for_even_partitions"] = brokers
        formula = f"max({', '.join(bounds)})" if len(bounds) > 1 else next(iter(bounds))
        sheet.add_computed("broker_count", COUNT, formula, brokers)
    else:
        sheet.add_computed("broker_count", COUNT, "brokers", brokers)
    _per_broker_lines(sheet, loads, capacity, brokers)
    return _bounds(bounds)


def _per_broker_lines(
    sheet: Sheet, loads: Sequence[arithmetic.TopicLoad], capacity: arithmetic.BrokerCapacity, brokers: int
) -> None:
    """Add the load per broker when all brokers are up, and when `survive` brokers are down."""
    replicas = [arithmetic.partitions_of(load, brokers) * load.replication_factor for load in loads]
    description = "sum of partition_count × replication_factor"
    sheet.add_aggregate("replica_count", COUNT, description, replicas, sum(replicas))
    live_brokers = max(1, brokers - capacity.survive)
    sheet.add_computed("brokers_left", COUNT, "max(1, broker_count − survive)", live_brokers)
    for name, count, count_name in (("", brokers, "broker_count"), ("_left", live_brokers, "brokers_left")):
        each = ceil(Fraction(sum(replicas), count))
        sheet.add_computed(f"replicas_per_broker{name}", COUNT, f"⌈replica_count ÷ {count_name}⌉", each)
    for name, unit, amount in (
        ("disk", BYTES, "disk_bytes"),
        ("network_in", BYTES_PER_S, "network_in"),
        ("network_out", BYTES_PER_S, "network_out"),
    ):
        if not sheet.has(amount):
            continue
        total = Fraction(sheet.value(amount))
        sheet.add_computed(f"{name}_per_broker", unit, f"{amount} ÷ broker_count", ceil(total / brokers))
        sheet.add_computed(f"{name}_per_broker_left", unit, f"{amount} ÷ brokers_left", ceil(total / live_brokers))
    if capacity.network is not None and sheet.has("disk_bytes"):
        spare = capacity.network - int(sheet.value("network_in_per_broker"))
        if spare > 0:
            formula = "disk_per_broker ÷ (usable_network − network_in_per_broker)"
            sheet.add_computed(
                "refill_time", MS, formula, ceil(Fraction(sheet.value("disk_per_broker")) * 1000 / spare)
            )
