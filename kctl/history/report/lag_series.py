"""How groups did over time: their readings, as they stream by, as one value for each bucket of time.

Batches are those of evaluate.windows, sorted by group, topic, partition and time. Of a group a few numbers for each
pass are kept while its readings come, and of all groups the few for each bucket: memory does not grow with partitions.

- lag: of all partitions that were read in a pass, added up; not known where one of them was not. The largest of a
  bucket's passes. time_lag: the longest of all partitions, at least.
- worst: of each pass the worst of the partitions, as lag.status.group_status has it, of alarms only: what a
  group's standing to a topic makes nobody's alarm at that moment is OK (lag.status.alarm_of). Of a bucket the
  worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kctl.history.evaluate.column_arrays import bits_of, chosen, differs, known, numbers
from kctl.history.evaluate.window_rules import Flags, Ints
from kctl.history.lag.status import DEFAULT_STANDING_RULES, Status
from kctl.history.report.buckets import Buckets, status_spans
from kctl.history.report.group_states import DEAD, EMPTY, SETTLED, StateStream
from kctl.history.report.model import GroupSeries, Series, State
from kctl.history.report.owned_rows import OwnedRows

_Small: TypeAlias = npt.NDArray[np.int8]
_NEVER = np.int64(1) << np.int64(62)


@dataclass(frozen=True, slots=True)
class Times:
    """The passes of a report (ms, sorted, at least one), and the buckets that they lie in."""

    passes: Ints
    buckets: Buckets

    @property
    def begins(self) -> Ints:
        """The first pass of each bucket that has one."""
        return np.flatnonzero(np.diff(self.of, prepend=-1))

    @property
    def of(self) -> Ints:
        """The bucket of each pass."""
        return (self.passes - self.buckets.from_ms) // self.buckets.bucket_ms


class SeriesWatch:
    """Takes series from readings that pass by on their way to somewhere else.

    found: by group, once all readings have passed; those of other moments than the passes are left out. judged: there
    is history to judge by, else the status is UNKNOWN.
    """

    def __init__(self, owned: OwnedRows, states: StateStream, times: Times, *, judged: bool = True) -> None:
        self._owned, self._states, self._times, self._judged = owned, states, times, judged
        self._group: _Group | None = None
        self.found: dict[str, Compact] = {}

    def watch(self, readings: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The readings as they are."""
        for batch in readings:
            if batch.num_rows:
                self._push(batch)
            yield batch
        self._end()

    def series(self, group: str) -> GroupSeries:
        """What was found of a group; nothing but gaps where it is not known."""
        count = self._times.buckets.size
        result = self.found.get(group)
        if result is None:
            return GroupSeries(group, [None] * count, [None] * count, status_spans([None] * count))
        known = _STATES if self._judged else dict.fromkeys(_STATES, State.UNKNOWN)
        states = (None if state < 0 else known[state] for state in result.worst.tolist())
        return GroupSeries(group, _series(result.lag), _series(result.age), status_spans(states))

    def _push(self, batch: pa.RecordBatch) -> None:
        owned = self._owned.of(batch)
        at = numbers(batch.column("at_ms"))
        place = np.minimum(np.searchsorted(self._times.passes, at), len(self._times.passes) - 1)
        mine = np.flatnonzero(self._times.passes[place] == at)
        if not len(mine):  # of a pass that does not count, or whose file of `passes` is damaged
            return
        if len(mine) < batch.num_rows:
            arrays = chosen(batch, batch.schema.names, mine)
            batch, owned, place = pa.RecordBatch.from_arrays(arrays, schema=batch.schema), owned[mine], place[mine]
        rows = _Rows.of(batch, owned, place)
        groups, topics = batch.column("group"), batch.column("topic")
        begins = np.flatnonzero(differs(groups) | differs(topics)).tolist()
        for begin, end in zip(begins, [*begins[1:], batch.num_rows], strict=True):
            self._of(groups[begin].as_py()).push(topics[begin].as_py(), rows.cut(begin, end))

    def _of(self, name: str) -> _Group:
        """The group that the next readings are of."""
        if self._group is None or self._group.name != name:
            self._end()
            for _ in self._states.until(name):
                pass
            self._group = _Group(name, self._states.of(name).codes, self._times)
        return self._group

    def _end(self) -> None:
        if self._group is not None:
            self.found[self._group.name] = self._group.compact()
        self._group = None


class _Rows(NamedTuple):
    """Readings as arrays. place: of the pass; lag, age, unchanged: -1 where not known; lacking: the lag should be
    known, and is not; status: the verdict for what had an owner or had none."""

    place: Ints
    lag: Ints
    lacking: Flags
    age: Ints
    unchanged: Ints
    status: _Small
    owned: Flags

    @staticmethod
    def of(batch: pa.RecordBatch, owned: Flags, place: Ints) -> _Rows:
        lag = _or_none(batch, "lag")
        deleted = bits_of(batch.column("deleted"))
        status = np.where(owned, _small(batch, "status_owned"), _small(batch, "status"))
        status[deleted] = Status.OK  # Standing.DELETED
        lacking = known(batch.column("committed_offset")).known & (lag < 0) & ~deleted
        age, unchanged = _or_none(batch, "time_lag_least_ms"), _or_none(batch, "unchanged_ms")
        return _Rows(place, lag, lacking, age, unchanged, status, owned)

    def cut(self, begin: int, end: int) -> _Rows:
        return _Rows._make(column[begin:end] for column in self)


def _or_none(batch: pa.RecordBatch, name: str) -> Ints:
    result = known(batch.column(name))
    return np.where(result.known, result.value, np.int64(-1))


class Compact(NamedTuple):
    """A group's values by bucket; -1: nothing was read, or not all."""

    lag: Ints
    age: Ints
    worst: _Small


def _series(values: Ints) -> Series:
    return [None if value < 0 else value for value in values.tolist()]


class _Group:
    """What is known of a group at each pass, so far. -1 in lag and age: nothing was read."""

    def __init__(self, name: str, states: _Small, times: Times) -> None:
        size = len(times.passes)
        self.name = name
        self._states, self._times = states, times
        self._lag = np.zeros(size, dtype=np.int64)
        self._seen = np.zeros(size, dtype=bool)
        self._counted = np.zeros(size, dtype=bool)
        self._lacking = np.zeros(size, dtype=bool)
        self._age = np.full(size, -1, dtype=np.int64)
        self._worst = np.zeros(size, dtype=np.int8)
        self._topic: _Topic | None = None

    def push(self, topic: str, rows: _Rows) -> None:
        """The next readings, all of one topic."""
        if self._topic is None or self._topic.name != topic:
            self._end_topic()
            self._topic = _Topic(topic, len(self._seen))
        self._topic.add(rows)
        np.add.at(self._lag, rows.place, np.maximum(rows.lag, 0))
        self._counted[rows.place[rows.lag >= 0]] = True
        self._seen[rows.place] = True
        self._lacking[rows.place[rows.lacking]] = True
        np.maximum.at(self._age, rows.place, rows.age)

    def compact(self) -> Compact:
        """All of it, by buckets."""
        self._end_topic()
        lag = np.where(self._counted & ~self._lacking, self._lag, -1)
        worst = np.where(self._seen, self._worst, np.int8(-1)).astype(np.int64)
        return Compact(self._peaks(lag), self._peaks(self._age), self._peaks(worst).astype(np.int8))

    def _peaks(self, values: Ints) -> Ints:
        """The largest value of each bucket; -1 where there is none."""
        result = np.full(self._times.buckets.size, -1, dtype=np.int64)
        begins = self._times.begins
        result[self._times.of[begins]] = np.maximum.reduceat(values, begins)
        return result

    def _end_topic(self) -> None:
        if self._topic is not None:
            np.maximum(self._worst, self._topic.alarms(self._states), out=self._worst)
        self._topic = None


class _Topic:
    """A topic of a group: what its standing is judged by, at each pass."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self._worst = np.zeros(size, dtype=np.int8)
        self._owned = np.zeros(size, dtype=bool)
        self._seen = np.zeros(size, dtype=bool)
        self._unchanged = np.full(size, _NEVER, dtype=np.int64)

    def add(self, rows: _Rows) -> None:
        self._seen[rows.place] = True
        np.maximum.at(self._worst, rows.place, rows.status)
        self._owned[rows.place[rows.owned]] = True
        steady = rows.unchanged >= 0
        np.minimum.at(self._unchanged, rows.place[steady], rows.unchanged[steady])

    def alarms(self, states: _Small) -> _Small:
        """kctl.history.lag.status: standing_of and alarm_of of each pass, as the group's status."""
        rules = DEFAULT_STANDING_RULES
        unchanged = np.where(self._unchanged == _NEVER, -1, self._unchanged)
        ghost = states == DEAD
        ghost |= (states == EMPTY) & (unchanged >= rules.stale_after_ms)
        ghost |= (states == SETTLED) & ~self._owned & (unchanged >= rules.abandoned_after_ms)
        worst: _Small = np.minimum(self._worst, np.int8(Status.ERR))
        worst[ghost & self._seen] = Status.OK
        return worst


_STATES = {int(status): State[status.name] for status in Status}


def _small(part: pa.RecordBatch, name: str) -> _Small:
    result: _Small = numbers(part.column(name).cast(pa.int32())).astype(np.int8)
    return result
