"""When a broker may delete each segment of a log. A pure rule; times are ms since 1970.

UnifiedLog.deleteOldSegments (3.9) goes three times from the oldest segment to the first that must stay:

1. log start offset: a segment goes when the next one begins at or before it;
2. retention.bytes: a segment goes while what stays is still at least so much (deleteRetentionSizeBreachedSegments);
3. retention.ms: a segment goes when its largest timestamp is more than that old (deleteRetentionMsBreachedSegments).

None goes that has records at or behind the high watermark, nor an active one that is empty. The active segment is
rolled when it is its turn. A segment without timestamps counts as old as its file (LogSegment.largestTimestamp).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple


class Reason(str, Enum):
    """Why a segment can be deleted now."""

    LOG_START_OFFSET = "log_start_offset"
    RETENTION_BYTES = "retention_bytes"
    RETENTION_MS = "retention_ms"


class Pin(str, Enum):
    """What keeps a segment for longer than its own age would."""

    FUTURE_TIMESTAMP = "future_timestamp"
    EARLIER_SEGMENT = "earlier_segment"
    HIGH_WATERMARK = "high_watermark"
    EMPTY_ACTIVE = "empty_active"


class LogSegment(NamedTuple):
    """A segment as retention sees it. upper_offset: the next one's base offset, or the log end offset."""

    base_offset: int
    size_bytes: int
    largest_timestamp: int
    upper_offset: int
    active: bool = False


class Limits(NamedTuple):
    """retention_ms, retention_bytes: None is no limit, as −1 in Kafka. high_watermark, log_start_offset: None when they
    are not known; then they keep nothing back, and nothing is deleted for them."""

    retention_ms: int | None = None
    retention_bytes: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None


class Deletion(NamedTuple):
    """Of one segment. deletable_at: by time, behind the segments before it that stay for now; None without a limit, and
    for an empty active one. deletable_now: why it goes at the next check. pinned_by_segment: for EARLIER_SEGMENT."""

    deletable_at: int | None
    deletable_now: Reason | None
    pinned_by: Pin | None
    pinned_by_segment: int | None


def deletions(segments: Sequence[LogSegment], limits: Limits, now: int) -> list[Deletion]:
    """What becomes of each segment of a log, oldest first."""
    rows: list[Deletion] = []
    latest: LogSegment | None = None  # of those that stay, the one that keeps those behind it the longest
    for segment, reason in zip(segments, _deletable_now(segments, limits, now), strict=True):
        if latest is None or segment.largest_timestamp > latest.largest_timestamp:
            latest = segment
        pin, by = (None, None) if reason is not None else _pin(segment, latest, limits, now)
        at = None
        if limits.retention_ms is not None and pin is not Pin.EMPTY_ACTIVE:
            at = latest.largest_timestamp + limits.retention_ms + 1
        rows.append(Deletion(at, reason, pin, by))
        if reason is not None:
            latest = None
    return rows


def _deletable_now(segments: Sequence[LogSegment], limits: Limits, now: int) -> list[Reason | None]:
    """Three passes, each from the oldest segment that is left; a pass ends at the first that must stay."""
    left = list(segments)
    reasons: list[Reason | None] = []
    for reason, wanted in (
        (Reason.LOG_START_OFFSET, _before_start(limits)),
        (Reason.RETENTION_BYTES, _too_many_bytes(limits, left)),
        (Reason.RETENTION_MS, _expired(limits, now)),
    ):
        while left and not _kept(left[0], limits) and wanted(left[0]):
            left.pop(0)
            reasons.append(reason)
    return [*reasons, *([None] * len(left))]


def _kept(segment: LogSegment, limits: Limits) -> bool:
    watermark = limits.high_watermark
    behind = watermark is not None and watermark < segment.upper_offset
    return behind or (segment.active and segment.size_bytes == 0)


def _before_start(limits: Limits) -> Callable[[LogSegment], bool]:
    start = limits.log_start_offset
    return lambda segment: start is not None and not segment.active and segment.upper_offset <= start


def _too_many_bytes(limits: Limits, left: Sequence[LogSegment]) -> Callable[[LogSegment], bool]:
    """left: is looked at when it is asked for the first time."""
    spare: int | None = None

    def superfluous(segment: LogSegment) -> bool:
        nonlocal spare
        if limits.retention_bytes is None:
            return False
        if spare is None:
            spare = sum(each.size_bytes for each in left) - limits.retention_bytes
        if spare < segment.size_bytes or spare < 0:
            return False
        spare -= segment.size_bytes
        return True

    return superfluous


def _expired(limits: Limits, now: int) -> Callable[[LogSegment], bool]:
    retention = limits.retention_ms
    return lambda segment: retention is not None and now - segment.largest_timestamp > retention


def _pin(segment: LogSegment, latest: LogSegment, limits: Limits, now: int) -> tuple[Pin | None, int | None]:
    """latest: of this one and those before it."""
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
