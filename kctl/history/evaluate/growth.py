"""Reduce a stream of sizes to one row per log or volume. The vectorized form of kctl.history.retention.growth.

Batches are sorted by their key and by time; a batch may end anywhere. Only the sums of the previous batch's last key
are carried over, so memory use does not grow with the time span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kctl.history.evaluate.column_arrays import bits_of, chosen, differs, numbers, numeric
from kctl.history.evaluate.window_rules import Flags, Ints
from kctl.history.retention.growth import Growth

GROWTH_TYPES: dict[str, pa.DataType] = dict.fromkeys(Growth._fields, pa.int64())
MAX_BYTES = 2**53  # larger sizes are ignored


class Sizes(NamedTuple):
    """The columns of size batches. key: columns by which they are sorted, before at_ms; size: the column that grows.

    extra: columns that the result has in addition to the key, from the last row of each key.
    """

    key: tuple[str, ...]
    size: str
    extra: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns of the result before those of GROWTH_TYPES."""
        return (*self.key, *self.extra)


@dataclass(frozen=True, slots=True)
class _GrowthSums:
    """The sums of each key so far. Fields as in Growth. shrunk_at_ms: -1 if never.

    at_shrunk_bytes: the size at shrunk_at_ms, or the first size if the log never shrank.
    """

    samples: Ints
    first_ms: Ints
    last_ms: Ints
    first_bytes: Ints
    last_bytes: Ints
    grown_bytes: Ints
    grown_ms: Ints
    shrunk_at_ms: Ints
    at_shrunk_bytes: Ints

    def at(self, places: slice) -> _GrowthSums:
        return _GrowthSums(*(getattr(self, name)[places] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class _OpenKey:
    """A key that may continue in the next batch: its last row, and its sums so far."""

    last: pa.RecordBatch
    sums: _GrowthSums


def growths(batches: Iterable[pa.RecordBatch], of: Sizes) -> Iterator[pa.RecordBatch]:
    """Yield a row for each key that has a size: the columns of.names of its last row, then GROWTH_TYPES."""
    open_: _OpenKey | None = None
    for each in batches:
        batch = _with_sizes(each, of)
        if batch.num_rows == 0:
            continue
        continues = open_ is not None and _key(open_.last, of) == _key(batch, of)
        if open_ is not None and not continues:
            yield _rows(open_.last, open_.sums, of)
        begins = np.flatnonzero(_first_rows(batch, of))
        sums = _sums(batch, begins, of, open_ if continues else None)
        ends = np.append(begins[1:], batch.num_rows) - 1
        open_ = _OpenKey(batch.slice(int(ends[-1]), 1), sums.at(slice(-1, None)))
        if len(ends) > 1:
            arrays = chosen(batch, batch.schema.names, ends[:-1])
            yield _rows(pa.RecordBatch.from_arrays(arrays, schema=batch.schema), sums.at(slice(0, -1)), of)
    if open_ is not None:
        yield _rows(open_.last, open_.sums, of)


def _with_sizes(batch: pa.RecordBatch, of: Sizes) -> pa.RecordBatch:
    """Return the rows with a valid size."""
    column = batch.column(of.size)
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if column.null_count == 0 and (low is None or (low >= 0 and high <= MAX_BYTES)):
        return batch
    rows = batch.filter(pc.greater_equal(column, 0))  # drops nulls
    return rows.filter(pc.less(rows.column(of.size), MAX_BYTES + 1))


def _key(batch: pa.RecordBatch, of: Sizes) -> tuple[object, ...]:
    """Return the key of a batch's first row."""
    return tuple(batch.column(name)[0].as_py() for name in of.key)


def _first_rows(batch: pa.RecordBatch, of: Sizes) -> Flags:
    result = np.zeros(batch.num_rows, dtype=bool)
    for name in of.key:
        column = batch.column(name)
        if pa.types.is_boolean(column.type):
            flags = bits_of(column)
            result[1:] |= flags[1:] != flags[:-1]
        else:
            result |= differs(column)
    result[0] = True
    return result


def _sums(batch: pa.RecordBatch, begins: Ints, of: Sizes, before: _OpenKey | None) -> _GrowthSums:
    """Return the sums of the keys that begin at `begins`; the first key continues `before`."""
    at, size = numbers(batch.column("at_ms")), numbers(batch.column(of.size))
    step, step_ms = np.zeros_like(size), np.zeros_like(at)
    step[1:], step_ms[1:] = np.diff(size), np.diff(at)
    step[begins] = step_ms[begins] = 0
    if before is not None:
        step[0], step_ms[0] = size[0] - before.sums.last_bytes[0], at[0] - before.sums.last_ms[0]
    down = step < 0
    ends = np.append(begins[1:], len(at)) - 1
    shrunk = np.maximum.reduceat(np.where(down, np.arange(len(at)), -1), begins)
    result = _GrowthSums(
        samples=ends - begins + 1,
        first_ms=at[begins],
        last_ms=at[ends],
        first_bytes=size[begins],
        last_bytes=size[ends],
        grown_bytes=np.add.reduceat(np.where(down, 0, step), begins),
        grown_ms=np.add.reduceat(np.where(down, 0, step_ms), begins),
        shrunk_at_ms=np.where(shrunk >= 0, at[shrunk], -1),
        at_shrunk_bytes=np.where(shrunk >= 0, size[shrunk], size[begins]),
    )
    if before is not None:
        _add_previous(result, before.sums)
    return result


def _add_previous(result: _GrowthSums, before: _GrowthSums) -> None:
    """Add the previous sums to the first key of `result`."""
    for name in ("samples", "grown_bytes", "grown_ms"):
        getattr(result, name)[0] += getattr(before, name)[0]
    for name in ("first_ms", "first_bytes"):
        getattr(result, name)[0] = getattr(before, name)[0]
    if result.shrunk_at_ms[0] < 0:
        for name in ("shrunk_at_ms", "at_shrunk_bytes"):
            getattr(result, name)[0] = getattr(before, name)[0]


def _rows(last: pa.RecordBatch, sums: _GrowthSums, of: Sizes) -> pa.RecordBatch:
    arrays = [last.column(name) for name in of.names]
    fields = [last.schema.field(name) for name in of.names]
    for name, kind in GROWTH_TYPES.items():
        if name == "since_shrunk_bytes":
            arrays.append(numeric(sums.last_bytes - sums.at_shrunk_bytes, kind))
        else:
            value = getattr(sums, name)
            arrays.append(numeric(value, kind, value >= 0 if name == "shrunk_at_ms" else None))
        fields.append(pa.field(name, kind))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def by_key(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[tuple[tuple[object, ...], Growth]]:
    """Yield rows of `growths` as plain values: the columns `names`, and the growth."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in (*names, *GROWTH_TYPES)]
        for row in zip(*columns, strict=True):
            yield row[: len(names)], Growth(*row[len(names) :])
