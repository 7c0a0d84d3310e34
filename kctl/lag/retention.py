"""The share of its retention that a log uses. Pure rules, which Spark applies over columns (kctl.spark.columns).

Definitions:
- size_bytes is the size of a replica's segments (.log files), as DescribeLogDirs reports and retention.bytes counts
  (UnifiedLog.deleteRetentionSizeBreachedSegments), without indexes.
- retention_bytes_used = size ÷ retention.bytes, for each partition. It can exceed 1: Kafka deletes whole segments, and
  only while at least retention.bytes remain.
- oldest_timestamp_ms is the timestamp of the first readable record. oldest_age_ms is its age, 0 for a future
  timestamp.
- retention_ms_used = age of the oldest record ÷ retention.ms. It can exceed 1, too: a segment is deleted by its
  *largest* timestamp (UnifiedLog.deleteRetentionMsBreachedSegments), a whole segment at a time.
- Both are None if cleanup.policy lacks "delete" or the limit is -1 (none). They are also None with a limit of 0, where
  every closed segment is deleted at the next check.
- A future replica (being moved to another log dir) uses disk space, but does not count as a replica yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from typing import NamedTuple

DELETE = "delete"


class ReplicaSize(NamedTuple):
    """A replica in a log dir of a broker."""

    topic: str
    partition: int
    broker: int
    log_dir: str
    size_bytes: int
    future: bool = False


class LeaderLog(NamedTuple):
    """A partition's log on its leader. None: unknown. leader: -1 if there is none.

    oldest_timestamp_ms is also None if the log is empty, or its records have no timestamps.
    """

    topic: str
    partition: int
    leader: int
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    oldest_timestamp_ms: int | None = None


class TopicRetention(NamedTuple):
    """The retention configs of a topic. None: unknown."""

    topic: str
    cleanup_policy: str | None = None
    retention_bytes: int | None = None
    retention_ms: int | None = None
    segment_bytes: int | None = None


class LogDirSize(NamedTuple):
    """A log dir, and the size of its volume. Sizes are None before Kafka 3.3."""

    broker: int
    log_dir: str
    total_bytes: int | None = None
    usable_bytes: int | None = None


# --- rows; field names are the JSON keys and never change -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionUsage:
    """One partition. size_bytes: of the leader's replica; replicas_bytes: of all replicas, future ones included."""

    topic: str
    partition: int
    leader: int
    replica_count: int
    size_bytes: int | None
    replicas_bytes: int
    log_start_offset: int | None
    log_end_offset: int | None
    cleanup_policy: str | None
    segment_bytes: int | None
    retention_bytes: int | None
    retention_bytes_used: float | None
    oldest_timestamp: datetime | None
    oldest_age_ms: int | None
    retention_ms: int | None
    retention_ms_used: float | None


@dataclass(frozen=True, slots=True)
class TopicUsage:
    """The partitions of a topic: total sizes, and the highest usage."""

    topic: str
    partition_count: int
    replica_count: int
    size_bytes: int | None
    replicas_bytes: int
    cleanup_policy: str | None
    segment_bytes: int | None
    retention_bytes: int | None
    retention_bytes_used: float | None
    oldest_timestamp: datetime | None
    oldest_age_ms: int | None
    retention_ms: int | None
    retention_ms_used: float | None


@dataclass(frozen=True, slots=True)
class BrokerUsage:
    """The replicas of a broker: total sizes, and the highest usage of its replicas and of its disks.

    There is no total over log dirs, since several can be on one volume.
    """

    broker: int
    log_dir_count: int
    topic_count: int
    replica_count: int
    size_bytes: int
    disk_used: float | None
    retention_bytes_used: float | None
    oldest_timestamp: datetime | None
    oldest_age_ms: int | None
    retention_ms_used: float | None


@dataclass(frozen=True, slots=True)
class LogDirUsage:
    """The replicas in a log dir. total_bytes, usable_bytes: of the volume, including other users of it."""

    broker: int
    log_dir: str
    topic_count: int
    replica_count: int
    size_bytes: int
    total_bytes: int | None
    usable_bytes: int | None
    disk_used: float | None
    retention_bytes_used: float | None
    oldest_timestamp: datetime | None
    oldest_age_ms: int | None
    retention_ms_used: float | None


# --- rules ----------------------------------------------------------------------------------------------------------


def deletes(cleanup_policy: str | None) -> bool:
    """Return True if retention applies: "delete" is one of the policies (as in "compact,delete")."""
    return cleanup_policy is not None and DELETE in cleanup_policy.replace(" ", "").split(",")


def age_ms(now_ms: int, timestamp_ms: int | None) -> int | None:
    """Return the milliseconds since a timestamp; 0 for the future, None without a timestamp."""
    return None if timestamp_ms is None else max(now_ms - timestamp_ms, 0)


def used(amount: int | None, limit: int | None, cleanup_policy: str | None) -> float | None:
    """Return the used share of a retention limit (bytes or ms); None if the limit does not apply."""
    if amount is None or limit is None or limit <= 0 or not deletes(cleanup_policy):
        return None
    return amount / limit


def disk_used(total_bytes: int | None, usable_bytes: int | None) -> float | None:
    """Return the share of a volume that is no longer writable, whatever uses it."""
    if total_bytes is None or usable_bytes is None or total_bytes <= 0:
        return None
    return (total_bytes - usable_bytes) / total_bytes


@lru_cache(maxsize=1024)  # the rows of a report share most of their times
def at(timestamp_ms: int | None) -> datetime | None:
    """Return a record timestamp as a datetime; None also outside of the years 1–9999."""
    if timestamp_ms is None:
        return None
    try:
        return datetime.fromtimestamp(timestamp_ms // 1000, timezone.utc).replace(
            microsecond=timestamp_ms % 1000 * 1000
        )
    except (ValueError, OverflowError, OSError):
        return None
