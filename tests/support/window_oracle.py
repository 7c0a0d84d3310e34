"""Snapshots of a partition, evaluated one by one in plain Python: the oracle of kctl.history.evaluate.windows.

The rules are those of kctl.history.lag.window and kctl.history.lag.status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from kctl.history.lag.status import Status
from kctl.history.lag.window import DEFAULT_RULES, Reading, WindowRules, check_rules
from kctl.lag.rates import LogEnd, TimeLag, catch_up_ms, consumed, keeps_up, per_second, time_lag
from kctl.lag.rules import lag_of, lost_of


class Observation(NamedTuple):
    """One partition of one group in one snapshot. None: no commit, or unknown.

    commit_ms: the commit time, from __consumer_offsets.
    """

    at_ms: int
    committed_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    topic_id: str | None = None
    commit_ms: int | None = None


def judge(observations: Iterable[Observation], rules: WindowRules = DEFAULT_RULES) -> list[Reading]:
    """Return a reading for each time of a partition of a group, in order. Raises ValueError for invalid rules."""
    check_rules(rules)
    rows = _cleaned(observations)
    begin = 0
    found = []
    for index, row in enumerate(rows):
        if index and _is_cut(rows[:index], row):
            begin = index
        found.append(_reading(rows[begin : index + 1], rules))
    return found


def _cleaned(observations: Iterable[Observation]) -> list[Observation]:
    """Return the observations by time, the first of each, with invalid offsets as None."""
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
    """Return True if a new history starts with `row`."""
    if row.committed_offset is None or before[-1].committed_offset is None:
        return True
    topic_id = next((r.topic_id for r in reversed(before) if r.topic_id is not None), None)
    if row.topic_id is not None and topic_id is not None and row.topic_id != topic_id:
        return True
    end = next((r.log_end_offset for r in reversed(before) if r.log_end_offset is not None), None)
    return row.log_end_offset is not None and end is not None and row.log_end_offset < end


def _reading(rows: Sequence[Observation], rules: WindowRules) -> Reading:
    """Return the reading of the last of `rows`, which are of one history."""
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
    """Return when the last committed offset was first read, without another one since."""
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
    """Return the commit time of an observation; never after it, although clocks of brokers and collectors differ."""
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


# --- Burrow's rules ---------------------------------------------------------------------------------------------------


class Commit(NamedTuple):
    """A committed offset, its commit time (ms), and its lag in messages; None: unknown."""

    offset: int
    at_ms: int
    lag: int | None


def commit_status(
    commits: Sequence[Commit],
    log_ends: Iterable[int],
    lag: int,
    now_ms: int,
    *,
    allowed_lag: int = 0,
    steady_is_ok: bool = False,
) -> Status:
    """Return the verdict on `commits` (oldest first, at least one) as of now.

    log_ends: the last readings of the log end. lag: the current one, end − last commit, with deleted messages.
    steady_is_ok: WARN only where the lag has grown. Burrow also warns if the lag stays the same while offsets
    advance, as in a group that keeps up at a distance. Raises ValueError without commits.
    """
    if not commits:
        raise ValueError("no commits to judge")
    if lag <= allowed_lag:
        return Status.OK
    if is_stopped(commits, now_ms) and not was_caught_up(commits, log_ends):
        return Status.STOP
    back = first_rewind(commits)
    if back is not None and not is_regained(commits, back):
        return Status.REWIND
    if not is_always_behind(commits, allowed_lag):
        return Status.OK
    if is_stalled(commits):
        return Status.STALL
    if never_less_behind(commits) and not (steady_is_ok and not _has_grown(commits)):
        return Status.WARN
    return Status.OK


def is_stopped(commits: Sequence[Commit], now_ms: int) -> bool:
    """Return True if the time since the last commit exceeds the time from the first to the last."""
    first, last = commits[0].at_ms, commits[-1].at_ms
    return now_ms - last > last - first


def was_caught_up(commits: Sequence[Commit], log_ends: Iterable[int]) -> bool:
    """Return True if the log ended at or before the last commit in one of the last readings."""
    return any(end <= commits[-1].offset for end in log_ends)


def first_rewind(commits: Sequence[Commit]) -> int | None:
    """Return the position of the first offset below the previous one."""
    return next((i for i in range(1, len(commits)) if commits[i].offset < commits[i - 1].offset), None)


def is_regained(commits: Sequence[Commit], rewind: int) -> bool:
    """Return True if the offset before the rewind was reached again."""
    before = commits[rewind - 1].offset
    return any(commit.offset >= before for commit in commits[rewind:])


def is_always_behind(commits: Iterable[Commit], allowed_lag: int) -> bool:
    """Return True if no commit had an allowed lag; unknown lags are ignored."""
    return all(commit.lag is None or commit.lag > allowed_lag for commit in commits)


def is_stalled(commits: Sequence[Commit]) -> bool:
    """Return True if all commits have the same offset."""
    return all(commit.offset == commits[0].offset for commit in commits)


def never_less_behind(commits: Iterable[Commit]) -> bool:
    """Return True if no lag is below the previous one; unknown lags are skipped."""
    lags = [commit.lag for commit in commits if commit.lag is not None]
    return all(after >= before for before, after in pairwise(lags))


def _has_grown(commits: Iterable[Commit]) -> bool:
    lags = [commit.lag for commit in commits if commit.lag is not None]
    return bool(lags) and lags[-1] > lags[0]
