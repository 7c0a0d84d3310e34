"""Series of groups over time: one value per time bucket, computed from the stream of their readings.

Batches are those of evaluate.windows, sorted by group, topic, partition and time. A few numbers per pass are stored for
the current group, and a few per bucket for each earlier group: memory does not grow with the number of partitions.

- lag: sum over all partitions read in a pass; unknown if the lag of one of them is unknown. A bucket has the maximum of
  its passes. time_lag: the longest time lag (lower bound) of all partitions.
- worst: the worst partition of each pass, as in lag.status.group_status. Partitions whose standing raises no alarm at
  that time are OK (lag.status.alarm_of). A bucket has the worst of its passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kctl.history.evaluate.column_arrays import bits_of, chosen, differs, nullable, numbers
from kctl.history.evaluate.window_rules import Flags, Ints
from kctl.history.lag.status import DEFAULT_STANDING_RULES, Status
from kctl.history.report.buckets import TimeBuckets, status_spans
from kctl.history.report.group_states import DEAD, EMPTY, SETTLED, StateStream
from kctl.history.report.model import GroupSeries, Series, State
from kctl.history.report.owned_rows import OwnedRows

_Small: TypeAlias = npt.NDArray[np.int8]
_NEVER = np.int64(1) << np.int64(62)


@dataclass(frozen=True, slots=True)
class Times:
    """The passes of a report (ms, sorted, at least one) and their buckets."""

    passes: Ints
    buckets: TimeBuckets

    @property
    def bucket_starts(self) -> Ints:
        """Return the first pass of each bucket with passes."""
        return np.flatnonzero(np.diff(self.bucket_of_pass, prepend=-1))

    @property
    def bucket_of_pass(self) -> Ints:
        """Return the bucket of each pass."""
        return (self.passes - self.buckets.from_ms) // self.buckets.bucket_ms


class SeriesWatch:
    """A pass-through stage that computes series from a stream of readings.

    by_group: complete once the stream has ended. Readings that belong to no pass are ignored. judged: there is history;
    otherwise the status is UNKNOWN.
    """

    def __init__(self, owned: OwnedRows, states: StateStream, times: Times, *, judged: bool = True) -> None:
        self._owned, self._states, self._times, self._judged = owned, states, times, judged
        self._group: _Group | None = None
        self.by_group: dict[str, BucketValues] = {}

    def watch(self, readings: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the readings unchanged."""
        for batch in readings:
            if batch.num_rows:
                self._push(batch)
            yield batch
        self._end()

    def series(self, group: str) -> GroupSeries:
        """Return the series of a group; only gaps for an unknown group."""
        count = self._times.buckets.size
        result = self.by_group.get(group)
        if result is None:
            return GroupSeries(group, [None] * count, [None] * count, status_spans([None] * count))
        state_of = _STATES if self._judged else dict.fromkeys(_STATES, State.UNKNOWN)
        states = (None if state < 0 else state_of[state] for state in result.worst.tolist())
        return GroupSeries(group, _series(result.lag), _series(result.age), status_spans(states))

    def _push(self, batch: pa.RecordBatch) -> None:
        owned = self._owned.of(batch)
        at = numbers(batch.column("at_ms"))
        pass_index = np.minimum(np.searchsorted(self._times.passes, at), len(self._times.passes) - 1)
        in_passes = np.flatnonzero(self._times.passes[pass_index] == at)
        if not len(in_passes):  # the pass is outside of the report, or its file in `passes` is damaged
            return
        if len(in_passes) < batch.num_rows:
            arrays = chosen(batch, batch.schema.names, in_passes)
            batch = pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
            owned, pass_index = owned[in_passes], pass_index[in_passes]
        rows = _Rows.of(batch, owned, pass_index)
        groups, topics = batch.column("group"), batch.column("topic")
        begins = np.flatnonzero(differs(groups) | differs(topics)).tolist()
        for begin, end in zip(begins, [*begins[1:], batch.num_rows], strict=True):
            self._group_of(groups[begin].as_py()).push(topics[begin].as_py(), rows.cut(begin, end))

    def _group_of(self, name: str) -> _Group:
        """Return the accumulator of a group; a new name ends the group before it."""
        if self._group is None or self._group.name != name:
            self._end()
            for _ in self._states.until(name):
                pass
            self._group = _Group(name, self._states.of(name).codes, self._times)
        return self._group

    def _end(self) -> None:
        if self._group is not None:
            self.by_group[self._group.name] = self._group.compact()
        self._group = None


class _Rows(NamedTuple):
    """Readings as arrays.

    pass_index: index of the pass. lag, age, unchanged: -1 if unknown. lag_unknown: there is a commit, but the lag is
    unknown. status: the verdict for a partition with or without an owner, depending on `owned`.
    """

    pass_index: Ints
    lag: Ints
    lag_unknown: Flags
    age: Ints
    unchanged: Ints
    status: _Small
    owned: Flags

    @staticmethod
    def of(batch: pa.RecordBatch, owned: Flags, pass_index: Ints) -> _Rows:
        lag = _or_minus_one(batch, "lag")
        deleted = bits_of(batch.column("deleted"))
        status = np.where(owned, _int8_column(batch, "status_owned"), _int8_column(batch, "status"))
        status[deleted] = Status.OK  # Standing.DELETED
        lag_unknown = nullable(batch.column("committed_offset")).valid & (lag < 0) & ~deleted
        age, unchanged = _or_minus_one(batch, "time_lag_least_ms"), _or_minus_one(batch, "unchanged_ms")
        return _Rows(pass_index, lag, lag_unknown, age, unchanged, status, owned)

    def cut(self, begin: int, end: int) -> _Rows:
        return _Rows._make(column[begin:end] for column in self)


def _or_minus_one(batch: pa.RecordBatch, name: str) -> Ints:
    result = nullable(batch.column(name))
    return np.where(result.valid, result.value, np.int64(-1))


class BucketValues(NamedTuple):
    """A group's values by bucket. -1: no reading, or an incomplete one."""

    lag: Ints
    age: Ints
    worst: _Small


def _series(values: Ints) -> Series:
    return [None if value < 0 else value for value in values.tolist()]


class _Group:
    """The accumulated values of a group at each pass. -1 in age: unknown."""

    def __init__(self, name: str, states: _Small, times: Times) -> None:
        size = len(times.passes)
        self.name = name
        self._states, self._times = states, times
        self._lag = np.zeros(size, dtype=np.int64)
        self._present = np.zeros(size, dtype=bool)
        self._counted = np.zeros(size, dtype=bool)
        self._lag_unknown = np.zeros(size, dtype=bool)
        self._age = np.full(size, -1, dtype=np.int64)
        self._worst = np.zeros(size, dtype=np.int8)
        self._topic: _Topic | None = None

    def push(self, topic: str, rows: _Rows) -> None:
        """Add the next readings, all of one topic."""
        if self._topic is None or self._topic.name != topic:
            self._end_topic()
            self._topic = _Topic(topic, len(self._present))
        self._topic.add(rows)
        np.add.at(self._lag, rows.pass_index, np.maximum(rows.lag, 0))
        self._counted[rows.pass_index[rows.lag >= 0]] = True
        self._present[rows.pass_index] = True
        self._lag_unknown[rows.pass_index[rows.lag_unknown]] = True
        np.maximum.at(self._age, rows.pass_index, rows.age)

    def compact(self) -> BucketValues:
        """Return the values by bucket. Call it after the last reading."""
        self._end_topic()
        lag = np.where(self._counted & ~self._lag_unknown, self._lag, -1)
        worst = np.where(self._present, self._worst, np.int8(-1)).astype(np.int64)
        return BucketValues(self._peaks(lag), self._peaks(self._age), self._peaks(worst).astype(np.int8))

    def _peaks(self, values: Ints) -> Ints:
        """Return the largest value of each bucket; -1 if there is none."""
        result = np.full(self._times.buckets.size, -1, dtype=np.int64)
        starts = self._times.bucket_starts
        result[self._times.bucket_of_pass[starts]] = np.maximum.reduceat(values, starts)
        return result

    def _end_topic(self) -> None:
        if self._topic is not None:
            np.maximum(self._worst, self._topic.alarms(self._states), out=self._worst)
        self._topic = None


class _Topic:
    """A topic of a group: the values that decide its standing, at each pass."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self._worst = np.zeros(size, dtype=np.int8)
        self._owned = np.zeros(size, dtype=bool)
        self._present = np.zeros(size, dtype=bool)
        self._unchanged = np.full(size, _NEVER, dtype=np.int64)

    def add(self, rows: _Rows) -> None:
        self._present[rows.pass_index] = True
        np.maximum.at(self._worst, rows.pass_index, rows.status)
        self._owned[rows.pass_index[rows.owned]] = True
        steady = rows.unchanged >= 0
        np.minimum.at(self._unchanged, rows.pass_index[steady], rows.unchanged[steady])

    def alarms(self, states: _Small) -> _Small:
        """Return the status of the topic at each pass, by standing_of and alarm_of in kctl.history.lag.status."""
        rules = DEFAULT_STANDING_RULES
        unchanged = np.where(self._unchanged == _NEVER, -1, self._unchanged)
        no_alarm = states == DEAD
        no_alarm |= (states == EMPTY) & (unchanged >= rules.stale_after_ms)
        no_alarm |= (states == SETTLED) & ~self._owned & (unchanged >= rules.abandoned_after_ms)
        worst: _Small = np.minimum(self._worst, np.int8(Status.ERR))
        worst[no_alarm & self._present] = Status.OK
        return worst


_STATES = {int(status): State[status.name] for status in Status}


def _int8_column(part: pa.RecordBatch, name: str) -> _Small:
    result: _Small = numbers(part.column(name).cast(pa.int32())).astype(np.int8)
    return result
