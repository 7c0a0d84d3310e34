"""Replicas on their volumes: the write rate and missing bytes of each, and when each volume is full. Pure.

- A replica counts only if its broker still has it: otherwise it was moved or deleted.
- A follower is written as fast as its leader; if the leader's rate is unknown, as fast as the fastest replica.
- A compacted log grows by the bytes that remain after compaction (kctl.history.retention.growth: lasting).
- Log dirs of a broker with the same size, and the same free space (to a ten-thousandth) in the first and the last
  sample, are on one volume and fill it together. Volumes shared by two brokers cannot be detected.
- The growth of other files on a volume is the loss of free space minus the growth of the replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kctl.history.retention.disk_full import DiskFull, ReplicaGrowth, ceiling_bytes, disk_full
from kctl.history.retention.growth import GrownReplica, GrownVolume, per_hour
from kctl.lag.log_config import LogConfig, compacts
from kctl.lag.retention import LeaderLog

Place = tuple[int, str]  # broker, log dir
Partition = tuple[str, int]
_SAME_VOLUME = 10_000  # samples of the free space may differ by 1/10,000 of the volume


class Rate(NamedTuple):
    """The rates of a partition in bytes per hour, and its leader's size. lasting_per_hour: after compaction."""

    written_per_hour: float | None
    leader_bytes: int | None
    lasting_per_hour: float | None = None


@dataclass(frozen=True)
class Disks:
    """Observations of disks over a time span. replicas: includes replicas that were since moved or deleted.

    freed: extra free bytes of a log dir, for what-if reports; the replicas there are smaller by the same amount.
    """

    replicas: Sequence[GrownReplica]
    volumes: Sequence[GrownVolume]
    logs: Sequence[LeaderLog]
    configs: Mapping[str, LogConfig]
    freed: Mapping[Place, int] = field(default_factory=dict)
    _last: dict[int, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        replica_samples = [(each.broker, each.growth.last_ms) for each in self.replicas]
        for broker, last_ms in [*replica_samples, *((each.broker, each.growth.last_ms) for each in self.volumes)]:
            self._last[broker] = max(self._last.get(broker, 0), last_ms)

    def current(self) -> list[GrownReplica]:
        """Return the replicas that brokers still have."""
        return [each for each in self.replicas if each.growth.last_ms == self._last[each.broker]]

    def rates(self) -> dict[Partition, Rate]:
        """Return the write rate of each partition."""
        leaders = {(log.topic, log.partition): log.leader for log in self.logs}
        copies: dict[Partition, list[GrownReplica]] = {}
        for each in self.current():
            if not each.future:
                copies.setdefault((each.topic, each.partition), []).append(each)
        return {partition: _rate(each, leaders.get(partition, -1)) for partition, each in copies.items()}

    def full(self) -> dict[Place, DiskFull]:
        """Return when the volume of each log dir is full."""
        rates = self.rates()
        growing: dict[Place, list[ReplicaGrowth]] = {}
        for each in self.current():
            growing.setdefault((each.broker, each.log_dir), []).append(self._growing(each, rates))
        observed: dict[Place, list[GrownReplica]] = {}
        for each in self.replicas:
            observed.setdefault((each.broker, each.log_dir), []).append(each)
        result: dict[Place, DiskFull] = {}
        for group in same_volumes(self.volumes):
            places = [(each.broker, each.log_dir) for each in group]
            usable = min(each.growth.last_bytes for each in group) + sum(self.freed.get(place, 0) for place in places)
            other = self._others(group, [row for place in places for row in observed.get(place, ())])
            outlook = disk_full(
                usable,
                [row for place in places for row in growing.get(place, ())],
                other_per_hour=other or 0.0,
                observed_ms=max(each.growth.span_ms for each in group),
            )
            result.update(dict.fromkeys(places, outlook))
        return result

    def _growing(self, each: GrownReplica, rates: Mapping[Partition, Rate]) -> ReplicaGrowth:
        rate = rates.get((each.topic, each.partition), Rate(None, None))
        behind = each.future or each.offset_lag > 0
        missing_bytes = max((rate.leader_bytes or 0) - each.growth.last_bytes, 0) if behind else 0
        config = self.configs.get(each.topic)
        ceiling = ceiling_bytes(config, rate.written_per_hour, each.growth.last_bytes)
        compacted = config is not None and compacts(config.cleanup_policy)
        lasting = rate.lasting_per_hour if compacted else rate.written_per_hour
        return ReplicaGrowth(each.topic, each.growth.last_bytes, lasting, ceiling, missing_bytes)

    def _others(self, group: Sequence[GrownVolume], replicas: Iterable[GrownReplica]) -> float | None:
        """Return the growth of other files: the loss of free space per hour minus replica growth. None: unknown."""
        usable = min(group, key=lambda each: each.growth.last_bytes).growth
        grown = sum(self.freed.get((each.broker, each.log_dir), 0) for each in group)
        for each in replicas:
            growth = each.growth
            before = growth.first_bytes if growth.first_ms <= usable.first_ms else 0
            grown += (growth.last_bytes if growth.last_ms >= usable.last_ms else 0) - before
        return per_hour(usable.first_bytes - usable.last_bytes - grown, usable.span_ms)


def _rate(copies: Sequence[GrownReplica], leader: int) -> Rate:
    growth = next((each.growth for each in copies if each.broker == leader), None)
    lasting = growth.lasting_per_hour if growth is not None else None
    if lasting is None:
        lasting = _max(each.growth.lasting_per_hour for each in copies)
    if growth is not None and growth.written_per_hour is not None:
        return Rate(growth.written_per_hour, growth.last_bytes, lasting)
    fastest = _max(each.growth.written_per_hour for each in copies)
    return Rate(fastest, None if growth is None else growth.last_bytes, lasting)


def _max(rates: Iterable[float | None]) -> float | None:
    return max((rate for rate in rates if rate is not None), default=None)


def same_volumes(volumes: Iterable[GrownVolume]) -> list[list[GrownVolume]]:
    """Return log dirs grouped by volume."""
    result: list[list[GrownVolume]] = []
    for each in sorted(volumes, key=lambda row: (row.broker, row.log_dir)):
        group = next((group for group in result if _same(group[0], each)), None)
        if group is None:
            result.append([each])
        else:
            group.append(each)
    return result


def _same(one: GrownVolume, other: GrownVolume) -> bool:
    if one.broker != other.broker or one.total_bytes is None or one.total_bytes != other.total_bytes:
        return False
    allowed = one.total_bytes / _SAME_VOLUME
    pairs = (
        (one.growth.first_bytes, other.growth.first_bytes),
        (one.growth.last_bytes, other.growth.last_bytes),
    )
    return all(abs(a - b) <= allowed for a, b in pairs)
