"""When segments are deletable, against what a broker would do, pass by pass."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kctl.segment.log.segment_retention import (
    DeletionReason,
    LogSegment,
    Pin,
    RetentionLimits,
    SegmentDeletion,
    deletions,
)

NOW = 1_000_000
DAY = 1000


def _log(*segments: tuple[int, int]) -> list[LogSegment]:
    """(size, largest timestamp) of each; ten offsets a segment; the last one is active."""
    return [
        LogSegment(10 * number, size, largest, 10 * (number + 1), active=number == len(segments) - 1)
        for number, (size, largest) in enumerate(segments)
    ]


OLD, YOUNG, FUTURE = NOW - 2 * DAY, NOW - 10, NOW + 5 * DAY
TIME, BYTES, START = DeletionReason.RETENTION_MS, DeletionReason.RETENTION_BYTES, DeletionReason.LOG_START_OFFSET
CASES = {
    "nothing given": (_log((5, OLD), (5, YOUNG)), RetentionLimits(), [(None, None, None)] * 2),
    "expired ones, the active one too": (
        _log((5, OLD), (5, OLD + 1)),
        RetentionLimits(retention_ms=DAY),
        [(TIME, None, None), (TIME, None, None)],
    ),
    "exactly as old as allowed stays": (
        _log((5, NOW - DAY), (5, YOUNG)),
        RetentionLimits(DAY),
        [(None, None, None)] * 2,
    ),
    "one ms older goes": (
        _log((5, NOW - DAY - 1), (5, YOUNG)),
        RetentionLimits(DAY),
        [(TIME, None, None), (None, None, None)],
    ),
    "an unexpired one before it": (
        _log((5, YOUNG), (5, OLD)),
        RetentionLimits(DAY),
        [(None, None, None), (None, Pin.EARLIER_SEGMENT, 0)],
    ),
    "the future": (
        _log((5, OLD), (5, FUTURE), (5, YOUNG), (5, OLD)),
        RetentionLimits(DAY),
        [
            (TIME, None, None),
            (None, Pin.FUTURE_TIMESTAMP, None),
            (None, Pin.EARLIER_SEGMENT, 10),
            (None, Pin.EARLIER_SEGMENT, 10),
        ],
    ),
    "the future without a limit": (
        _log((5, FUTURE), (5, OLD)),
        RetentionLimits(),
        [(None, Pin.FUTURE_TIMESTAMP, None), (None,) * 3],
    ),
    "the high watermark": (
        _log((5, OLD), (5, OLD), (5, OLD)),
        RetentionLimits(DAY, high_watermark=15),
        [(TIME, None, None), (None, Pin.HIGH_WATERMARK, None), (None, Pin.HIGH_WATERMARK, None)],
    ),
    "an empty active one": (
        _log((5, OLD), (0, OLD)),
        RetentionLimits(DAY),
        [(TIME, None, None), (None, Pin.EMPTY_ACTIVE, None)],
    ),
    "bytes: what stays is at least as much": (
        _log((5, YOUNG), (5, YOUNG), (5, YOUNG)),
        RetentionLimits(retention_bytes=9),
        [(BYTES, None, None), (None, None, None), (None, None, None)],
    ),
    "bytes: exactly as much stays": (
        _log((5, YOUNG), (5, YOUNG), (5, YOUNG)),
        RetentionLimits(retention_bytes=5),
        [(BYTES, None, None), (BYTES, None, None), (None, None, None)],
    ),
    "bytes 0 takes all": (_log((5, YOUNG), (5, YOUNG)), RetentionLimits(retention_bytes=0), [(BYTES, None, None)] * 2),
    "bytes stop at a large one": (
        _log((9, YOUNG), (1, YOUNG), (1, YOUNG)),
        RetentionLimits(retention_bytes=5),
        [(None, None, None)] * 3,
    ),
    "before the log start, then bytes, then time": (
        _log((50, FUTURE), (5, FUTURE), (5, OLD), (5, YOUNG)),
        RetentionLimits(DAY, 10, log_start_offset=10),
        [(START, None, None), (BYTES, None, None), (TIME, None, None), (None, None, None)],
    ),
    "the log start within a segment": (
        _log((5, YOUNG), (5, YOUNG)),
        RetentionLimits(log_start_offset=9),
        [(None,) * 3] * 2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    log, limits, expected = CASES[name]
    rows = deletions(log, limits, NOW)
    assert [(row.deletable_now, row.pinned_by, row.pinned_by_segment) for row in rows] == expected


def test_deletable_at_waits_for_the_segments_before() -> None:
    rows = deletions(_log((5, 100), (5, 300), (5, 200), (0, 400)), RetentionLimits(retention_ms=DAY), 500)
    assert [row.deletable_at for row in rows] == [1101, 1301, 1301, None]


def _delete(log: list[LogSegment], watermark: int, predicate: Callable[[LogSegment], bool]) -> int:
    """UnifiedLog.deletableSegments."""
    count = 0
    for segment in log:
        last_and_empty = segment is log[-1] and segment.size_bytes == 0
        if not (watermark >= segment.upper_offset and predicate(segment)) or last_and_empty:
            break
        count += 1
    return count


def _broker(log: list[LogSegment], limits: RetentionLimits, now: int) -> list[DeletionReason | None]:
    watermark = log[-1].upper_offset if limits.high_watermark is None else limits.high_watermark
    start = 0 if limits.log_start_offset is None else limits.log_start_offset
    gone = _delete(log, watermark, lambda segment: segment is not log[-1] and segment.upper_offset <= start)
    reasons: list[DeletionReason | None] = [START] * gone
    if limits.retention_bytes is not None:
        left = log[gone:]
        for count in range(_delete(left, watermark, lambda _: True), 0, -1):
            if sum(segment.size_bytes for segment in left[count:]) >= limits.retention_bytes:
                reasons += [BYTES] * count
                break
    if limits.retention_ms is not None and len(reasons) < len(log):
        limit = limits.retention_ms
        gone = _delete(log[len(reasons) :], watermark, lambda segment: now - segment.largest_timestamp > limit)
        reasons += [TIME] * gone
    return reasons + [None] * (len(log) - len(reasons))


def _check_random_log(seed: int) -> None:
    pick = random.Random(seed)
    log = _log(*((pick.randrange(1, 9), NOW - pick.randrange(-500, 2500)) for _ in range(pick.randrange(1, 7))))
    limits = RetentionLimits(
        pick.choice([None, 0, DAY]),
        pick.choice([None, 0, 4, 11, 20]),
        pick.choice([None, pick.randrange(0, 60)]),
        pick.choice([None, pick.randrange(0, 60)]),
    )
    rows = deletions(log, limits, NOW)
    assert [row.deletable_now for row in rows] == _broker(log, limits, NOW)
    if limits.retention_ms is not None:
        # Of those that stay: at deletable_at this one and those before it go by time, and not a ms before.
        gone = sum(row.deletable_now is not None for row in rows)
        alone = RetentionLimits(limits.retention_ms)
        for number, row in enumerate(rows[gone:]):
            assert row.deletable_at is not None
            assert _broker(log[gone:], alone, row.deletable_at)[number] is TIME
            assert _broker(log[gone:], alone, row.deletable_at - 1)[number] is None


def test_random_logs() -> None:
    for seed in range(300):
        _check_random_log(seed)


def test_a_row_is_a_deletion() -> None:
    assert deletions(_log((1, OLD)), RetentionLimits(), NOW) == [SegmentDeletion(None, None, None, None)]
