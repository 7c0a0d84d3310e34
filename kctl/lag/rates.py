"""Rates, time lag and catch-up, from observations. Pure.

Time lag is the age of the next message to read. Between two observed log ends, the write time of a message is
interpolated (as in kafka-lag-exporter), but never extrapolated: a message older than the first observation has at least
the age of that observation.

A group that keeps up is rarely at the log end when observed: it commits periodically, and messages are written
meanwhile. That distance does not grow, and the difference between its rates is an artifact of when it was observed.
`keeps_up` distinguishes it from a group that falls behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MS_PER_S = 1000


class LogEnd(NamedTuple):
    """A log end offset at a time (ms)."""

    at_ms: int
    offset: int


class TimeLag(NamedTuple):
    """A time lag. ms: None if unknown. at_least_ms: a lower bound, None only if nothing is known."""

    ms: int | None
    at_least_ms: int | None


def time_lag(points: Sequence[LogEnd], offset: int) -> TimeLag:
    """Return the age of the message at `offset`, the next to read, at the time of the last of `points`.

    points: of one log, times and offsets never decreasing. 0 at the log end.
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
    # Floats as in numpy, so that both evaluations give the same milliseconds.
    share = float(offset - low) / float(high - low)
    written = early_ms + int(float(late_ms - early_ms) * share)
    return TimeLag(now_ms - written, now_ms - written)


def per_second(messages: int, duration_ms: int) -> float | None:
    """Return a rate; None without a duration."""
    return float(messages) / float(duration_ms) * MS_PER_S if duration_ms > 0 else None


def consumed(before: int, log_start_before: int | None, after: int) -> int:
    """Return the messages read between two observations: how far the committed offset advanced.

    Messages deleted before the first observation were skipped, not read. A rewind counts as 0, and messages that are
    read again afterwards count again.
    """
    return max(after - max(before, log_start_before or 0), 0)


def catch_up_ms(lag: int | None, consumed_per_s: float | None, produced_per_s: float | None) -> int | None:
    """Return the time until the lag is 0 at the current rates; None: later than FARTHEST_MS, or unknown."""
    if lag is None:
        return None
    if lag <= 0:
        return 0
    if consumed_per_s is None or produced_per_s is None or consumed_per_s <= produced_per_s:
        return None
    duration = float(lag) / (consumed_per_s - produced_per_s) * MS_PER_S
    return int(duration) if duration <= FARTHEST_MS else None


def keeps_up(behind: int, written: int, new_commits: int, steps: int) -> bool:
    """Return True if a group is behind by at most what is written between two of its commits, on average.

    behind: at the end of a window (end − committed, so messages deleted unread count). written: messages in the window.
    new_commits: observations with a new commit. steps: intervals between the observations. A single commit does not
    count as keeping up, since the group may have stopped (unless the window has just one step).
    """
    if steps <= 0 or new_commits < min(LEAST_COMMITS, steps):
        return False
    # Floats as in numpy: no product overflows.
    return float(behind) * float(new_commits) <= float(written)


LEAST_COMMITS = 2
FARTHEST_MS = 30 * 24 * 3_600_000  # rates measured over minutes cannot predict more
MAX_MS = float(2**53)  # 285,000 years: stands for never, and fits into int64
