"""Rules of the verdict over a window of snapshots, which kctl.history.evaluate.window_rules computes.

A snapshot has committed offset, log start and log end, but not the commit time. Therefore:

- The window of an observation is the last `observations` ones, itself included, none older than `span_ms`. With fewer
  than `observations` it is incomplete, and says OK (Burrow: minimum-complete = 1).
- Each observation in the window is taken for a commit, made at: `commit_ms` where it is known; else, when the offset
  was first seen, at the earliest at the window's start. Burrow's rules (kctl.history.lag.status) then give `status`:
  no new offset for more than half of the window is STOP.
- A member that a partition is assigned to commits also what does not change. `status_owned` is the verdict if there is
  one: commits made when they were observed, never STOP; no new offset in the whole window is STALL.
- The lag that is judged is end − committed, including messages deleted unread. A constant lag is not WARN.
- History is cut, and a new window begins, where a partition had no commit; where the topic has another id than was
  last known; and where the log end is before the last known one (topic made anew, log truncated): offsets before and
  after are not of one log.
- Observations are sorted by time; of several of one moment the first counts. Negative offsets are none.

Limitation: a group that commits less often than the window is long looks stopped. Use a longer window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kctl.history.lag.status import Status

MINUTE_MS = 60_000


class WindowRules(NamedTuple):
    """Parameters of windows.

    observations: size of a full window, at least 2. span_ms: maximum length. history: number of earlier observations
    searched for the time lag. allowed_lag: lag that counts as caught up.
    """

    observations: int = 10
    span_ms: int = 30 * MINUTE_MS
    history: int = 1440
    allowed_lag: int = 0


DEFAULT_RULES = WindowRules()


@dataclass(frozen=True, slots=True)
class Reading:
    """The verdict and values of one observation. Rates are messages per second over its window, durations are ms.

    status: if the partition has no known owner; status_owned: if it has one. observations: number in the window. ahead:
    committed offset minus log end, if beyond it. unchanged_ms: minimum time that the committed offset is the same.
    time_lag_ms, time_lag_least_ms: kctl.lag.rates.TimeLag. catch_up_ms: 0 for a group that keeps up, although it lags a
    few messages (kctl.lag.rates.keeps_up).
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
    """Raise ValueError for windows that allow no verdict."""
    if rules.observations < 2 or rules.span_ms <= 0 or rules.history < rules.observations or rules.allowed_lag < 0:
        raise ValueError(f"invalid window rules: {rules}")
