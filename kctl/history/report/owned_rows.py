"""Readings of partitions joined with their owners: two streams of the same sort order, without a table in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kctl.history.evaluate.column_arrays import differs, numbers
from kctl.history.evaluate.window_rules import Flags, Ints
from kctl.history.snapshots.merge import key_at

KEYS = ("group", "topic", "partition", "at_ms")
_MAX_SPAN = 1 << 63


class OwnedRows:
    """A lookup of the rows that have a row with the same key in `owners`. Both streams are sorted by KEYS."""

    def __init__(self, owners: Iterable[pa.RecordBatch]) -> None:
        self._rest = iter(owners)
        self._pending: list[tuple[pa.RecordBatch, tuple[Any, ...]]] = []

    def of(self, batch: pa.RecordBatch) -> Flags:
        """Return a mask of the rows of the next batch that have an owner. batch: not empty."""
        last = key_at(batch, batch.num_rows - 1, KEYS)
        while not self._pending or self._pending[-1][1] < last:
            more = next(self._rest, None)
            if more is None:
                break
            if more.num_rows:
                self._pending.append((more, key_at(more, more.num_rows - 1, KEYS)))
        result = _has_key_in(batch, [pending for pending, _ in self._pending])
        self._pending = [each for each in self._pending if each[1] > last]
        return result


def _has_key_in(batch: pa.RecordBatch, others: list[pa.RecordBatch]) -> Flags:
    """Return a mask of the rows of `batch` whose key occurs in `others`."""
    if not others:
        return np.zeros(batch.num_rows, dtype=bool)
    parts = [batch, *others]
    code = np.zeros(sum(part.num_rows for part in parts), dtype=np.int64)
    span = 1
    for name in KEYS:
        value = _codes([part.column(name) for part in parts])
        value -= value.min()
        width = int(value.max()) + 1
        if span * width >= _MAX_SPAN:  # renumber: few combinations occur, so the range of codes shrinks
            code = np.unique(code, return_inverse=True)[1].astype(np.int64).reshape(-1)
            span = int(code.max()) + 1
        code = code * width + value
        span *= width
    mine, other = code[: batch.num_rows], np.sort(code[batch.num_rows :], kind="stable")
    place = np.minimum(np.searchsorted(other, mine), len(other) - 1)
    result: Flags = other[place] == mine
    return result


def _codes(columns: list[pa.Array]) -> Ints:
    """Return a number for each value; equal values have equal numbers."""
    if columns[0].type in {pa.int32(), pa.int64()}:
        return np.concatenate([numbers(column) for column in columns])
    numbers_by_text: dict[str, int] = {}
    return np.concatenate([_text_codes(column, numbers_by_text) for column in columns])


def _text_codes(column: pa.Array, numbers_by_text: dict[str, int]) -> Ints:
    """Return the numbers of a sorted text column. Only the first value of each run is looked up."""
    begins = np.flatnonzero(differs(column))
    codes = [numbers_by_text.setdefault(column[int(place)].as_py(), len(numbers_by_text)) for place in begins]
    return np.repeat(np.array(codes, dtype=np.int64), np.diff(np.append(begins, len(column))))


def runs(batch: pa.RecordBatch, name: str) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the slices of the batch with equal values in a text column, each with the value."""
    begins = np.flatnonzero(differs(batch.column(name)))
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), batch.num_rows], strict=True):
        yield batch.column(name)[begin].as_py(), batch.slice(begin, end - begin)
