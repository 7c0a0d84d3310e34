"""Snapshots of a partition, judged one after another: the plain reference of kctl.history.evaluate.window_rules.

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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from kctl.history.lag.status import Commit, Status, commit_status
from kctl.lag.rates import LogEnd, TimeLag, catch_up_ms, consumed, keeps_up, per_second, time_lag
from kctl.lag.rules import lag_of, lost_of

MINUTE_MS = 60_000


class Observation(NamedTuple):
    """One partition of one group in one snapshot. None: no commit, or not known.

    commit_ms: when it was committed, from __consumer_offsets.
    """

    at_ms: int
    committed_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    topic_id: str | None = None
    commit_ms: int | None = None


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


def judge(observations: Iterable[Observation], rules: WindowRules = DEFAULT_RULES) -> list[Reading]:
    """A reading for each moment of one partition of one group, in order of time. Raises ValueError for odd rules."""
    check_rules(rules)
    rows = _cleaned(observations)
    begin = 0
    found = []
    for index, row in enumerate(rows):
        if index and _is_cut(rows[:index], row):
            begin = index
        found.append(_reading(rows[begin : index + 1], rules))
    return found


def check_rules(rules: WindowRules) -> None:
    """Raises ValueError for windows in which nothing could be told."""
    if rules.observations < 2 or rules.span_ms <= 0 or rules.history < rules.observations or rules.allowed_lag < 0:
        raise ValueError(f"no window can be had by {rules}")


def _cleaned(observations: Iterable[Observation]) -> list[Observation]:
    """In order of time, the first of each moment, offsets that are none as None."""
    by_time: dict[int, Observation] = {}
    for row in observations:
        by_time.setdefault(row.at_ms, row)
    return [
        row._replace(
            committed_offset=_offset(row.committed_offset),
            log_start_offset=_offset(row.log_start_offset),
            log_end_offset=_offset(row.log_end_offset),
        )
        for _, row in sorted(by_time.items())
    ]


def _offset(value: int | None) -> int | None:
    return value if value is not None and value >= 0 else None


def _is_cut(before: Sequence[Observation], row: Observation) -> bool:
    """Whether history begins anew with `row`."""
    if row.committed_offset is None or before[-1].committed_offset is None:
        return True
    topic_id = next((r.topic_id for r in reversed(before) if r.topic_id is not None), None)
    if row.topic_id is not None and topic_id is not None and row.topic_id != topic_id:
        return True
    end = next((r.log_end_offset for r in reversed(before) if r.log_end_offset is not None), None)
    return row.log_end_offset is not None and end is not None and row.log_end_offset < end


def _reading(rows: Sequence[Observation], rules: WindowRules) -> Reading:
    """The reading of the last of `rows`, which are all of one history."""
    row = rows[-1]
    committed, start, end = row.committed_offset, row.log_start_offset, row.log_end_offset
    window = [r for r in rows[-rules.observations :] if row.at_ms - r.at_ms <= rules.span_ms]
    lag = lag_of(committed, start, end)
    age = _time_lag(rows[-rules.history :], committed, start, end)
    consumption = _consumption(window)
    production = _production(window)
    return Reading(
        at_ms=row.at_ms,
        status=_status(window, rows, rules, owned=False),
        status_owned=_status(window, rows, rules, owned=True),
        observations=len(window),
        lag=lag,
        lost=lost_of(committed, start),
        ahead=None if committed is None or end is None else max(committed - end, 0),
        unchanged_ms=None if committed is None else row.at_ms - _first_seen(rows),
        time_lag_ms=age.ms,
        time_lag_least_ms=age.at_least_ms,
        consumed_per_s=consumption,
        produced_per_s=production,
        catch_up_ms=catch_up_ms(0 if lag and _keeps_up(window) else lag, consumption, production),
    )


def _first_seen(rows: Sequence[Observation]) -> int:
    """When the last committed offset was first seen, without another one since."""
    last, since = rows[-1].committed_offset, rows[-1].at_ms
    for row in reversed(rows):
        if row.committed_offset != last:
            break
        since = row.at_ms
    return since


def _status(window: Sequence[Observation], rows: Sequence[Observation], rules: WindowRules, *, owned: bool) -> Status:
    row = rows[-1]
    if row.committed_offset is None or row.log_end_offset is None:
        return Status.UNKNOWN
    lag = max(row.log_end_offset - row.committed_offset, 0)
    if len(window) < rules.observations or lag <= rules.allowed_lag:
        return Status.OK
    commits = [
        Commit(r.committed_offset, _committed_at(window, i, owned=owned), _behind(r))
        for i, r in enumerate(window)
        if r.committed_offset is not None
    ]
    ends = [r.log_end_offset for r in window if r.log_end_offset is not None]
    return commit_status(commits, ends, lag, row.at_ms, allowed_lag=rules.allowed_lag, steady_is_ok=True)


def _committed_at(window: Sequence[Observation], index: int, *, owned: bool) -> int:
    """When what was observed was committed; never after that (clocks of brokers and collectors differ)."""
    row = window[index]
    if row.commit_ms is not None:
        return min(row.commit_ms, row.at_ms)
    return row.at_ms if owned else _first_seen(window[: index + 1])


def _behind(row: Observation) -> int | None:
    if row.log_end_offset is None or row.committed_offset is None:
        return None
    return max(row.log_end_offset - row.committed_offset, 0)


def _time_lag(rows: Sequence[Observation], committed: int | None, start: int | None, end: int | None) -> TimeLag:
    if committed is None or start is None or end is None:
        return TimeLag(None, None)
    points = [LogEnd(r.at_ms, r.log_end_offset) for r in rows if r.log_end_offset is not None]
    return time_lag(points, max(committed, start))


def _consumption(window: Sequence[Observation]) -> float | None:
    read = 0
    for before, after in pairwise(window):
        if before.committed_offset is None or after.committed_offset is None:
            return None
        read += consumed(before.committed_offset, before.log_start_offset, after.committed_offset)
    return per_second(read, window[-1].at_ms - window[0].at_ms)


def _keeps_up(window: Sequence[Observation]) -> bool:
    behind = _behind(window[-1])
    if behind is None:
        return False
    commits = [r.committed_offset for r in window if r.committed_offset is not None]
    ends = [r.log_end_offset for r in window if r.log_end_offset is not None]
    new = sum(after > before for before, after in pairwise(commits))
    return keeps_up(behind, ends[-1] - ends[0], new, len(window) - 1)


def _production(window: Sequence[Observation]) -> float | None:
    ends = [(r.at_ms, r.log_end_offset) for r in window if r.log_end_offset is not None]
    return per_second(ends[-1][1] - ends[0][1], ends[-1][0] - ends[0][0]) if ends else None
