"""Retention reports with a forecast: the rows of kctl.lag.retention, with growth and disk-full times. Pure.

Rates are bytes per hour over the observed time (retention.growth); for a topic, over all of its replicas.
ceiling_bytes: the maximum size of the replicas under their retention limits, at the current write rate
(retention.disk_full); None: no limit if `unlimited`, else unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from kctl.base.grouping import grouped
from kctl.history.retention.disk_full import Cause, DiskFull, ceiling_bytes, never_stops
from kctl.history.retention.growth import GrownReplica, added
from kctl.history.retention.skew import Skew, skew
from kctl.history.retention.tombstones import is_cleaner_stalled, min_dirty_ratio
from kctl.history.retention.usage import Usage
from kctl.history.retention.volumes import Disks, Rate, same_volumes
from kctl.lag.log_config import LogConfig
from kctl.lag.retention import (
    BrokerUsage,
    LogDirSize,
    LogDirUsage,
    PartitionUsage,
    ReplicaSize,
    TopicRetention,
    TopicUsage,
    at,
    used,
)

# --- rows; field names are the JSON keys and never change -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionOutlook(PartitionUsage):
    """A partition; rates are those of the leader's log.

    dirty_ratio_at_least, cleaner_stands_still: of compacted logs, from sizes alone (kctl.history.retention.tombstones).
    """

    observed_ms: int | None
    written_bytes_per_hour: float | None
    growth_bytes_per_hour: float | None
    ceiling_bytes: int | None
    unlimited: bool
    dirty_ratio_at_least: float | None
    cleaner_stands_still: bool | None


@dataclass(frozen=True, slots=True)
class TopicOutlook(TopicUsage):
    """A topic. skew: the size of its largest partition divided by the mean."""

    observed_ms: int | None
    written_bytes_per_hour: float | None
    growth_bytes_per_hour: float | None
    ceiling_bytes: int | None
    unlimited: bool
    skew: float | None
    dirty_ratio_at_least: float | None
    cleaner_stands_still: bool | None


@dataclass(frozen=True, slots=True)
class BrokerOutlook(BrokerUsage):
    """A broker. full_ms: of the log dir whose volume is full first.

    full_after_ms: no volume is full before that; a later time cannot be predicted.
    """

    observed_ms: int | None
    written_bytes_per_hour: float | None
    growth_bytes_per_hour: float | None
    full_log_dir: str | None
    full_ms: int | None
    full_at: datetime | None
    full_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class LogDirOutlook(LogDirUsage):
    """A log dir. same_volume: other log dirs of the broker that appear to be on the same volume and fill it together.

    full_after_ms: the volume is full later than that, beyond what can be predicted; full_ms is None then.
    growing_to_bytes: the final size of the replicas on the volume; None: they grow without limit.
    unknown_replicas: number of replicas with an unknown rate. causes: the topics that fill the volume until it is full
    or each replica is at its ceiling, largest first.
    """

    observed_ms: int | None
    written_bytes_per_hour: float | None
    growth_bytes_per_hour: float | None
    same_volume: list[str]
    full_ms: int | None
    full_at: datetime | None
    growing_to_bytes: int | None
    unknown_replicas: int
    causes: list[Cause]
    full_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ReplicaOutlook:
    """A replica in a log dir. is_leader: its broker leads the partition. future: it is being moved to this log dir."""

    topic: str
    partition: int
    broker: int
    log_dir: str
    is_leader: bool
    future: bool
    offset_lag: int
    size_bytes: int
    retention_bytes_used: float | None
    observed_ms: int
    written_bytes_per_hour: float | None
    growth_bytes_per_hour: float | None
    freed_bytes_per_hour: float | None
    shrunk_at: datetime | None


@dataclass(frozen=True, slots=True)
class SkewRow(Skew):
    """The skew of bytes over "brokers", the "log dirs" of a broker, or the "partitions" of a topic (leaders)."""

    over: str
    broker: int | None
    topic: str | None


_Amounts = tuple[str, int | None, str | None, list[int]]  # over, broker, topic, bytes

# --- reports --------------------------------------------------------------------------------------------------------


class Outlook:
    """The reports on the disks as observed until now_ms. log_dirs: as of the newest passes."""

    def __init__(self, disks: Disks, log_dirs: Sequence[LogDirSize], *, now_ms: int) -> None:
        self.disks = disks
        self.now_ms = now_ms
        self.rates = disks.rates()
        self.full = disks.full()
        self._current = disks.current()
        self._usage = Usage(
            replicas=[
                ReplicaSize(r.topic, r.partition, r.broker, r.log_dir, r.growth.last_bytes, r.future)
                for r in self._current
            ],
            logs=list(disks.logs),
            retention=[_retention(config) for config in disks.configs.values()],
            log_dirs=list(log_dirs),
            now_ms=now_ms,
        )
        self._copies = grouped(self._current, lambda each: (each.topic, each.partition))
        self._on_dir = grouped(self._current, lambda each: (each.broker, each.log_dir))
        self._on_broker = grouped(self._current, lambda each: each.broker)

    def by_partition(self) -> list[PartitionOutlook]:
        """Return each partition, sorted."""
        return [PartitionOutlook(**_values(row), **self._partition_values(row)) for row in self._usage.by_partition()]

    def by_topic(self) -> list[TopicOutlook]:
        """Return each topic, sorted."""
        partitions = grouped(self.by_partition(), lambda row: row.topic)
        return [
            TopicOutlook(**_values(row), **self._topic_values(partitions[row.topic])) for row in self._usage.by_topic()
        ]

    def by_broker(self) -> list[BrokerOutlook]:
        """Return each broker, sorted."""
        result = []
        for row in self._usage.by_broker():
            replicas = self._on_broker.get(row.broker, [])
            ends = [
                (end.eta_ms, path)
                for (broker, path), end in self.full.items()
                if broker == row.broker and end.eta_ms is not None
            ]
            full_ms, path = min(ends, default=(None, None))
            later = [
                end.after_ms
                for (broker, _), end in self.full.items()
                if broker == row.broker and end.after_ms is not None
            ]
            result.append(
                BrokerOutlook(
                    **_values(row),
                    **self._rates_of(replicas),
                    full_log_dir=path,
                    full_ms=full_ms,
                    full_at=self._at(full_ms),
                    full_after_ms=min(later, default=None) if full_ms is None else None,
                )
            )
        return result

    def by_log_dir(self) -> list[LogDirOutlook]:
        """Return each log dir, sorted by broker and path."""
        volume_mates = {
            (each.broker, each.log_dir): [other.log_dir for other in group if other is not each]
            for group in same_volumes(self.disks.volumes)
            for each in group
        }
        result = []
        for row in self._usage.by_log_dir():
            place = (row.broker, row.log_dir)
            end = self.full.get(place, DiskFull(None, None, 0.0, 0, []))
            replicas = self._on_dir.get(place, [])
            result.append(
                LogDirOutlook(
                    **_values(row),
                    **self._rates_of(replicas),
                    same_volume=volume_mates.get(place, []),
                    full_ms=end.eta_ms,
                    full_at=self._at(end.eta_ms),
                    growing_to_bytes=end.growing_to_bytes,
                    unknown_replicas=end.unknown,
                    causes=end.causes,
                    full_after_ms=end.after_ms,
                )
            )
        return result

    def by_replica(self) -> list[ReplicaOutlook]:
        """Return each replica, sorted by topic, partition, broker and log dir."""
        leaders = {(log.topic, log.partition): log.leader for log in self.disks.logs}
        shares = {(row.topic, row.partition): row for row in self._usage.by_partition()}
        return [
            _replica(each, leaders.get((each.topic, each.partition)), shares.get((each.topic, each.partition)))
            for each in sorted(self._current, key=lambda r: (r.topic, r.partition, r.broker, r.log_dir, r.future))
        ]

    def skews(self) -> list[SkewRow]:
        """Return the skew over brokers, over each broker's log dirs and over each topic's partitions.

        A skew over a single broker, log dir or partition is omitted. Within each kind, the most uneven row comes first.
        """
        dirs = grouped(self._usage.by_log_dir(), lambda row: row.broker)
        topics = grouped(self._usage.by_partition(), lambda row: row.topic)
        brokers = [sum(row.size_bytes for row in rows) for rows in dirs.values()]
        kinds: list[list[_Amounts]] = [
            [("brokers", None, None, brokers)],
            [("log dirs", broker, None, [row.size_bytes for row in rows]) for broker, rows in dirs.items()],
            [("partitions", None, topic, [row.size_bytes or 0 for row in rows]) for topic, rows in topics.items()],
        ]
        return [row for kind in kinds for row in _sorted(_skews(kind))]

    def _partition_values(self, row: PartitionUsage) -> dict[str, Any]:
        config = self.disks.configs.get(row.topic)
        rate = self.rates.get((row.topic, row.partition), Rate(None, None))
        copies = [each for each in self._copies.get((row.topic, row.partition), []) if not each.future]
        leader = next((each for each in copies if each.broker == row.leader), None)
        growth = None if leader is None else leader.growth
        both = None if growth is None or config is None else (growth, config)
        return {
            "observed_ms": None if growth is None else growth.span_ms,
            "written_bytes_per_hour": rate.written_per_hour,
            "growth_bytes_per_hour": None if growth is None else growth.net_per_hour,
            "ceiling_bytes": _whole(ceiling_bytes(config, rate.written_per_hour, rate.leader_bytes or 0)),
            "unlimited": never_stops(config),
            "dirty_ratio_at_least": min_dirty_ratio(*both) if both else None,
            "cleaner_stands_still": is_cleaner_stalled(*both) if both else None,
        }

    def _topic_values(self, rows: Sequence[PartitionOutlook]) -> dict[str, Any]:
        replicas = [each for row in rows for each in self._copies.get((row.topic, row.partition), [])]
        ceilings = [None if r.ceiling_bytes is None else r.ceiling_bytes * max(r.replica_count, 1) for r in rows]
        result = skew([row.size_bytes or 0 for row in rows])
        stalled = [row.cleaner_stands_still for row in rows if row.cleaner_stands_still is not None]
        return {
            **self._rates_of(replicas),
            "ceiling_bytes": None if None in ceilings else sum(each for each in ceilings if each is not None),
            "unlimited": any(row.unlimited for row in rows),
            "skew": result.ratio if result is not None else None,
            "dirty_ratio_at_least": max(
                (row.dirty_ratio_at_least for row in rows if row.dirty_ratio_at_least is not None), default=None
            ),
            "cleaner_stands_still": any(stalled) if stalled else None,
        }

    def _rates_of(self, replicas: Sequence[GrownReplica]) -> dict[str, Any]:
        """Return the rates of some replicas. Each is written as fast as its leader."""
        written = [self.rates.get((each.topic, each.partition), Rate(None, None)).written_per_hour for each in replicas]
        return {
            "observed_ms": max((each.growth.span_ms for each in replicas), default=None),
            "written_bytes_per_hour": added(written),
            "growth_bytes_per_hour": added(each.growth.net_per_hour for each in replicas),
        }

    def _at(self, eta_ms: int | None) -> datetime | None:
        return None if eta_ms is None else at(self.now_ms + eta_ms)


def _retention(config: LogConfig) -> TopicRetention:
    return TopicRetention(
        config.topic, config.cleanup_policy, config.retention_bytes, config.retention_ms, config.segment_bytes
    )


def _replica(each: GrownReplica, leader: int | None, usage: PartitionUsage | None) -> ReplicaOutlook:
    growth = each.growth
    limit, policy = (None, None) if usage is None else (usage.retention_bytes, usage.cleanup_policy)
    return ReplicaOutlook(
        topic=each.topic,
        partition=each.partition,
        broker=each.broker,
        log_dir=each.log_dir,
        is_leader=each.broker == leader and not each.future,
        future=each.future,
        offset_lag=each.offset_lag,
        size_bytes=growth.last_bytes,
        retention_bytes_used=used(growth.last_bytes, limit, policy),
        observed_ms=growth.span_ms,
        written_bytes_per_hour=growth.written_per_hour,
        growth_bytes_per_hour=growth.net_per_hour,
        freed_bytes_per_hour=growth.freed_per_hour,
        shrunk_at=at(growth.shrunk_at_ms),
    )


def _skews(kind: Iterable[_Amounts]) -> list[SkewRow]:
    return [
        SkewRow(**_values(result), over=over, broker=broker, topic=topic)
        for over, broker, topic, amounts in kind
        if len(amounts) > 1 and (result := skew(amounts)) is not None
    ]


def _sorted(rows: list[SkewRow]) -> list[SkewRow]:
    return sorted(rows, key=lambda row: (-(row.ratio or 0.0), row.broker or 0, row.topic or ""))


def _values(row: Any) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in fields(row)}


def _whole(amount: float | None) -> int | None:
    return None if amount is None else int(amount)
