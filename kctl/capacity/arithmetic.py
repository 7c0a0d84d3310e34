"""Calculate the size of partitions and the number of brokers, in whole bytes. Pure.

Demand is rounded up and capacity is rounded down, so rounding never makes a plan too small. A partition cannot be split
between brokers: see `whole_partition_brokers` for a topic with a fixed number of partitions, and `fullest_broker` for
all topics together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from kctl.capacity.fields import MAX_BROKERS, Inputs, Number
from kctl.doctor.rules_sizes import CLEANER_BYTES_PER_KEY
from kctl.errors import Reason, Refused

CLEANER_LOAD = Fraction(9, 10)  # log.cleaner.io.buffer.load.factor
CLEANER_BUFFER_BYTES = 128 * 2**20  # log.cleaner.dedupe.buffer.size, shared by all threads
MIN_CLEANABLE_RATIO = Fraction(1, 2)  # min.cleanable.dirty.ratio: share of a log that may be uncompacted


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """The load of one topic.

    planned: bytes/s that producers write, before compression. stored: bytes/s that brokers store. retained_limit: bytes
    of one copy that retention time, keys or a fixed amount allow; None: only retention_bytes (per partition) limits the
    size. min_partitions: partitions needed for any number of brokers. adds_open_segments: retained_limit does not
    include the open segments. fixed_partitions: set by the user. current_partitions: of an existing topic.
    """

    planned: int
    stored: int
    retained_limit: int | None
    retention_bytes: int | None
    segment_size: int
    segment_ms: int
    adds_open_segments: bool
    replication_factor: int
    groups: int
    min_partitions: int
    fixed_partitions: int | None
    current_partitions: int | None

    @property
    def network_in(self) -> int:
        """Return the bytes/s that brokers receive: the leader and each follower."""
        return self.stored * self.replication_factor

    @property
    def network_out(self) -> int:
        """Return the bytes/s that brokers send: to each consumer group and each follower."""
        return self.stored * (self.groups + self.replication_factor - 1)


@dataclass(frozen=True, slots=True)
class BrokerCapacity:
    """The usable capacity of one broker, and the number of brokers that may fail.

    disk: bytes. network: bytes/s in each direction. None: unknown.
    """

    disk: int | None
    network: int | None
    survive: int


def growth_factor(inputs: Inputs) -> Fraction:
    """Return times × (1 + growth) ^ years."""
    return inputs["times"].value * (1 + Fraction(inputs["growth"].value)) ** int(inputs["years"].value)


def broker_capacity(inputs: Inputs) -> BrokerCapacity:
    """Return the capacity of a broker without its headroom."""
    disk = network = None
    if "disk" in inputs:
        disk = floor(inputs["disk"].value * inputs["disks_per_broker"].value * (1 - inputs["headroom"].value))
    if "network" in inputs:
        network = floor(inputs["network"].value * inputs["network_limit"].value)
    return BrokerCapacity(disk, network, int(inputs["survive"].value))


def topic_load(inputs: Inputs, factor: Number, current_partitions: int | None = None) -> TopicLoad:
    """Return the load of a topic after growth by `factor`."""
    ratio = inputs["compression_ratio"].value
    planned = ceil(throughput(inputs) * factor)
    stored = ceil(planned / Fraction(ratio))
    limit = _retained_limit(inputs, stored, factor)
    fixed, retention_bytes = inputs.get("partitions"), inputs.get("retention_bytes")
    return TopicLoad(
        planned=planned,
        stored=stored,
        retained_limit=limit,
        retention_bytes=None if retention_bytes is None else int(retention_bytes.value),
        segment_size=int(inputs["segment_size"].value),
        segment_ms=int(inputs["segment_time"].value),
        adds_open_segments="data" not in inputs,
        replication_factor=int(inputs["replication_factor"].value),
        groups=int(inputs["groups"].value),
        min_partitions=max(partition_bounds(inputs, planned, limit).values()),
        fixed_partitions=None if fixed is None else int(fixed.value),
        current_partitions=current_partitions,
    )


def throughput(inputs: Inputs) -> Number:
    """Return the bytes/s before compression; 0 if unknown."""
    if "messages" in inputs:
        return inputs["messages"].value * inputs["message_size"].value
    return inputs["throughput"].value if "throughput" in inputs else 0


def _retained_limit(inputs: Inputs, stored: int, factor: Number) -> int | None:
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


def partition_bounds(inputs: Inputs, planned: int, retained_limit: int | None) -> dict[str, int]:
    """Return the minimum number of partitions for each requirement."""
    bounds = {}
    if planned:
        bounds["partitions_for_consumers"] = _ceil_div(planned, int(inputs["consumer_rate"].value))
    if planned and "producer_rate" in inputs:
        bounds["partitions_for_producers"] = _ceil_div(planned, int(inputs["producer_rate"].value))
    budget = partition_budget(inputs)
    retention_bytes = inputs.get("retention_bytes")
    if retained_limit is not None and (retention_bytes is None or retention_bytes.value > budget):
        bounds["partitions_for_size"] = _ceil_div(retained_limit, budget)
    return {name: max(1, bound) for name, bound in bounds.items()}


def partition_budget(inputs: Inputs) -> int:
    """Return the bytes that a partition may retain, without its open segment."""
    max_size = int(inputs["max_partition_size"].value)
    return max_size if "data" in inputs else max_size - int(inputs["segment_size"].value)


def _ceil_div(amount: int, part: int) -> int:
    return -(-amount // part)


def partitions_of(load: TopicLoad, brokers: int) -> int:
    """Return the number of partitions for this number of brokers.

    This is the fixed number, or the current number if it is enough, or else the minimum rounded up to a multiple of the
    brokers.
    """
    if load.fixed_partitions is not None:
        return load.fixed_partitions
    if load.current_partitions is not None and load.current_partitions >= load.min_partitions:
        return load.current_partitions
    return _ceil_div(load.min_partitions, brokers) * brokers  # gives each broker the same number of leaders


def retained_bytes(load: TopicLoad, partitions: int) -> int:
    """Return the bytes that retention allows for one copy of all partitions."""
    size_limit = None if load.retention_bytes is None else partitions * load.retention_bytes
    return min(amount for amount in (load.retained_limit, size_limit) if amount is not None)


def open_segment_bytes(load: TopicLoad, partitions: int) -> int:
    """Return the bytes in the open segments of one copy, which retention does not delete.

    This is a full segment per partition, or the bytes written until segments are rolled, whichever is less.
    """
    if not load.adds_open_segments:
        return 0
    full = partitions * load.segment_size
    return min(full, _ceil_div(load.stored * load.segment_ms, 1000)) if load.stored else full


def disk_bytes(load: TopicLoad, partitions: int) -> int:
    """Return the bytes of all replicas."""
    return (retained_bytes(load, partitions) + open_segment_bytes(load, partitions)) * load.replication_factor


def fill_ms(load: TopicLoad, partitions: int) -> int | None:
    """Return the ms in which a partition fills a segment; None if nothing is written."""
    return None if not load.stored else _ceil_div(load.segment_size * partitions * 1000, load.stored)


def whole_partition_brokers(load: TopicLoad, capacity: BrokerCapacity) -> int:
    """Return the brokers that one topic needs because partitions cannot be split between brokers.

    0 if this does not apply: the number of partitions depends on the brokers, or a partition fits on no broker.
    """
    if capacity.disk is None or not _has_constant_partitions(load):
        return 0
    partitions = partitions_of(load, 1)
    replicas = partitions * load.replication_factor
    per_broker = capacity.disk // max(1, _ceil_div(disk_bytes(load, partitions), replicas))
    return _ceil_div(replicas, per_broker) + capacity.survive if per_broker else 0


def fullest_broker(sizes: Sequence[tuple[int, int]], brokers: int) -> int:
    """Return the maximum bytes on the fullest broker when replicas are spread well.

    sizes: (bytes of all replicas, number of replicas) of each topic. The result is the lower of two strategies: spread
    each topic evenly, or place the largest replicas first, each on the emptiest broker. It is rounded down, so that an
    exact fit is not reported as too large.
    """
    each_evenly = sum(total * _ceil_div(count, brokers) // count for total, count in sizes)
    largest = max(total // count for total, count in sizes)
    return min(each_evenly, (sum(total for total, _ in sizes) + largest * (brokers - 1)) // brokers)


def broker_bounds(loads: Sequence[TopicLoad], capacity: BrokerCapacity, total_bytes: int) -> dict[str, int]:
    """Return the minimum number of brokers for each requirement. total_bytes: of all replicas."""
    bounds = {"brokers_for_replicas": max((load.replication_factor for load in loads), default=1)}
    if capacity.disk is not None:
        bounds["brokers_for_disk"] = _ceil_div(total_bytes, max(1, capacity.disk)) + capacity.survive
        whole = max((whole_partition_brokers(load, capacity) for load in loads), default=0)
        if whole > bounds["brokers_for_disk"]:
            bounds["brokers_for_whole_partitions"] = whole
    if capacity.network is not None:
        network = max(1, capacity.network)
        bounds["brokers_for_network_in"] = _ceil_div(sum(load.network_in for load in loads), network) + capacity.survive
        bounds["brokers_for_network_out"] = (
            _ceil_div(sum(load.network_out for load in loads), network) + capacity.survive
        )
    return bounds


def broker_bounds_for(loads: Sequence[TopicLoad], capacity: BrokerCapacity, brokers: int) -> dict[str, int]:
    """Return the bounds for the partitions that this number of brokers would get."""
    return broker_bounds(loads, capacity, sum(disk_bytes(load, partitions_of(load, brokers)) for load in loads))


def fewest_brokers(loads: Sequence[TopicLoad], capacity: BrokerCapacity) -> int:
    """Return the smallest number of brokers that can hold the load. Raises Refused above MAX_BROKERS.

    More brokers can mean more partitions, which need space for more open segments. The search skips to `lower_bound`:
    with at least this many brokers, a topic has at least this many partitions.
    """
    varying = [load for load in loads if not _has_constant_partitions(load)]
    constant = sum(disk_bytes(load, partitions_of(load, 1)) for load in loads if _has_constant_partitions(load))
    bounds = broker_bounds(loads, capacity, 0)
    other_bounds = max(bound for name, bound in bounds.items() if name != "brokers_for_disk")

    def brokers_for(total_bytes: int) -> int:
        if capacity.disk is None:
            return other_bounds
        return max(other_bounds, _ceil_div(total_bytes, max(1, capacity.disk)) + capacity.survive)

    brokers = brokers_for(constant)
    while brokers <= MAX_BROKERS:
        if brokers_for(constant + sum(disk_bytes(load, partitions_of(load, brokers)) for load in varying)) <= brokers:
            return brokers
        lower_bound = brokers_for(
            constant + sum(disk_bytes(load, max(load.min_partitions, brokers)) for load in varying)
        )
        brokers = max(brokers + 1, lower_bound)
    raise Refused(
        f"the load needs more than {MAX_BROKERS:,} brokers",
        hint="check the units; larger disks, a faster network or larger segments reduce the number",
        reason=Reason.LIMIT_EXCEEDED,
    )


def _has_constant_partitions(load: TopicLoad) -> bool:
    """Return True if the number of partitions does not depend on the number of brokers."""
    return load.fixed_partitions is not None or (
        load.current_partitions is not None and load.current_partitions >= load.min_partitions
    )


def survivable(replication_factor: int, min_insync: int, down: int) -> tuple[int, int]:
    """Return how many further broker failures writes with acks=all survive, and how many acknowledged data survives.

    `down` replicas are already down, the others are in sync. min_insync is capped at the replication factor.
    Acknowledged data is on at least min_insync replicas. -1: writes are already stopped, or data is already lost.
    """
    effective_min, live = min(min_insync, replication_factor), replication_factor - down
    return max(-1, live - effective_min), max(-1, min(effective_min, live) - 1)


def cleaner_bytes(keys: Number, factor: Number, partitions: int) -> int:
    """Return the log cleaner buffer that compacts a partition in one pass, in bytes."""
    return ceil(keys * factor / Fraction(partitions) * CLEANER_BYTES_PER_KEY / CLEANER_LOAD)
