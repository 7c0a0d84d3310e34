"""What windows of snapshots are judged by, and what a judgement says: kctl.history.evaluate.window_rules computes it.

A snapshot says what was committed and where the log began and ended, not when it was committed. So:

- The window of an observation is the last `observations` ones, itself included, none older than `span_ms`. With fewer
  than `observations` it is incomplete, and says OK (Burrow: minimum-complete = 1).
- Each observation in the window is taken for a commit, made at: `commit_ms` where it is known; else, when the offset
  was first seen, at the earliest at the window's start. Burrow's rules (kctl.history.lag.status) then give `status`:
  no new offset for more than half of the window is STOP.
- A member that a partition is assigned to commits also what does not change. `status_owned` is the verdict if there is
  one: commits made when they were observed, never STOP; no new offset in the whole window is STALL.
- The lag that is judged is end − committed: what was deleted unread counts as behind. A steady lag is no WARN.
- History is cut, and a new window begins, where a partition had no commit; where the topic has another id than was
  last known; and where the log end is before the last known one (topic made anew, log truncated): offsets before and
  after are not of one log.
- Observations are sorted by time; of several of one moment the first counts. Negative offsets are none.

What cannot be seen: a group that commits more seldom than the window is long looks stopped. Lengthen the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kctl.history.lag.status import Status

MINUTE_MS = 60_000


class WindowRules(NamedTuple):
    """observations: in a full window, at least 2. span_ms: it reaches back no further. history: how many observations
    before one are searched for the time lag. allowed_lag: as many messages behind is not behind."""

    observations: int = 10
    span_ms: int = 30 * MINUTE_MS
    history: int = 1440
    allowed_lag: int = 0


DEFAULT_RULES = WindowRules()


@dataclass(frozen=True, slots=True)
class Reading:
    """What one observation comes to. Rates are messages a second over its window, durations are ms.

    status: if nobody is assigned the partition, or it is not known; status_owned: if somebody is. observations: in the
    window. ahead: committed beyond the log end. unchanged_ms: for how long at least the committed offset is the same.
    time_lag_ms, time_lag_least_ms: kctl.lag.rates.TimeLag. catch_up_ms: 0 for a group that keeps up, although it is
    some messages behind (kctl.lag.rates.keeps_up).
    """

    at_ms: int
    status: Status
    status_owned: Status
    observations: int
    lag: int | None
    lost: int | None
    ahead: int | None
    unchanged_ms: int | None
    time_lag_ms: int | None
    time_lag_least_ms: int | None
    consumed_per_s: float | None
    produced_per_s: float | None
    catch_up_ms: int | None


def check_rules(rules: WindowRules) -> None:
    """Raises ValueError for windows in which nothing could be told."""
    if rules.observations < 2 or rules.span_ms <= 0 or rules.history < rules.observations or rules.allowed_lag < 0:
        raise ValueError(f"no window can be had by {rules}")
