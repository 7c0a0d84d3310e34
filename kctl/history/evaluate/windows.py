"""Evaluate snapshots as a stream: turn Arrow batches of the table `commits` into batches of readings.

Batches are sorted by group, topic, partition and time; a batch may end anywhere. The rows of the previous batch that a
window or a time lag needs are carried over (at most `rules.history` rows of one partition), so memory use does not
grow. The rules are those of kctl.history.lag.window, implemented by kctl.history.evaluate.window_rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from kctl.history.evaluate.column_arrays import chosen, differs, nullable, numbers, numeric
from kctl.history.evaluate.window_rules import Flags, Ints, NullableInts, Readings, Rows, last_place, readings
from kctl.history.lag.window import DEFAULT_RULES, WindowRules, check_rules

KEY = ("group", "topic", "partition")
OFFSETS = ("committed_offset", "log_start_offset", "log_end_offset")
READING_COLUMNS = (*KEY, "at_ms", *OFFSETS)
OPTIONAL_COLUMNS = ("deleted",)
COMMIT_TIME = "commit_ms"
_Key: TypeAlias = tuple[str, str, int]

READING_TYPES: dict[str, pa.DataType] = {
    "status": pa.int8(),
    "status_owned": pa.int8(),
    "observations": pa.int64(),
    "lag": pa.int64(),
    "lost": pa.int64(),
    "ahead": pa.int64(),
    "unchanged_ms": pa.int64(),
    "time_lag_ms": pa.int64(),
    "time_lag_least_ms": pa.int64(),
    "consumed_per_s": pa.float64(),
    "produced_per_s": pa.float64(),
    "catch_up_ms": pa.int64(),
}


class NotSorted(ValueError):
    """Raised if rows are not in the order that windows need."""


@dataclass(frozen=True, slots=True)
class _Tail:
    """The state of the last partition of a batch, for the next batch.

    rows: its last rows. known_end, known_id: the last known log end and topic id, also from older rows.
    """

    key: _Key
    rows: Rows
    known_end: int | None
    known_id: str | None


class Windows:
    """An evaluator of a stream of batches.

    last_only: return only the last reading of each partition, for a report of one point in time. last_timed: time
    lags, rates and catch-up times, which evaluate.spans needs only in the last reading of a partition, are null in
    others (except in the last of a batch). from_ms: earlier rows only serve as history and have no reading.
    """

    def __init__(
        self,
        rules: WindowRules = DEFAULT_RULES,
        *,
        last_only: bool = False,
        last_timed: bool = False,
        from_ms: int | None = None,
    ) -> None:
        check_rules(rules)
        self._rules, self._last_only, self._last_timed, self._from_ms = rules, last_only, last_timed, from_ms
        self._tail: _Tail | None = None
        self._pending: pa.RecordBatch | None = None

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the readings of `batch`, or of the partitions that end in it. Raises NotSorted, TypeError, KeyError."""
        if batch.num_rows == 0:
            return
        same = self._tail is not None and _key(batch, 0) == self._tail.key
        tail = self._tail if same else None
        first = _first_rows(batch)
        first[0] = tail is None
        places = _distinct(batch, first, tail)
        if not len(places):
            return
        # The first remaining row may belong to the next partition, if the rows before it are duplicates.
        if self._pending is not None and first[places[0]]:
            yield self._pending
        self._pending = None
        if len(places) < batch.num_rows:
            batch, first = _at(batch, places), first[places]
        rows, known_id = _rows(batch, first, tail)
        size = len(rows) - batch.num_rows
        yield from self._readings(batch, rows, size)
        self._tail = _tail(batch, rows, known_id, tail, self._rules)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the reading that was held back because its partition might have continued."""
        if self._pending is not None:
            yield self._pending
        self._pending = self._tail = None

    def _readings(self, batch: pa.RecordBatch, rows: Rows, size: int) -> Iterator[pa.RecordBatch]:
        """Yield the readings of the rows after the first `size`, which belong to the tail."""
        places = np.arange(size, len(rows))
        last = np.ones(len(rows), dtype=bool)
        last[:-1] = rows.first[1:]
        if self._last_only:
            places = places[last[size:]]
        if self._from_ms is not None:
            places = places[rows.at_ms[places] >= self._from_ms]
        if not len(places):
            return
        timed = np.flatnonzero(last[places]) if self._last_timed else None
        result = _batch(batch, places - size, readings(rows, places, self._rules, timed))
        if not self._last_only or places[-1] != len(rows) - 1:
            yield result
            return
        self._pending = result.slice(len(places) - 1)
        if len(places) > 1:
            yield result.slice(0, len(places) - 1)


def judge_batches(
    batches: Iterable[pa.RecordBatch],
    rules: WindowRules = DEFAULT_RULES,
    *,
    last_only: bool = False,
    last_timed: bool = False,
    from_ms: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the readings of all batches, by `Windows`."""
    windows = Windows(rules, last_only=last_only, last_timed=last_timed, from_ms=from_ms)
    for batch in batches:
        yield from windows.push(batch)
    yield from windows.finish()


# --- from Arrow -----------------------------------------------------------------------------------------------------


def _key(batch: pa.RecordBatch, place: int) -> _Key:
    group, topic, partition = (batch.column(name)[place].as_py() for name in KEY)
    return group, topic, partition


def _first_rows(batch: pa.RecordBatch) -> Flags:
    """Return where group, topic or partition differs from the row before."""
    result = differs(batch.column("partition"))
    for name in ("group", "topic"):
        result |= differs(batch.column(name))
    return result


def _distinct(batch: pa.RecordBatch, first: Flags, tail: _Tail | None) -> Ints:
    """Return the indices of rows whose time differs from the row before. Raises NotSorted."""
    at = numbers(batch.column("at_ms"))
    before = np.empty_like(at)
    before[1:] = at[:-1]
    before[0] = at[0] if tail is None else tail.rows.at_ms[-1]
    if np.any(~first & (at < before)):
        raise NotSorted("snapshots are not sorted by time within each partition of a group")
    return np.flatnonzero(first | (at > before))


def _at(batch: pa.RecordBatch, places: Ints) -> pa.RecordBatch:
    names = batch.schema.names
    return pa.RecordBatch.from_arrays(chosen(batch, names, places), schema=batch.schema)


def _rows(batch: pa.RecordBatch, first: Flags, tail: _Tail | None) -> tuple[Rows, str | None]:
    """Return the rows of the tail and the batch, and the last known topic id of the last row's partition."""
    committed, start, end = (nullable(batch.column(name)) for name in OFFSETS)
    at = numbers(batch.column("at_ms"))
    names = batch.schema.names
    commit = nullable(batch.column("commit_ms")) if "commit_ms" in names else None
    cut = first.copy()
    cut[1:] |= ~committed.valid[1:] | ~committed.valid[:-1]
    cut |= _end_fell(end, first, tail)
    other_id, known_id = _other_ids(batch, first, tail) if "topic_id" in names else (None, None)
    if other_id is not None:
        cut |= other_id
    if tail is not None:
        cut[0] |= not (committed.valid[0] and tail.rows.committed.valid[-1])
    rows = Rows(at, committed, start, end, commit, first, cut, at)
    if tail is not None:
        rows = _joined(tail.rows, rows)
    return replace(rows, since_ms=_since(rows, tail)), known_id


def _joined(before: Rows, after: Rows) -> Rows:
    def both(a: NullableInts, b: NullableInts) -> NullableInts:
        return NullableInts(np.concatenate([a.value, b.value]), np.concatenate([a.valid, b.valid]))

    commit = both(before.commit_ms, after.commit_ms) if before.commit_ms and after.commit_ms else None
    return Rows(
        at_ms=np.concatenate([before.at_ms, after.at_ms]),
        committed=both(before.committed, after.committed),
        start=both(before.start, after.start),
        end=both(before.end, after.end),
        commit_ms=commit,
        first=np.concatenate([before.first, after.first]),
        cut=np.concatenate([before.cut, after.cut]),
        since_ms=np.concatenate([before.since_ms, after.since_ms]),
    )


def _since(rows: Rows, tail: _Tail | None) -> Ints:
    """Return when each row's committed offset was first observed. The tail has this time for rows dropped before."""
    changed = rows.cut.copy()
    changed[1:] |= rows.committed.value[1:] != rows.committed.value[:-1]
    changed[0] = True
    first = last_place(changed)
    result = rows.at_ms[first]
    if tail is not None:
        last = len(tail.rows) - 1
        result[: last + 1] = tail.rows.since_ms
        result[last + 1 :][first[last + 1 :] <= last] = tail.rows.since_ms[-1]
    return result


def _before(place: Ints, first: Flags) -> tuple[Ints, Flags]:
    """Return, for each row, the last row with an event before it in its partition (-1: none in this batch).

    place: `last_place` of the event. The flag is True if only an older batch can have such a row.
    """
    begin = last_place(first)  # -1: the tail's partition
    before = np.empty_like(place)
    before[:1], before[1:] = -1, place[:-1]
    before[before < begin] = -1
    return before, (before < 0) & (begin < 0)


def _end_fell(end: NullableInts, first: Flags, tail: _Tail | None) -> Flags:
    """Return where the log end is below the last known log end of the partition."""
    before, older = _before(last_place(end.valid), first)
    result = (before >= 0) & ~first & (end.value < end.value[before])
    if tail is not None and tail.known_end is not None:
        result |= older & (end.value < tail.known_end)
    return result & end.valid


def _other_ids(batch: pa.RecordBatch, first: Flags, tail: _Tail | None) -> tuple[Flags, str | None]:
    """Return where the topic id differs from the last known one, and the last known id at the end of the batch."""
    ids = batch.column("topic_id")
    runs = np.flatnonzero(differs(ids) | first)
    last: str | None = tail.known_id if tail is not None else None
    result = np.zeros(len(first), dtype=bool)
    for place, text in zip(runs, ids.take(numeric(runs, pa.int64())).to_pylist(), strict=True):
        if first[place]:
            last = None
        if text is not None:
            result[place] = last is not None and text != last
            last = text
    return result, last


def _tail(batch: pa.RecordBatch, rows: Rows, known_id: str | None, tail: _Tail | None, rules: WindowRules) -> _Tail:
    """Return the tail of a batch: the rows of the last history that later windows and time lags need."""
    size = len(rows)
    begin = max(int(last_place(rows.cut)[-1]), size - (rules.history - 1), 0)
    end_at = int(last_place(rows.end.valid)[-1])
    if end_at >= max(int(last_place(rows.first)[-1]), 0):
        known_end: int | None = int(rows.end.value[end_at])
    else:
        known_end = tail.known_end if tail is not None and not rows.first.any() else None

    def end_of(values: NullableInts) -> NullableInts:
        return NullableInts(values.value[begin:].copy(), values.valid[begin:].copy())

    first, cut = np.zeros(size - begin, dtype=bool), rows.cut[begin:].copy()
    cut[0] = True
    retained = Rows(
        at_ms=rows.at_ms[begin:].copy(),
        committed=end_of(rows.committed),
        start=end_of(rows.start),
        end=end_of(rows.end),
        commit_ms=end_of(rows.commit_ms) if rows.commit_ms else None,
        first=first,
        cut=cut,
        since_ms=rows.since_ms[begin:].copy(),
    )
    return _Tail(_key(batch, batch.num_rows - 1), retained, known_end, known_id)


# --- to Arrow -------------------------------------------------------------------------------------------------------


def reading_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of the readings of batches with this schema."""
    fields = [schema.field(name) for name in _columns(schema)]
    return pa.schema([*fields, *(pa.field(name, kind) for name, kind in READING_TYPES.items())])


def _columns(schema: pa.Schema) -> list[str]:
    return [*READING_COLUMNS, *(name for name in (*OPTIONAL_COLUMNS, COMMIT_TIME) if name in schema.names)]


def _batch(batch: pa.RecordBatch, places: Ints, result: Readings) -> pa.RecordBatch:
    arrays = chosen(batch, _columns(batch.schema), places)
    for name, kind in READING_TYPES.items():
        value = getattr(result, name)
        if isinstance(value, NullableInts):
            arrays.append(numeric(value.value, kind, value.valid))
        elif isinstance(value, tuple):
            arrays.append(numeric(value[0], kind, value[1]))
        else:
            arrays.append(numeric(value, kind))
    return pa.RecordBatch.from_arrays(arrays, schema=reading_schema(batch.schema))
