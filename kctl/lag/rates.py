"""Rates, time lag and catch-up, from what was observed. Pure.

Time lag is how long ago the next message to read was written. Where the log ended at two moments, between which the
message at `offset` was written, its time is interpolated between them (as kafka-lag-exporter does). It is never
extrapolated: a message that is older than all that was observed has at least the age of the first observation.

A group that keeps up is never at the end of the log when somebody looks: it commits now and then, and messages are
written meanwhile. What it is behind then is no lag that grows, and the difference of its rates is that of when it was
looked at. So `keeps_up` tells it from one that falls behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MS_PER_S = 1000


class LogEnd(NamedTuple):
    """Where a log ended at a moment (ms)."""

    at_ms: int
    offset: int


class TimeLag(NamedTuple):
    """ms: the time lag; None: not known. at_least_ms: what it cannot be below, None only where nothing is known."""

    ms: int | None
    at_least_ms: int | None


def time_lag(points: Sequence[LogEnd], offset: int) -> TimeLag:
    """The age, at the last of `points`, of the message at `offset`: the next that is to be read.

    points: of one log, times and offsets never decreasing. Nothing is to be read at the log end: 0.
    """
    if not points:
        return TimeLag(None, None)
    now_ms, end = points[-1]
    if offset >= end:
        return TimeLag(0, 0)
    before = next((i for i in range(len(points) - 1, -1, -1) if points[i].offset <= offset), None)
    if before is None:
        return TimeLag(None, now_ms - points[0].at_ms)
    (early_ms, low), (late_ms, high) = points[before], points[before + 1]
    # Floats as numpy makes them, so that both evaluations give the same milliseconds.
    share = float(offset - low) / float(high - low)
    written = early_ms + int(float(late_ms - early_ms) * share)
    return TimeLag(now_ms - written, now_ms - written)


def per_second(messages: int, duration_ms: int) -> float | None:
    """A rate; None without a duration."""
    return float(messages) / float(duration_ms) * MS_PER_S if duration_ms > 0 else None


def consumed(before: int, log_start_before: int | None, after: int) -> int:
    """Messages read from one observation to the next: the way forward of the committed offset.

    What was deleted already when the way began was jumped over, not read. A rewind is no negative reading: what
    is read again after it counts again.
    """
    return max(after - max(before, log_start_before or 0), 0)


def catch_up_ms(lag: int | None, consumed_per_s: float | None, produced_per_s: float | None) -> int | None:
    """When the lag is gone if both rates stay; None: not within FARTHEST_MS, or not known."""
    if lag is None:
        return None
    if lag <= 0:
        return 0
    if consumed_per_s is None or produced_per_s is None or consumed_per_s <= produced_per_s:
        return None
    took = float(lag) / (consumed_per_s - produced_per_s) * MS_PER_S
    return int(took) if took <= FARTHEST_MS else None


def keeps_up(behind: int, written: int, new_commits: int, steps: int) -> bool:
    """Whether a group is behind by no more than what is written from one of its commits to the next, on average.

    All of a window: behind at its end (end − committed: what was deleted unread counts), messages written in it, how
    often a commit further on was seen, and how many steps the window has. A single commit in it is no habit: the group
    may have stopped since. (In a window of one step it is all that there can be.)
    """
    if steps <= 0 or new_commits < min(LEAST_COMMITS, steps):
        return False
    # Floats, as numpy has them: no product overflows.
    return float(behind) * float(new_commits) <= float(written)


LEAST_COMMITS = 2
FARTHEST_MS = 30 * 24 * 3_600_000  # rates of minutes say nothing of what comes later
MAX_MS = float(2**53)  # 285,000 years: longer is never, and no number that int64 would not hold
