"""The sums themselves, in whole bytes: what partitions hold and how many brokers carry them. Pure.

Where a broker or a disk cannot be divided the result is rounded up, what it can carry is rounded down: a plan is never
too small because of rounding. Partitions cannot be divided either: see `brokers_for_whole_partitions` for a topic whose
number of them is given, `fullest_broker` for all topics together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from kctl.capacity.fields import MOST_BROKERS, Inputs, Number
from kctl.doctor.rules_sizes import CLEANER_BYTES_PER_KEY
from kctl.errors import Refused

CLEANER_LOAD = Fraction(9, 10)  # log.cleaner.io.buffer.load.factor
CLEANER_BUFFER_BYTES = 128 * 2**20  # log.cleaner.dedupe.buffer.size, of all threads together
MIN_CLEANABLE_RATIO = Fraction(1, 2)  # min.cleanable.dirty.ratio: so much may be waiting to be compacted


@dataclass(frozen=True, slots=True)
class Load:
    """A topic in numbers. planned, stored: bytes a second, as producers have them and as logs have them.

    kept: bytes of one copy that time, a given amount or keys let stay; None when only retention_bytes, of one
    partition, ends it. least: partitions that are needed, whatever the number of brokers. with_segments: `kept` is
    without the segments that are being written.
    """

    planned: int
    stored: int
    kept: int | None
    retention_bytes: int | None
    segment_size: int
    segment_ms: int
    with_segments: bool
    replication_factor: int
    groups: int
    least: int
    fixed: int | None
    present: int | None

    @property
    def network_in(self) -> int:
        """Bytes a second that arrive at brokers: at the leader, and at each follower."""
        return self.stored * self.replication_factor

    @property
    def network_out(self) -> int:
        """Bytes a second that leave brokers: to each group, and to each follower."""
        return self.stored * (self.groups + self.replication_factor - 1)


@dataclass(frozen=True, slots=True)
class Carrying:
    """What one broker carries: bytes on disk, bytes a second each way; None where nothing is said of it."""

    disk: int | None
    network: int | None
    survive: int


def growth_factor(inputs: Inputs) -> Fraction:
    """times × (1 + growth) ^ years."""
    return inputs["times"].value * (1 + Fraction(inputs["growth"].value)) ** int(inputs["years"].value)


def carrying(inputs: Inputs) -> Carrying:
    """What a broker carries with headroom left."""
    disk = network = None
    if "disk" in inputs:
        disk = floor(inputs["disk"].value * inputs["disks_per_broker"].value * (1 - inputs["headroom"].value))
    if "network" in inputs:
        network = floor(inputs["network"].value * inputs["network_limit"].value)
    return Carrying(disk, network, int(inputs["survive"].value))


def load_of(inputs: Inputs, factor: Number, present: int | None = None) -> Load:
    """A topic's load when it has grown by `factor`."""
    ratio = inputs["compression_ratio"].value
    planned = ceil(throughput(inputs) * factor)
    stored = ceil(planned / Fraction(ratio))
    kept = _kept(inputs, stored, factor)
    fixed, limit = inputs.get("partitions"), inputs.get("retention_bytes")
    return Load(
        planned=planned,
        stored=stored,
        kept=kept,
        retention_bytes=None if limit is None else int(limit.value),
        segment_size=int(inputs["segment_size"].value),
        segment_ms=int(inputs["segment_time"].value),
        with_segments="data" not in inputs,
        replication_factor=int(inputs["replication_factor"].value),
        groups=int(inputs["groups"].value),
        least=max(partition_bounds(inputs, planned, kept).values()),
        fixed=None if fixed is None else int(fixed.value),
        present=present,
    )


def throughput(inputs: Inputs) -> Number:
    """Bytes a second, before compression; 0 where none is said."""
    if "messages" in inputs:
        return inputs["messages"].value * inputs["message_size"].value
    return inputs["throughput"].value if "throughput" in inputs else 0


def _kept(inputs: Inputs, stored: int, factor: Number) -> int | None:
    if "data" in inputs:
        return ceil(inputs["data"].value * factor)
    if "keys" in inputs:
        live = (
            inputs["keys"].value * factor * inputs["message_size"].value / Fraction(inputs["compression_ratio"].value)
        )
        return ceil(live / (1 - MIN_CLEANABLE_RATIO))
    if "retention" in inputs:
        return ceil(Fraction(stored * int(inputs["retention"].value), 1000))
    return None


def partition_bounds(inputs: Inputs, planned: int, kept: int | None) -> dict[str, int]:
    """The least numbers of partitions, by what asks for them."""
    bounds = {}
    if planned:
        bounds["partitions_for_consumers"] = _divided(planned, int(inputs["consumer_rate"].value))
    if planned and "producer_rate" in inputs:
        bounds["partitions_for_producers"] = _divided(planned, int(inputs["producer_rate"].value))
    room = partition_room(inputs)
    limit = inputs.get("retention_bytes")
    if kept is not None and (limit is None or limit.value > room):
        bounds["partitions_for_size"] = _divided(kept, room)
    return {name: max(1, least) for name, least in bounds.items()}


def partition_room(inputs: Inputs) -> int:
    """Bytes that a partition may keep beside the segment that is being written."""
    most = int(inputs["max_partition_size"].value)
    return most if "data" in inputs else most - int(inputs["segment_size"].value)


def _divided(amount: int, part: int) -> int:
    return -(-amount // part)


def partitions_of(load: Load, brokers: int) -> int:
    """As many as are given; as there are, where these do; else what is needed, as a multiple of the brokers."""
    if load.fixed is not None:
        return load.fixed
    if load.present is not None and load.present >= load.least:
        return load.present
    return _divided(load.least, brokers) * brokers  # so that each has as many leaders


def retained(load: Load, partitions: int) -> int:
    """Bytes of one copy of all partitions that retention lets stay."""
    by_size = None if load.retention_bytes is None else partitions * load.retention_bytes
    return min(amount for amount in (load.kept, by_size) if amount is not None)


def open_segments(load: Load, partitions: int) -> int:
    """Bytes of one copy in segments that are being written, which retention does not see: full ones, or as much as
    comes until they are rolled."""
    if not load.with_segments:
        return 0
    full = partitions * load.segment_size
    return min(full, _divided(load.stored * load.segment_ms, 1000)) if load.stored else full


def on_disk(load: Load, partitions: int) -> int:
    """Bytes of all replicas."""
    return (retained(load, partitions) + open_segments(load, partitions)) * load.replication_factor


def fill_ms(load: Load, partitions: int) -> int | None:
    """How long a partition takes to fill a segment; None when nothing is written."""
    return None if not load.stored else _divided(load.segment_size * partitions * 1000, load.stored)


def whole_partitions(load: Load, one: Carrying) -> int:
    """How many brokers a topic alone needs when none holds a part of a partition; 0 where that says nothing: its number
    of partitions is made for the brokers, or none fits on any."""
    if one.disk is None or not _constant(load):
        return 0
    partitions = partitions_of(load, 1)
    replicas = partitions * load.replication_factor
    fitting = one.disk // max(1, _divided(on_disk(load, partitions), replicas))
    return _divided(replicas, fitting) + one.survive if fitting else 0


def fullest_broker(sizes: Sequence[tuple[int, int]], brokers: int) -> int:
    """Bytes that the fullest broker holds at most when replicas are spread well. sizes: of each topic the bytes of all
    replicas, and how many there are.

    Each topic spread evenly, or the largest replicas first, each to the emptiest broker: the better of the two. Rounded
    down, so that what fits exactly is not told to be too much.
    """
    each_evenly = sum(total * _divided(count, brokers) // count for total, count in sizes)
    largest = max(total // count for total, count in sizes)
    return min(each_evenly, (sum(total for total, _ in sizes) + largest * (brokers - 1)) // brokers)


def broker_bounds(loads: Sequence[Load], one: Carrying, disk_bytes: int) -> dict[str, int]:
    """The least numbers of brokers, by what asks for them. disk_bytes: of all replicas."""
    bounds = {"brokers_for_replicas": max((load.replication_factor for load in loads), default=1)}
    if one.disk is not None:
        bounds["brokers_for_disk"] = _divided(disk_bytes, max(1, one.disk)) + one.survive
        whole = max((whole_partitions(load, one) for load in loads), default=0)
        if whole > bounds["brokers_for_disk"]:
            bounds["brokers_for_whole_partitions"] = whole
    if one.network is not None:
        most = max(1, one.network)
        bounds["brokers_for_network_in"] = _divided(sum(load.network_in for load in loads), most) + one.survive
        bounds["brokers_for_network_out"] = _divided(sum(load.network_out for load in loads), most) + one.survive
    return bounds


def needed(loads: Sequence[Load], one: Carrying, brokers: int) -> dict[str, int]:
    """The bounds when partitions are laid out for `brokers`."""
    return broker_bounds(loads, one, sum(on_disk(load, partitions_of(load, brokers)) for load in loads))


def fewest_brokers(loads: Sequence[Load], one: Carrying) -> int:
    """The least number that carries the load when partitions are multiples of it. Raises Refused above MOST_BROKERS.

    Each further broker may ask for further partitions, and these for room for their segments. Nothing below
    `beyond` can do: with at least so many brokers there are at least so many partitions.
    """
    varying = [load for load in loads if not _constant(load)]
    constant = sum(on_disk(load, partitions_of(load, 1)) for load in loads if _constant(load))
    bounds = broker_bounds(loads, one, 0)
    others = max(least for name, least in bounds.items() if name != "brokers_for_disk")

    def least(disk_bytes: int) -> int:
        return others if one.disk is None else max(others, _divided(disk_bytes, max(1, one.disk)) + one.survive)

    brokers = least(constant)
    while brokers <= MOST_BROKERS:
        if least(constant + sum(on_disk(load, partitions_of(load, brokers)) for load in varying)) <= brokers:
            return brokers
        beyond = least(constant + sum(on_disk(load, max(load.least, brokers)) for load in varying))
        brokers = max(brokers + 1, beyond)
    raise Refused(
        f"the load needs more than {MOST_BROKERS:,} brokers",
        hint="is a unit wrong? Larger disks, a faster network or larger segments change it",
    )


def _constant(load: Load) -> bool:
    """Whether its number of partitions is the same with any number of brokers."""
    return load.fixed is not None or (load.present is not None and load.present >= load.least)


def survivable(replication_factor: int, min_insync: int, down: int) -> tuple[int, int]:
    """How many brokers more writes with acks=all survive, and how many data that were acknowledged so, when `down`
    replicas are gone and the others in sync. The minimum in effect is never more than the replicas.

    What was acknowledged is on every replica in sync, and those were min.insync at the least. −1: it is so already.
    """
    least, left = min(min_insync, replication_factor), replication_factor - down
    return max(-1, left - least), max(-1, min(least, left) - 1)


def cleaner_bytes(keys: Number, factor: Number, partitions: int) -> int:
    """What the log cleaner's buffer needs in order to compact a partition in one pass."""
    return ceil(keys * factor / Fraction(partitions) * CLEANER_BYTES_PER_KEY / CLEANER_LOAD)
