"""The load of brokers and racks before and after a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kctl.reassign.planner.cluster import PlanCluster


class PartitionChange(NamedTuple):
    """A partition (row in the cluster) whose replicas change; broker ids, the preferred leader first.

    log_dirs: the new log dir of each replica of `after` that moves within its broker, else None; log_dirs_before: the
    old one. None: no replica moves within a broker.
    """

    partition: int
    before: list[int]
    after: list[int]
    log_dirs_before: list[str | None] | None = None
    log_dirs: list[str | None] | None = None

    @property
    def fewer(self) -> int:
        """Return how many replicas the partition loses."""
        return max(0, len(self.before) - len(self.after))


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """The load of a broker. leaders: partitions with this preferred leader. bytes: of known sizes."""

    broker: int
    rack: str | None
    alive: bool
    replicas: int
    leaders: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RackLoad:
    rack: str | None
    replicas: int
    leaders: int
    bytes: int


def broker_loads(cluster: PlanCluster, changes: Sequence[PartitionChange]) -> tuple[list[BrokerLoad], list[BrokerLoad]]:
    n = len(cluster.brokers)
    replicas, leaders, size_bytes = [0] * n, [0] * n, [0] * n
    for p, row in enumerate(cluster.replicas):
        leaders[row[0]] += 1
        size = max(0, cluster.size_bytes[p])
        for node in row:
            replicas[node] += 1
            size_bytes[node] += size

    def rows() -> list[BrokerLoad]:
        columns = zip(cluster.brokers, replicas, leaders, size_bytes, strict=True)
        return [BrokerLoad(broker.id, broker.rack, broker.alive, *counts) for broker, *counts in columns]

    before, index = rows(), cluster.index_of()
    for change in changes:
        size = max(0, cluster.size_bytes[change.partition])
        for ids, sign in ((change.before, -1), (change.after, 1)):
            leaders[index[ids[0]]] += sign
            for node in ids:
                replicas[index[node]] += sign
                size_bytes[index[node]] += sign * size
    return before, rows()


def rack_loads(brokers: Iterable[BrokerLoad]) -> list[RackLoad]:
    """Return the sums by rack; the sum of brokers without a rack comes first."""
    sums: dict[str | None, list[int]] = {}
    for row in brokers:
        counts = sums.setdefault(row.rack, [0, 0, 0])
        for i, count in enumerate((row.replicas, row.leaders, row.bytes)):
            counts[i] += count
    return [RackLoad(rack, *sums[rack]) for rack in sorted(sums, key=lambda rack: (rack is not None, rack or ""))]
