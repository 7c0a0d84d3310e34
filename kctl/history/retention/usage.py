"""Compute the rows of kctl.lag.retention from a cluster's responses.

kctl.spark.retention_job computes the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from kctl.base.grouping import grouped
from kctl.lag.retention import (
    BrokerUsage,
    LeaderLog,
    LogDirSize,
    LogDirUsage,
    PartitionUsage,
    ReplicaSize,
    TopicRetention,
    TopicUsage,
    age_ms,
    at,
    disk_used,
    used,
)

PARTITION, TOPIC, BROKER, LOG_DIR = "partition", "topic", "broker", "log-dir"
ROWS: dict[str, type[Any]] = {
    PARTITION: PartitionUsage,
    TOPIC: TopicUsage,
    BROKER: BrokerUsage,
    LOG_DIR: LogDirUsage,
}


class _Shares(NamedTuple):
    """The retention usage of one replica."""

    bytes_used: float | None
    oldest_ms: int | None
    ms_used: float | None


@dataclass(frozen=True)
class Usage:
    """Responses of a cluster, from which each report is computed."""

    replicas: list[ReplicaSize]
    logs: list[LeaderLog]
    retention: list[TopicRetention]
    log_dirs: list[LogDirSize]
    now_ms: int

    @cached_property
    def _configs(self) -> dict[str, TopicRetention]:
        return {row.topic: row for row in self.retention}

    @cached_property
    def _log_of(self) -> dict[tuple[str, int], LeaderLog]:
        return {(row.topic, row.partition): row for row in self.logs}

    def rows(self, by: str) -> list[Any]:
        """Return the rows of type ROWS[by], sorted."""
        reports: dict[str, Callable[[], list[Any]]] = {
            PARTITION: self.by_partition,
            TOPIC: self.by_topic,
            BROKER: self.by_broker,
            LOG_DIR: self.by_log_dir,
        }
        return reports[by]()

    def by_partition(self) -> list[PartitionUsage]:
        """Return each partition in `logs`, sorted by topic and partition."""
        config = self._configs
        copies = grouped(self.replicas, lambda row: (row.topic, row.partition))
        return [
            _partition(log, copies.get((log.topic, log.partition), []), config.get(log.topic), self.now_ms)
            for log in sorted(self.logs, key=lambda log: (log.topic, log.partition))
        ]

    def by_topic(self) -> list[TopicUsage]:
        """Return each topic in `logs`, sorted."""
        result = grouped(self.by_partition(), lambda row: row.topic)
        return [_topic(rows) for rows in result.values()]

    def by_broker(self) -> list[BrokerUsage]:
        """Return each broker in `log_dirs`, sorted."""
        copies = grouped(self.replicas, lambda row: row.broker)
        dirs = grouped(self.log_dirs, lambda row: row.broker)
        return [self._broker(node, dirs[node], copies.get(node, [])) for node in sorted(dirs)]

    def by_log_dir(self) -> list[LogDirUsage]:
        """Return each of `log_dirs`, sorted by broker and path."""
        copies = grouped(self.replicas, lambda row: (row.broker, row.log_dir))
        return [
            self._log_dir(row, copies.get((row.broker, row.log_dir), []))
            for row in sorted(self.log_dirs, key=lambda row: (row.broker, row.log_dir))
        ]

    def _shares(self, copies: Iterable[ReplicaSize]) -> list[_Shares]:
        result = []
        for copy in copies:
            policy = self._configs.get(copy.topic, TopicRetention(copy.topic))
            log = self._log_of.get((copy.topic, copy.partition))
            oldest = log.oldest_timestamp_ms if log else None
            result.append(
                _Shares(
                    used(copy.size_bytes, policy.retention_bytes, policy.cleanup_policy),
                    oldest,
                    used(age_ms(self.now_ms, oldest), policy.retention_ms, policy.cleanup_policy),
                )
            )
        return result

    def _broker(self, node: int, dirs: list[LogDirSize], copies: list[ReplicaSize]) -> BrokerUsage:
        shares = self._shares(copies)
        oldest = _min(share.oldest_ms for share in shares)
        return BrokerUsage(
            broker=node,
            log_dir_count=len(dirs),
            topic_count=len({copy.topic for copy in copies}),
            replica_count=sum(not copy.future for copy in copies),
            size_bytes=sum(copy.size_bytes for copy in copies),
            disk_used=_max(disk_used(row.total_bytes, row.usable_bytes) for row in dirs),
            retention_bytes_used=_max(share.bytes_used for share in shares),
            oldest_timestamp=at(oldest),
            oldest_age_ms=age_ms(self.now_ms, oldest),
            retention_ms_used=_max(share.ms_used for share in shares),
        )

    def _log_dir(self, row: LogDirSize, copies: list[ReplicaSize]) -> LogDirUsage:
        shares = self._shares(copies)
        oldest = _min(share.oldest_ms for share in shares)
        return LogDirUsage(
            broker=row.broker,
            log_dir=row.log_dir,
            topic_count=len({copy.topic for copy in copies}),
            replica_count=sum(not copy.future for copy in copies),
            size_bytes=sum(copy.size_bytes for copy in copies),
            total_bytes=row.total_bytes,
            usable_bytes=row.usable_bytes,
            disk_used=disk_used(row.total_bytes, row.usable_bytes),
            retention_bytes_used=_max(share.bytes_used for share in shares),
            oldest_timestamp=at(oldest),
            oldest_age_ms=age_ms(self.now_ms, oldest),
            retention_ms_used=_max(share.ms_used for share in shares),
        )


def _partition(log: LeaderLog, copies: list[ReplicaSize], config: TopicRetention | None, now_ms: int) -> PartitionUsage:
    config = config or TopicRetention(log.topic)
    leaders = [copy.size_bytes for copy in copies if copy.broker == log.leader and not copy.future]
    size = leaders[0] if leaders else None
    age = age_ms(now_ms, log.oldest_timestamp_ms)
    return PartitionUsage(
        topic=log.topic,
        partition=log.partition,
        leader=log.leader,
        replica_count=sum(not copy.future for copy in copies),
        size_bytes=size,
        replicas_bytes=sum(copy.size_bytes for copy in copies),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        cleanup_policy=config.cleanup_policy,
        segment_bytes=config.segment_bytes,
        retention_bytes=config.retention_bytes,
        retention_bytes_used=used(size, config.retention_bytes, config.cleanup_policy),
        oldest_timestamp=at(log.oldest_timestamp_ms),
        oldest_age_ms=age,
        retention_ms=config.retention_ms,
        retention_ms_used=used(age, config.retention_ms, config.cleanup_policy),
    )


def _topic(rows: list[PartitionUsage]) -> TopicUsage:
    first = rows[0]
    sizes = [row.size_bytes for row in rows if row.size_bytes is not None]
    return TopicUsage(
        topic=first.topic,
        partition_count=len(rows),
        replica_count=sum(row.replica_count for row in rows),
        size_bytes=sum(sizes) if sizes else None,
        replicas_bytes=sum(row.replicas_bytes for row in rows),
        cleanup_policy=first.cleanup_policy,
        segment_bytes=first.segment_bytes,
        retention_bytes=first.retention_bytes,
        retention_bytes_used=_max(row.retention_bytes_used for row in rows),
        oldest_timestamp=_min(row.oldest_timestamp for row in rows),
        oldest_age_ms=_max(row.oldest_age_ms for row in rows),
        retention_ms=first.retention_ms,
        retention_ms_used=_max(row.retention_ms_used for row in rows),
    )


_Number = TypeVar("_Number", int, float)
_Ordered = TypeVar("_Ordered", int, datetime)


def _max(values: Iterable[_Number | None]) -> _Number | None:
    return max((value for value in values if value is not None), default=None)


def _min(values: Iterable[_Ordered | None]) -> _Ordered | None:
    return min((value for value in values if value is not None), default=None)
