"""From loads to a plan: the sums, each written down as a line that can be checked on paper. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil

from kctl.capacity import arithmetic as sums
from kctl.capacity.cautions import cautions
from kctl.capacity.fields import BYTES, BYTES_PER_S, COUNT, MS, RATIO, SEEN, Inputs
from kctl.capacity.model import Bound, CapacityPlan, Losses, TopicPlan, Workload
from kctl.capacity.sheet import Sheet
from kctl.doctor.rules_sizes import CLEANER_BYTES_PER_KEY
from kctl.errors import Refused, UsageError

MOST_TOPICS = 100_000
MOST_PARTITIONS = 10_000_000  # as with brokers: what needs more is a slip of the pen


def plan(workloads: Sequence[Workload], cluster: Inputs, *, seen: Mapping[str, int] | None = None) -> CapacityPlan:
    """What the topics need together on one cluster.

    cluster: complete (kctl.capacity.workload.cluster_inputs). seen: what the cluster has now, for comparison. Raises
    UsageError for no topics, Refused for a load beyond any cluster.
    """
    if not workloads:
        raise UsageError("there is no topic to plan for")
    if len(workloads) > MOST_TOPICS:
        raise UsageError(f"{len(workloads):,} topics are more than {MOST_TOPICS:,}")
    factor = sums.growth_factor(cluster)
    loads = [sums.load_of(each.inputs, factor, each.present_partitions) for each in workloads]
    one = sums.carrying(cluster)
    given = cluster.get("brokers")
    brokers = int(given.value) if given else sums.fewest_brokers(loads, one)

    most = max(sums.partitions_of(load, brokers) for load in loads)
    if most > MOST_PARTITIONS:
        raise Refused(f"a topic needs more than {MOST_PARTITIONS:,} partitions", hint="is a unit wrong?")

    sheet = Sheet()
    for name, value in (seen or {}).items():
        sheet.fact(name, value, COUNT, SEEN)
    sheet.given(cluster)
    sheet.computed("growth_factor", RATIO, "times × (1 + growth) ^ years", factor)
    below = Sheet(sheet)  # what a topic's lines take from the cluster's
    below.fact("broker_count", brokers, COUNT, "computed")
    topics = [_topic(each, load, brokers, below) for each, load in zip(workloads, loads, strict=True)]
    bounds = _cluster(sheet, cluster, loads, one, brokers)
    made = CapacityPlan(
        broker_count=brokers,
        partition_count=sum(topic.partition_count for topic in topics),
        replica_count=sum(topic.partition_count * topic.replication_factor for topic in topics),
        disk_bytes=sum(topic.disk_bytes for topic in topics),
        bounds=bounds,
        terms=sheet.lines(keep=("survive",)),
        topic_plans=tuple(topics),
        cautions=(),
    )
    return replace(made, cautions=cautions(made, workloads, loads, cluster))


# --- a topic ------------------------------------------------------------------------------------------------------


def _topic(each: Workload, load: sums.Load, brokers: int, above: Sheet) -> TopicPlan:
    sheet = Sheet(above)
    inputs = each.inputs
    sheet.given(inputs)
    _rates(sheet, inputs, load)
    bounds = sums.partition_bounds(inputs, load.planned, load.kept)
    _kept(sheet, inputs, load)
    _partition_lines(sheet, inputs, bounds, load.present)
    partitions = sums.partitions_of(load, brokers)
    _partition_count(sheet, load, partitions)
    _disk_lines(sheet, load, partitions)
    oldest = _oldest(sheet, inputs, load, partitions)
    _network_lines(sheet, load)
    if "keys" in inputs:
        _cleaner_lines(sheet, partitions)
    factor, least = load.replication_factor, int(inputs["min_insync_replicas"].value)
    return TopicPlan(
        topic=each.topic,
        partition_count=partitions,
        replication_factor=factor,
        min_insync_replicas=least,
        partition_bytes=ceil(Fraction(sums.on_disk(load, partitions), partitions * factor)),
        disk_bytes=sums.on_disk(load, partitions),
        oldest_record_ms=oldest,
        bounds=_bounds(bounds),
        losses=tuple(Losses(down, *sums.survivable(factor, least, down)) for down in (0, 1)),
        terms=sheet.lines(keep=("min_insync_replicas",)),
    )


def _bounds(found: Mapping[str, int]) -> tuple[Bound, ...]:
    most = max(found.values())
    return tuple(Bound(name, least, binds=least == most) for name, least in found.items())


def _rates(sheet: Sheet, inputs: Inputs, load: sums.Load) -> None:
    if "messages" in inputs:
        sheet.computed("throughput", BYTES_PER_S, "messages × message_size", sums.throughput(inputs))
    if load.planned:
        sheet.computed("planned_throughput", BYTES_PER_S, "throughput × growth_factor", load.planned)
        sheet.computed("stored_rate", BYTES_PER_S, "planned_throughput ÷ compression_ratio", load.stored)


def _kept(sheet: Sheet, inputs: Inputs, load: sums.Load) -> None:
    if load.kept is None:
        return
    if "data" in inputs:
        formula = "data × growth_factor"
    elif "keys" in inputs:
        formula = "keys × growth_factor × message_size ÷ compression_ratio ÷ (1 − min_cleanable_ratio)"
        sheet.fact("min_cleanable_ratio", sums.MIN_CLEANABLE_RATIO, RATIO, "default")
    else:
        formula = "stored_rate × retention"
    sheet.computed("kept", BYTES, formula, load.kept)


def _partition_lines(sheet: Sheet, inputs: Inputs, bounds: Mapping[str, int], present: int | None) -> None:
    room = "max_partition_size" if "data" in inputs else "max_partition_size − segment_size"
    formulas = {
        "partitions_for_consumers": "⌈planned_throughput ÷ consumer_rate⌉",
        "partitions_for_producers": "⌈planned_throughput ÷ producer_rate⌉",
        "partitions_for_size": f"⌈kept ÷ ({room})⌉" if "−" in room else f"⌈kept ÷ {room}⌉",
    }
    for name, least in bounds.items():
        sheet.computed(name, COUNT, formulas[name], least)
    names = ", ".join(bounds)
    sheet.computed("partitions_needed", COUNT, f"max({names})" if len(bounds) > 1 else names, max(bounds.values()))
    if present is not None:
        sheet.fact("partitions_now", present, COUNT, SEEN)


def _partition_count(sheet: Sheet, load: sums.Load, partitions: int) -> None:
    if load.fixed is not None:
        formula = "partitions"
    elif load.present is not None and load.present >= load.least:
        formula = "partitions_now"
    else:
        formula = "⌈partitions_needed ÷ broker_count⌉ × broker_count"
    sheet.computed("partition_count", COUNT, formula, partitions)


def _disk_lines(sheet: Sheet, load: sums.Load, partitions: int) -> None:
    both = load.kept is not None and load.retention_bytes is not None
    by_size = "partition_count × retention_bytes"
    formula = f"min(kept, {by_size})" if both else "kept" if load.kept is not None else by_size
    sheet.computed("retained", BYTES, formula, sums.retained(load, partitions))
    total = "retained"
    if load.with_segments:
        full = "partition_count × segment_size"
        formula = f"min({full}, stored_rate × segment_time)" if load.stored else full
        sheet.computed("open_segments", BYTES, formula, sums.open_segments(load, partitions))
        total = "(retained + open_segments)"
    one = ceil(Fraction(sums.on_disk(load, partitions), partitions * load.replication_factor))
    sheet.computed("partition_bytes", BYTES, f"{total} ÷ partition_count", one)
    sheet.computed("disk_bytes", BYTES, f"{total} × replication_factor", sums.on_disk(load, partitions))


def _oldest(sheet: Sheet, inputs: Inputs, load: sums.Load, partitions: int) -> int | None:
    """min(fill, roll) + retention."""
    fill = sums.fill_ms(load, partitions)
    if fill is None or "retention" not in inputs:
        return None
    sheet.computed("fill_time", MS, "segment_size × partition_count ÷ stored_rate", fill)
    oldest = min(fill, load.segment_ms) + int(inputs["retention"].value)
    sheet.computed("oldest_record", MS, "min(fill_time, segment_time) + retention", oldest)
    return oldest


def _network_lines(sheet: Sheet, load: sums.Load) -> None:
    if load.stored:
        sheet.computed("network_in", BYTES_PER_S, "stored_rate × replication_factor", load.network_in)
        sheet.computed("network_out", BYTES_PER_S, "stored_rate × (groups + replication_factor − 1)", load.network_out)


def _cleaner_lines(sheet: Sheet, partitions: int) -> None:
    sheet.fact("cleaner_bytes_per_key", CLEANER_BYTES_PER_KEY, BYTES, "default")
    sheet.fact("cleaner_load", sums.CLEANER_LOAD, RATIO, "default")
    formula = "keys × growth_factor ÷ partition_count × cleaner_bytes_per_key ÷ cleaner_load"
    needed = sums.cleaner_bytes(sheet.value("keys"), sheet.value("growth_factor"), partitions)
    sheet.computed("cleaner_buffer", BYTES, formula, needed)


# --- the brokers --------------------------------------------------------------------------------------------------


def _cluster(
    sheet: Sheet, inputs: Inputs, loads: Sequence[sums.Load], one: sums.Carrying, brokers: int
) -> tuple[Bound, ...]:
    """The lines of the cluster; the bounds of its number of brokers."""
    found = sums.needed(loads, one, brokers)
    for name, unit, values in (
        ("disk_bytes", BYTES, [sums.on_disk(load, sums.partitions_of(load, brokers)) for load in loads]),
        ("network_in", BYTES_PER_S, [load.network_in for load in loads]),
        ("network_out", BYTES_PER_S, [load.network_out for load in loads]),
    ):
        if any(values) or one.network is not None:
            sheet.over_topics(name, unit, f"sum of {name}", values, sum(values))
    factors = [load.replication_factor for load in loads]
    sheet.over_topics("brokers_for_replicas", COUNT, "largest replication_factor", factors, max(factors))
    if one.disk is not None:
        total = "disk × disks_per_broker"
        sheet.computed("usable_disk", BYTES, f"{total} × (1 − headroom)", one.disk)
        bare = ceil(Fraction(sheet.value("disk_bytes")) / (sheet.value("disk") * sheet.value("disks_per_broker")))
        sheet.computed("brokers_without_headroom", COUNT, f"⌈disk_bytes ÷ ({total})⌉", bare)
        sheet.computed("brokers_for_disk", COUNT, "⌈disk_bytes ÷ usable_disk⌉ + survive", found["brokers_for_disk"])
    if "brokers_for_whole_partitions" in found:
        how = "largest ⌈partition_count × replication_factor ÷ ⌊usable_disk ÷ partition_bytes⌋⌉ + survive"
        whole = [sums.whole_partitions(load, one) for load in loads]
        sheet.over_topics("brokers_for_whole_partitions", COUNT, how, whole, max(whole))
    if one.network is not None:
        sheet.computed("usable_network", BYTES_PER_S, "network × network_limit", one.network)
        for way in ("in", "out"):
            name = f"brokers_for_network_{way}"
            sheet.computed(name, COUNT, f"⌈network_{way} ÷ usable_network⌉ + survive", found[name])
    most = max(found.values())
    if "brokers" not in inputs:
        if most < brokers:  # one broker less, and partitions as a multiple of those, would ask for more
            how = "the next number of which the partitions are a multiple and that carries them"
            sheet.over_topics("brokers_for_even_partitions", COUNT, how, [brokers], brokers)
            found["brokers_for_even_partitions"] = brokers
        formula = f"max({', '.join(found)})" if len(found) > 1 else next(iter(found))
        sheet.computed("broker_count", COUNT, formula, brokers)
    else:
        sheet.computed("broker_count", COUNT, "brokers", brokers)
    _shares(sheet, loads, one, brokers)
    return _bounds(found)


def _shares(sheet: Sheet, loads: Sequence[sums.Load], one: sums.Carrying, brokers: int) -> None:
    """What a broker has when all are there, and when as many as may be lost are."""
    replicas = [sums.partitions_of(load, brokers) * load.replication_factor for load in loads]
    how = "sum of partition_count × replication_factor"
    sheet.over_topics("replica_count", COUNT, how, replicas, sum(replicas))
    left = max(1, brokers - one.survive)
    sheet.computed("brokers_left", COUNT, "max(1, broker_count − survive)", left)
    for name, total, brokers_then in (("", brokers, "broker_count"), ("_left", left, "brokers_left")):
        each = ceil(Fraction(sum(replicas), total))
        sheet.computed(f"replicas_per_broker{name}", COUNT, f"⌈replica_count ÷ {brokers_then}⌉", each)
    for name, unit, amount in (
        ("disk", BYTES, "disk_bytes"),
        ("network_in", BYTES_PER_S, "network_in"),
        ("network_out", BYTES_PER_S, "network_out"),
    ):
        if not sheet.has(amount):
            continue
        whole = Fraction(sheet.value(amount))
        sheet.computed(f"{name}_per_broker", unit, f"{amount} ÷ broker_count", ceil(whole / brokers))
        sheet.computed(f"{name}_per_broker_left", unit, f"{amount} ÷ brokers_left", ceil(whole / left))
    if one.network is not None and sheet.has("disk_bytes"):
        spare = one.network - int(sheet.value("network_in_per_broker"))
        if spare > 0:
            formula = "disk_per_broker ÷ (usable_network − network_in_per_broker)"
            sheet.computed("refill_time", MS, formula, ceil(Fraction(sheet.value("disk_per_broker")) * 1000 / spare))
