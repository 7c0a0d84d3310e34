"""Compute when a broker may delete each segment of a log. Pure; times are ms since 1970.

UnifiedLog.deleteOldSegments (3.9) makes three passes, each from the oldest segment to the first one that must stay:

1. log start offset: delete a segment if the next one starts at or below the log start offset;
2. retention.bytes: delete a segment if the rest has at least that size (deleteRetentionSizeBreachedSegments);
3. retention.ms: delete a segment if its largest timestamp is older (deleteRetentionMsBreachedSegments).

Segments with records at or above the high watermark stay, and so does an empty active segment. An active segment that
is due is rolled first. A segment without timestamps is as old as its file (LogSegment.largestTimestamp).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple


class DeletionReason(str, Enum):
    """Why a segment can be deleted now."""

    LOG_START_OFFSET = "log_start_offset"
    RETENTION_BYTES = "retention_bytes"
    RETENTION_MS = "retention_ms"


class Pin(str, Enum):
    """Why a segment stays longer than its own age requires."""

    FUTURE_TIMESTAMP = "future_timestamp"
    EARLIER_SEGMENT = "earlier_segment"
    HIGH_WATERMARK = "high_watermark"
    EMPTY_ACTIVE = "empty_active"


class LogSegment(NamedTuple):
    """The input of retention for a segment. upper_offset: the next segment's base offset, or the log end offset."""

    base_offset: int
    size_bytes: int
    largest_timestamp: int
    upper_offset: int
    active: bool = False


class RetentionLimits(NamedTuple):
    """The limits of a log. retention_ms, retention_bytes: None for no limit (-1 in Kafka).

    high_watermark, log_start_offset: None if unknown; then they have no effect.
    """

    retention_ms: int | None = None
    retention_bytes: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None


class SegmentDeletion(NamedTuple):
    """The earliest deletion of a segment. deletable_now: the reason, if the next check deletes it.

    deletable_at: by time, considering earlier segments that stay; None without a limit, and for an empty active
    segment. pinned_by_segment: for EARLIER_SEGMENT.
    """

    deletable_at: int | None
    deletable_now: DeletionReason | None
    pinned_by: Pin | None
    pinned_by_segment: int | None


def deletions(segments: Sequence[LogSegment], limits: RetentionLimits, now: int) -> list[SegmentDeletion]:
    """Return the deletion of each segment of a log, oldest first."""
    rows: list[SegmentDeletion] = []
    latest: LogSegment | None = None  # of the segments that stay, the one that blocks later ones the longest
    for segment, reason in zip(segments, _deletable_now(segments, limits, now), strict=True):
        if latest is None or segment.largest_timestamp > latest.largest_timestamp:
            latest = segment
        pin, by = (None, None) if reason is not None else _pin(segment, latest, limits, now)
        at = None
        if limits.retention_ms is not None and pin is not Pin.EMPTY_ACTIVE:
            at = latest.largest_timestamp + limits.retention_ms + 1
        rows.append(SegmentDeletion(at, reason, pin, by))
        if reason is not None:
            latest = None
    return rows


def _deletable_now(segments: Sequence[LogSegment], limits: RetentionLimits, now: int) -> list[DeletionReason | None]:
    """Make the three passes, each from the oldest remaining segment to the first one that must stay."""
    remaining = list(segments)
    reasons: list[DeletionReason | None] = []
    for reason, is_due in (
        (DeletionReason.LOG_START_OFFSET, _before_start(limits)),
        (DeletionReason.RETENTION_BYTES, _too_many_bytes(limits, remaining)),
        (DeletionReason.RETENTION_MS, _expired(limits, now)),
    ):
        while remaining and not _must_stay(remaining[0], limits) and is_due(remaining[0]):
            remaining.pop(0)
            reasons.append(reason)
    return [*reasons, *([None] * len(remaining))]


def _must_stay(segment: LogSegment, limits: RetentionLimits) -> bool:
    watermark = limits.high_watermark
    above_watermark = watermark is not None and watermark < segment.upper_offset
    return above_watermark or (segment.active and segment.size_bytes == 0)


def _before_start(limits: RetentionLimits) -> Callable[[LogSegment], bool]:
    start = limits.log_start_offset
    return lambda segment: start is not None and not segment.active and segment.upper_offset <= start


def _too_many_bytes(limits: RetentionLimits, remaining: Sequence[LogSegment]) -> Callable[[LogSegment], bool]:
    """Return the check for retention.bytes. It reads `remaining` on its first call."""
    spare: int | None = None

    def is_superfluous(segment: LogSegment) -> bool:
        nonlocal spare
        if limits.retention_bytes is None:
            return False
        if spare is None:
            spare = sum(each.size_bytes for each in remaining) - limits.retention_bytes
        if spare < segment.size_bytes or spare < 0:
            return False
        spare -= segment.size_bytes
        return True

    return is_superfluous


def _expired(limits: RetentionLimits, now: int) -> Callable[[LogSegment], bool]:
    retention = limits.retention_ms
    return lambda segment: retention is not None and now - segment.largest_timestamp > retention


def _pin(segment: LogSegment, latest: LogSegment, limits: RetentionLimits, now: int) -> tuple[Pin | None, int | None]:
    """Return the pin of a segment. latest: the segment with the largest timestamp up to this one."""
    expired = _expired(limits, now)
    if segment.active and segment.size_bytes == 0:
        return Pin.EMPTY_ACTIVE, None
    if segment.largest_timestamp > now:
        return Pin.FUTURE_TIMESTAMP, None
    if limits.retention_ms is None:
        return None, None
    if not expired(latest) and (expired(segment) or latest.largest_timestamp > now):
        return Pin.EARLIER_SEGMENT, latest.base_offset
    if expired(segment) and limits.high_watermark is not None and limits.high_watermark < segment.upper_offset:
        return Pin.HIGH_WATERMARK, None
    return None, None
