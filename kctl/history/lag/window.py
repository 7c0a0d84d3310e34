"""Rules for the verdict over a window of snapshots. kctl.history.evaluate.window_rules computes the verdict.

A snapshot has committed offset, log start and log end, but not the commit time. Therefore:

- The window of an observation contains the observation and those before it: `observations` in total, none older than
  `span_ms`. A window with fewer than `observations` is incomplete, and its status is OK (Burrow: minimum-complete = 1).
- Each observation in the window counts as a commit. Its time is `commit_ms` if known, otherwise the time when the
  offset was first observed, but not before the start of the window. Burrow's rules (kctl.history.lag.status) then give
  `status`: no new offset for more than half of the window is STOP.
- A member that owns the partition commits unchanged offsets too. `status_owned` is the verdict for a partition with an
  owner: without `commit_ms`, commits count at the time of their observation, so the verdict is never STOP. No new
  offset in the whole window is STALL.
- The rules use the lag end − committed, which includes messages that were deleted unread. A constant lag is not WARN.
- A new window begins after a gap: where the partition had no commit, where the topic ID changed, and where the log end
  decreased (topic recreated, log truncated). Offsets before and after the gap are not comparable.
- Observations are sorted by time. Of several at the same time, the first one counts. Negative offsets count as missing.

Limitation: a group that commits less often than the length of the window appears stopped. Use a longer window.
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
    committed offset minus log end, if positive. unchanged_ms: how long the committed offset has been unchanged, at
    least. time_lag_ms, time_lag_least_ms: kctl.lag.rates.TimeLag. catch_up_ms: 0 for a group that keeps up, even if it
    lags a few messages (kctl.lag.rates.keeps_up).
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
