"""The vectorized form of kctl.history.lag.window: judge each observation, in a constant number of passes over the rows.

Nothing here walks a window row by row. For each row, the code computes the row indices where its partition, its history
(`cut`) and its window begin, and where an event last or next happened. A rule is then a comparison of indices: "the lag
was allowed in the window" becomes "the last row with an allowed lag is not before the window".

tests/unit/history/test_window_columns.py compares these functions with the oracle in tests/support.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kctl.history.lag.status import Status
from kctl.history.lag.window import WindowRules
from kctl.lag.rates import FARTHEST_MS, LEAST_COMMITS, MS_PER_S

Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
States: TypeAlias = npt.NDArray[np.int8]

_NONE = np.int64(-1)


@dataclass(frozen=True, slots=True)
class NullableInts:
    """Integers that may be null; the value of a null is 0."""

    value: Ints
    valid: Flags


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows sorted by group, topic, partition and time. first: the row starts a partition; cut: it starts a history.

    since_ms: when the committed offset was first observed.
    """

    at_ms: Ints
    committed: NullableInts
    start: NullableInts
    end: NullableInts
    commit_ms: NullableInts | None
    first: Flags
    cut: Flags
    since_ms: Ints

    def __len__(self) -> int:
        return len(self.at_ms)


@dataclass(frozen=True, slots=True)
class Readings:
    """Columns of kctl.history.lag.window.Reading, of selected rows."""

    status: States
    status_owned: States
    observations: Ints
    lag: NullableInts
    lost: NullableInts
    ahead: NullableInts
    unchanged_ms: NullableInts
    time_lag_ms: NullableInts
    time_lag_least_ms: NullableInts
    consumed_per_s: tuple[Floats, Flags]
    produced_per_s: tuple[Floats, Flags]
    catch_up_ms: NullableInts


NAMES = tuple(field.name for field in fields(Readings))


def readings(rows: Rows, chosen: Ints, rules: WindowRules, timed: Ints | None = None) -> Readings:
    """Return the readings of the rows with the indices `chosen`, in that order.

    timed: the rows (indices into `chosen`) that get time lags, rates and catch-up times (None: all). These take half of
    the computing time; other rows have nulls there.
    """
    places = _Places.of(rows, rules)
    c, s, e = (_take(offsets, chosen) for offsets in (rows.committed, rows.start, rows.end))
    both = c.valid & e.valid
    lost_valid = c.valid & s.valid
    unowned, owned = _statuses(rows, places, chosen, rules)
    times = _TimeColumns.of(rows, places, chosen if timed is None else chosen[timed], rules)
    if timed is not None:
        times = times.spread(timed, len(chosen))
    return Readings(
        status=unowned,
        status_owned=owned,
        observations=chosen - places.window[chosen] + 1,
        lag=_lag(c, s, e),
        lost=NullableInts(np.where(lost_valid, np.maximum(s.value - c.value, 0), 0), lost_valid),
        ahead=NullableInts(np.where(both, np.maximum(c.value - e.value, 0), 0), both),
        unchanged_ms=NullableInts(np.where(c.valid, rows.at_ms[chosen] - rows.since_ms[chosen], 0), c.valid),
        time_lag_ms=times.age,
        time_lag_least_ms=times.least,
        consumed_per_s=times.consumption,
        produced_per_s=times.production,
        catch_up_ms=times.catch_up,
    )


def _lag(c: NullableInts, s: NullableInts, e: NullableInts) -> NullableInts:
    valid = c.valid & s.valid & e.valid
    return NullableInts(np.where(valid, np.maximum(e.value - np.maximum(c.value, s.value), 0), 0), valid)


# --- places ---------------------------------------------------------------------------------------------------------


def last_place(happened: Flags) -> Ints:
    """Return, for each row, the index of the last row with an event, at or before the row; -1: none."""
    return np.maximum.accumulate(np.where(happened, np.arange(len(happened)), _NONE))


def _next_place(happened: Flags) -> Ints:
    """Return, for each row, the index of the next row with an event, at or after the row; the number of rows: none."""
    size = len(happened)
    return np.minimum.accumulate(np.where(happened, np.arange(size), size)[::-1])[::-1]


@dataclass(frozen=True, slots=True)
class _Places:
    """The row indices for each row: start of its history and of its window, last and next row with a log end."""

    begin: Ints
    window: Ints
    known_end: Ints
    next_end: Ints

    @staticmethod
    def of(rows: Rows, rules: WindowRules) -> _Places:
        begin = last_place(rows.cut)
        return _Places(begin, _windows(rows, begin, rules), last_place(rows.end.valid), _next_place(rows.end.valid))


def _windows(rows: Rows, begin: Ints, rules: WindowRules) -> Ints:
    """Return the row index where each window begins: `observations` rows back, within the history and the span."""
    result = np.maximum(begin, np.arange(len(rows)) - (rules.observations - 1))
    late = np.flatnonzero(rows.at_ms - rows.at_ms[result] > rules.span_ms)
    while len(late):  # at most `observations` times, over fewer and fewer rows
        result[late] += 1
        late = late[rows.at_ms[late] - rows.at_ms[result[late]] > rules.span_ms]
    return result


def _take(column: NullableInts, chosen: Ints) -> NullableInts:
    return NullableInts(column.value[chosen], column.valid[chosen])


# --- status ---------------------------------------------------------------------------------------------------------


def _statuses(rows: Rows, places: _Places, chosen: Ints, rules: WindowRules) -> tuple[States, States]:
    """Return status and status_owned of kctl.history.lag.window."""
    judged = rows.committed.valid & rows.end.valid
    behind = np.where(judged, np.maximum(rows.end.value - rows.committed.value, 0), 0)
    result = np.where(judged[chosen], np.int8(Status.OK), np.int8(Status.UNKNOWN)).astype(np.int8)
    full = chosen - places.window[chosen] + 1 >= rules.observations
    doubtful = np.flatnonzero(judged[chosen] & full & (behind[chosen] > rules.allowed_lag))
    if not len(doubtful):
        return result, result
    at = chosen[doubtful]
    begin = places.window[at]
    # Rules that do not depend on the owner; the rule with the highest precedence comes last.
    verdict = np.full(len(at), np.int8(Status.OK), dtype=np.int8)
    verdict[_never_less_behind(rows, places, behind, at, begin)] = Status.WARN
    verdict[last_place(_changed(rows))[at] <= begin] = Status.STALL
    verdict[last_place(judged & (behind <= rules.allowed_lag))[at] >= begin] = Status.OK
    verdict[_rewound(rows, at, begin, rules)] = Status.REWIND
    # Log ends never decrease in a history.
    caught_up = rows.end.value[places.next_end[begin]] <= rows.committed.value[at]
    stopped, stopped_owned = _stopped(rows, at, begin)
    unowned, owned = result, result.copy()
    unowned[doubtful] = np.where(stopped & ~caught_up, np.int8(Status.STOP), verdict)
    owned[doubtful] = np.where(stopped_owned & ~caught_up, np.int8(Status.STOP), verdict)
    return unowned, owned


def _changed(rows: Rows) -> Flags:
    """Return the rows in which an offset is first observed."""
    changed: Flags = rows.cut.copy()
    changed[1:] |= rows.committed.value[1:] != rows.committed.value[:-1]
    return changed


def _stopped(rows: Rows, at: Ints, begin: Ints) -> tuple[Flags, Flags]:
    """Return where the silence since the last commit exceeds the time between the first and the last commit.

    Two flags for each row of `at`: without and with a member that owns the partition.
    """
    now, start = rows.at_ms[at], rows.at_ms[begin]
    first, last = start, np.maximum(rows.since_ms[at], start)
    first_owned, last_owned = start, now
    if rows.commit_ms is not None:
        valid, value = rows.commit_ms.valid, np.minimum(rows.commit_ms.value, rows.at_ms)
        first, first_owned = (np.where(valid[begin], value[begin], x) for x in (first, first_owned))
        last, last_owned = (np.where(valid[at], value[at], x) for x in (last, last_owned))
    return now - last > last - first, now - last_owned > last_owned - first_owned


def _never_less_behind(rows: Rows, places: _Places, behind: Ints, at: Ints, begin: Ints) -> Flags:
    """Return where the lag never decreased within the window and is larger than at its start."""
    before = np.empty_like(places.known_end)
    before[:1], before[1:] = _NONE, places.known_end[:-1]
    less = rows.end.valid & (before >= places.begin)
    less &= behind < behind[before]  # `less` is already False where before is -1
    # The start of the last pair of rows between which the lag decreased.
    pair = np.maximum.accumulate(np.where(less, before, _NONE))
    result: Flags = (pair[at] < begin) & (behind[at] > behind[places.next_end[begin]])
    return result


def _rewound(rows: Rows, at: Ints, begin: Ints, rules: WindowRules) -> Ints:
    """Return the rows of `at` with a rewind in their window from which the group has not recovered."""
    c = rows.committed.value
    back = np.zeros(len(rows), dtype=bool)
    back[1:] = ~rows.cut[1:] & (c[1:] < c[:-1])
    if not back.any():
        return np.empty(0, dtype=np.int64)
    first = _next_place(back)[begin + 1]
    inside = np.flatnonzero(first <= at)
    last, rewind = at[inside], first[inside]
    before = c[rewind - 1]
    regained = np.zeros(len(inside), dtype=bool)
    for step in range(rules.observations):
        regained |= c[np.minimum(rewind + step, last)] >= before
    return inside[~regained]


# --- rates and times ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _TimeColumns:
    """The time lags, rates and catch-up times of readings."""

    age: NullableInts
    least: NullableInts
    consumption: tuple[Floats, Flags]
    production: tuple[Floats, Flags]
    catch_up: NullableInts

    @staticmethod
    def of(rows: Rows, places: _Places, chosen: Ints, rules: WindowRules) -> _TimeColumns:
        lag = _lag(*(_take(offsets, chosen) for offsets in (rows.committed, rows.start, rows.end)))
        consumption, production = _consumption(rows, places, chosen), _production(rows, places, chosen)
        age, least = _time_lag(rows, places, chosen, lag, rules)
        catch_up = _catch_up(lag, consumption, production, _keeps_up(rows, places, chosen))
        return _TimeColumns(age, least, consumption, production, catch_up)

    def spread(self, at: Ints, size: int) -> _TimeColumns:
        """Return these values at the places `at` of `size` rows; other rows are null."""

        def integers(values: NullableInts) -> NullableInts:
            result = NullableInts(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool))
            result.value[at], result.valid[at] = values.value, values.valid
            return result

        def rate(values: tuple[Floats, Flags]) -> tuple[Floats, Flags]:
            result = np.zeros(size), np.zeros(size, dtype=bool)
            result[0][at], result[1][at] = values
            return result

        return _TimeColumns(
            integers(self.age),
            integers(self.least),
            rate(self.consumption),
            rate(self.production),
            integers(self.catch_up),
        )


def _rate(messages: Ints, duration_ms: Ints) -> tuple[Floats, Flags]:
    """Return rates.per_second of each row."""
    valid = duration_ms > 0
    divisor = np.where(valid, duration_ms, 1).astype(np.float64)
    return messages.astype(np.float64) / divisor * MS_PER_S, valid


def _consumption(rows: Rows, places: _Places, chosen: Ints) -> tuple[Floats, Flags]:
    c, start = rows.committed.value, rows.start.value  # an unknown start is 0
    consumed = np.zeros(len(rows), dtype=np.int64)
    consumed[1:] = np.where(rows.cut[1:], 0, np.maximum(c[1:] - np.maximum(c[:-1], start[:-1]), 0))
    total = np.cumsum(consumed)
    window = places.window[chosen]
    return _rate(total[chosen] - total[window], rows.at_ms[chosen] - rows.at_ms[window])


def _production(rows: Rows, places: _Places, chosen: Ints) -> tuple[Floats, Flags]:
    """Return the rate from the first to the last known log end in the window. A row without a commit has no window."""
    last, first = places.known_end[chosen], places.next_end[places.window[chosen]]
    valid = (last >= places.window[chosen]) & (first <= chosen)
    last, first = np.where(valid, last, 0), np.where(valid, first, 0)
    return _rate(rows.end.value[last] - rows.end.value[first], rows.at_ms[last] - rows.at_ms[first])


def _keeps_up(rows: Rows, places: _Places, chosen: Ints) -> Flags:
    """Return rates.keeps_up of each row; meaningless where the lag is unknown."""
    new = np.zeros(len(rows), dtype=np.int64)
    new[1:] = ~rows.cut[1:] & (rows.committed.value[1:] > rows.committed.value[:-1])
    total = np.cumsum(new)
    window = places.window[chosen]
    commits, steps = total[chosen] - total[window], chosen - window
    behind = np.maximum(rows.end.value[chosen] - rows.committed.value[chosen], 0)
    # A row with a known lag has a log end, so the window's first log end is in that row or before it.
    written = rows.end.value[chosen] - rows.end.value[np.minimum(places.next_end[window], chosen)]
    few = behind.astype(np.float64) * commits.astype(np.float64) <= written.astype(np.float64)
    result: Flags = (steps > 0) & (commits >= np.minimum(LEAST_COMMITS, steps)) & few
    return result


def _catch_up(
    lag: NullableInts, consumption: tuple[Floats, Flags], production: tuple[Floats, Flags], keeps_up: Flags
) -> NullableInts:
    """Return rates.catch_up_ms of each row."""
    gain = consumption[0] - production[0]
    behind = lag.valid & (lag.value > 0) & ~keeps_up
    gains = behind & consumption[1] & production[1] & (consumption[0] > production[0])
    duration_ms = lag.value.astype(np.float64) / np.where(gains, gain, 1.0) * MS_PER_S
    ends = gains & (duration_ms <= FARTHEST_MS)
    return NullableInts(np.where(ends, duration_ms, 0.0).astype(np.int64), ends | (lag.valid & ~behind))


def _time_lag(
    rows: Rows, places: _Places, chosen: Ints, lag: NullableInts, rules: WindowRules
) -> tuple[NullableInts, NullableInts]:
    """Return rates.time_lag of each row: each lagging row has its own search among the log ends of its history."""
    age, least = np.zeros(len(chosen), dtype=np.int64), np.zeros(len(chosen), dtype=np.int64)
    valid = lag.valid.copy()
    behind = np.flatnonzero(lag.valid & (lag.value > 0))
    if len(behind):
        at = chosen[behind]
        points = np.flatnonzero(rows.end.valid)
        ends, times = rows.end.value[points], rows.at_ms[points]
        count = np.cumsum(rows.end.valid)
        oldest = np.maximum(places.begin[at], at - (rules.history - 1))
        low: Ints = count[oldest] - rows.end.valid[oldest]  # the index in `points` of the oldest point in reach
        high: Ints = count[at] - 1
        offset = rows.end.value[at] - lag.value[behind]
        result = _last_not_beyond(ends, offset, low - 1, high)
        in_reach = result >= low
        early = np.where(in_reach, result, low)
        late = np.minimum(early + 1, high)
        rise = np.where(in_reach, ends[late] - ends[early], 1).astype(np.float64)
        share = np.where(in_reach, offset - ends[early], 0).astype(np.float64) / rise
        written = times[early] + ((times[late] - times[early]).astype(np.float64) * share).astype(np.int64)
        age[behind] = np.where(in_reach, rows.at_ms[at] - written, 0)
        least[behind] = np.where(in_reach, age[behind], rows.at_ms[at] - times[low])
        valid[behind] = in_reach
    return NullableInts(age, valid), NullableInts(least, lag.valid)


def _last_not_beyond(ends: Ints, offset: Ints, low: Ints, high: Ints) -> Ints:
    """Return, for each offset, the last index in (low, high) with an end at or below the offset; low: none.

    ends[high] is above the offset. Most lags are short, so the search goes back in doubling steps, and then bisects
    the last step.
    """
    low, high = low.copy(), high.copy()
    open_ = np.flatnonzero(high - low > 1)
    step = 1
    floor = low[open_]
    while len(open_):
        probe = np.maximum(high[open_] - step, floor + 1)
        below = ends[probe] <= offset[open_]
        low[open_[below]] = probe[below]
        high[open_[~below]] = probe[~below]
        more = ~below & (probe > floor + 1)
        open_, floor = open_[more], floor[more]
        step *= 2
    open_ = np.flatnonzero(high - low > 1)
    while len(open_):
        probe = (low[open_] + high[open_]) >> 1
        below = ends[probe] <= offset[open_]
        low[open_[below]] = probe[below]
        high[open_[~below]] = probe[~below]
        open_ = open_[high[open_] - low[open_] > 1]
    return low
