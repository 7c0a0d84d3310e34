"""How much of its retention a log has used. Pure rules, which Spark applies over columns (kctl.spark.columns).

Definitions:
- size_bytes is the size of a replica's segments (.log files), as DescribeLogDirs tells and as retention.bytes
  counts (UnifiedLog.deleteRetentionSizeBreachedSegments); indexes come on top of it on the disk.
- retention_bytes_used = size ÷ retention.bytes, for each partition. It goes over 1: Kafka deletes whole segments,
  and only while what stays is still at least retention.bytes.
- oldest_timestamp_ms is the timestamp of the first record that can be read. oldest_age_ms counts from it; a
  timestamp in the future has the age 0.
- retention_ms_used = age of the oldest record ÷ retention.ms. It goes over 1 too: a segment is deleted by its
  *largest* timestamp (UnifiedLog.deleteRetentionMsBreachedSegments), a whole segment at a time.
- Neither applies where cleanup.policy lacks «delete», or where the limit is -1 (none). With a limit of 0 every
  closed segment is deleted at the next check: there is no share to tell. All of these give None.
- A future replica (a copy on its way to another log dir) takes its bytes of the disk, but is no replica yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from typing import NamedTuple

DELETE = "delete"


class ReplicaSize(NamedTuple):
    """One replica in a log dir of a broker."""

    topic: str
    partition: int
    broker: int
    log_dir: str
    size_bytes: int
    future: bool = False


class PartitionLog(NamedTuple):
    """A partition's log as its leader has it. None: not known. leader -1: none.

    oldest_timestamp_ms is None also when the log is empty, or its records have no timestamps.
    """

    topic: str
    partition: int
    leader: int
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    oldest_timestamp_ms: int | None = None


class TopicRetention(NamedTuple):
    """The configs that decide what a topic's logs keep; None: not known."""

    topic: str
    cleanup_policy: str | None = None
    retention_bytes: int | None = None
    retention_ms: int | None = None
    segment_bytes: int | None = None


class LogDirSize(NamedTuple):
    """A log dir and the volume that it lies on. Sizes are None on brokers before 3.3."""

    broker: int
    log_dir: str
    total_bytes: int | None = None
    usable_bytes: int | None = None


# --- rows; field names are the JSON keys and never change -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionUsage:
    """One partition. size_bytes: of the leader's replica; replicas_bytes: of all copies, future ones included."""

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
    """A topic's partitions: sizes added up, and the worst of the shares."""

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
    """A broker's replicas: sizes added up, the worst share of its replicas and of its disks.

    There is no total over log dirs: they can lie on the same volume.
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
    """A log dir's replicas. total_bytes, usable_bytes: of the volume that it lies on, whoever uses it."""

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
    """Whether retention applies: «delete» is one of the policies («compact,delete» has both)."""
    return cleanup_policy is not None and DELETE in cleanup_policy.replace(" ", "").split(",")


def age_ms(now_ms: int, timestamp_ms: int | None) -> int | None:
    """Milliseconds since then; 0 for the future, None when there is no timestamp."""
    return None if timestamp_ms is None else max(now_ms - timestamp_ms, 0)


def used(amount: int | None, limit: int | None, cleanup_policy: str | None) -> float | None:
    """The share of a retention limit (bytes or ms) that is used; None where the limit does not apply."""
    if amount is None or limit is None or limit <= 0 or not deletes(cleanup_policy):
        return None
    return amount / limit


def disk_used(total_bytes: int | None, usable_bytes: int | None) -> float | None:
    """The share of a volume that cannot be written any more, by whomever it was filled."""
    if total_bytes is None or usable_bytes is None or total_bytes <= 0:
        return None
    return (total_bytes - usable_bytes) / total_bytes


@lru_cache(maxsize=1024)  # the rows of a report share most of their times
def at(timestamp_ms: int | None) -> datetime | None:
    """A record's timestamp as a time; None also beyond the years that a datetime can tell (1–9999)."""
    if timestamp_ms is None:
        return None
    try:
        return datetime.fromtimestamp(timestamp_ms // 1000, timezone.utc).replace(
            microsecond=timestamp_ms % 1000 * 1000
        )
    except (ValueError, OverflowError, OSError):
        return None
