"""How groups did over time: their readings, as they stream by, as one value for each bucket of time.

Batches are those of kctl.spark.windows, sorted by group, topic, partition and time. Of a group a few numbers for each
pass are kept while its readings come, and of all groups the few for each bucket: memory does not grow with partitions.

- lag: of all partitions that were read in a pass, added up; not known where one of them was not. The largest of a
  bucket's passes. time_lag: the longest of all partitions, at least.
- worst: of each pass the worst of the partitions, as kctl.lag.status.group_status has it, of alarms only: what a
  group's standing to a topic makes nobody's alarm at that moment is OK (kctl.lag.status.alarm_of). Of a bucket the
  worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kctl.lag.status import DEFAULT_STANDING_RULES, Status
from kctl.report.buckets import Buckets, status_spans
from kctl.report.model import GroupSeries, Series, State
from kctl.spark.column_arrays import bits_of, chosen, known, numbers
from kctl.spark.report_keys import OwnedRows, runs
from kctl.spark.report_states import DEAD, EMPTY, SETTLED, StateStream
from kctl.spark.window_rules import Flags, Ints, Known

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

    found: by group, once all readings have passed; those of other moments than the passes are left out.
    """

    def __init__(self, owned: OwnedRows, states: StateStream, times: Times) -> None:
        self._owned, self._states, self._times = owned, states, times
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
        found = self.found.get(group)
        if found is None:
            return GroupSeries(group, [None] * count, [None] * count, status_spans([None] * count))
        states = (None if state < 0 else _STATES[state] for state in found.worst.tolist())
        return GroupSeries(group, _series(found.lag), _series(found.age), status_spans(states))

    def _push(self, batch: pa.RecordBatch) -> None:
        owned = self._owned.of(batch)
        place = 0
        for name, part in runs(batch, "group"):
            if self._group is None or self._group.name != name:
                self._end()
                for _ in self._states.until(name):
                    pass
                self._group = _Group(name, self._states.of(name).codes, self._times)
            self._group.push(part, owned[place : place + part.num_rows])
            place += part.num_rows

    def _end(self) -> None:
        if self._group is not None:
            self.found[self._group.name] = self._group.compact()
        self._group = None


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

    def push(self, batch: pa.RecordBatch, owned: Flags) -> None:
        """The next readings; owned: whether a member had the partition."""
        place = 0
        for name, part in runs(batch, "topic"):
            if self._topic is None or self._topic.name != name:
                self._end_topic()
                self._topic = _Topic(name, len(self._seen))
            self._add(part, owned[place : place + part.num_rows], self._topic)
            place += part.num_rows

    def compact(self) -> Compact:
        """All of it, by buckets."""
        self._end_topic()
        lag = np.where(self._counted & ~self._lacking, self._lag, -1)
        worst = np.where(self._seen, self._worst, np.int8(-1)).astype(np.int64)
        return Compact(self._peaks(lag), self._peaks(self._age), self._peaks(worst).astype(np.int8))

    def _peaks(self, values: Ints) -> Ints:
        """The largest value of each bucket; -1 where there is none."""
        found = np.full(self._times.buckets.size, -1, dtype=np.int64)
        begins = self._times.begins
        found[self._times.of[begins]] = np.maximum.reduceat(values, begins)
        return found

    def _add(self, part: pa.RecordBatch, owned: Flags, topic: _Topic) -> None:
        at = numbers(part.column("at_ms"))
        place = np.minimum(np.searchsorted(self._times.passes, at), len(self._seen) - 1)
        mine = self._times.passes[place] == at
        if not mine.all():
            part, owned, place = _chosen(part, mine), owned[mine], place[mine]
        committed, lag, age = (known(part.column(name)) for name in ("committed_offset", "lag", "time_lag_least_ms"))
        deleted = bits_of(part.column("deleted"))
        np.add.at(self._lag, place, lag.value)
        self._counted[place[lag.known]] = True
        self._seen[place] = True
        self._lacking[place[committed.known & ~lag.known & ~deleted]] = True
        np.maximum.at(self._age, place[age.known], age.value[age.known])
        status = np.where(owned, _small(part, "status_owned"), _small(part, "status"))
        status[deleted] = Status.OK  # Standing.DELETED
        topic.add(place, status, owned, known(part.column("unchanged_ms")))

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

    def add(self, place: Ints, status: _Small, owned: Flags, unchanged: Known) -> None:
        self._seen[place] = True
        np.maximum.at(self._worst, place, status)
        self._owned[place[owned]] = True
        np.minimum.at(self._unchanged, place[unchanged.known], unchanged.value[unchanged.known])

    def alarms(self, states: _Small) -> _Small:
        """kctl.lag.status: standing_of and alarm_of of each pass, as the group's status."""
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
    found: _Small = numbers(part.column(name).cast(pa.int32())).astype(np.int8)
    return found


def _chosen(part: pa.RecordBatch, mine: Flags) -> pa.RecordBatch:
    arrays = chosen(part, part.schema.names, np.flatnonzero(mine))
    return pa.RecordBatch.from_arrays(arrays, schema=part.schema)
