"""What brokers and racks hold before and after a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kctl.reassign.planner.cluster import PlanCluster


class Change(NamedTuple):
    """A partition (its row in the cluster) whose replicas change; broker ids, the preferred leader first.

    log_dirs: beside `after` the log dir of each replica that moves within its broker, None for the others; likewise
    log_dirs_before. None: nothing moves within a broker.
    """

    partition: int
    before: list[int]
    after: list[int]
    log_dirs_before: list[str | None] | None = None
    log_dirs: list[str | None] | None = None

    @property
    def fewer(self) -> int:
        """How many replicas the partition has less than before."""
        return max(0, len(self.before) - len(self.after))


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What a broker holds. leaders: partitions whose preferred leader it is. bytes: of known sizes."""

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


def broker_loads(cluster: PlanCluster, changes: Sequence[Change]) -> tuple[list[BrokerLoad], list[BrokerLoad]]:
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
    """Sums by rack; brokers without one together, first."""
    sums: dict[str | None, list[int]] = {}
    for row in brokers:
        counts = sums.setdefault(row.rack, [0, 0, 0])
        for i, count in enumerate((row.replicas, row.leaders, row.bytes)):
            counts[i] += count
    return [RackLoad(rack, *sums[rack]) for rack in sorted(sums, key=lambda rack: (rack is not None, rack or ""))]
