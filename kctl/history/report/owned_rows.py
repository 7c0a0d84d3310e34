"""Readings and owners of partitions side by side: streams of the same sort key, met without a table in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kctl.history.evaluate.column_arrays import differs, numbers
from kctl.history.evaluate.window_rules import Flags, Ints
from kctl.history.snapshots.merge import key_at

KEYS = ("group", "topic", "partition", "at_ms")
_MOST = 1 << 63


class OwnedRows:
    """Which rows of batches that come in the order of KEYS have a row of the same key in `owners`, sorted alike."""

    def __init__(self, owners: Iterable[pa.RecordBatch]) -> None:
        self._rest = iter(owners)
        self._waiting: list[tuple[pa.RecordBatch, tuple[Any, ...]]] = []

    def of(self, batch: pa.RecordBatch) -> Flags:
        """For the next batch, which is not empty."""
        last = key_at(batch, batch.num_rows - 1, KEYS)
        while not self._waiting or self._waiting[-1][1] < last:
            more = next(self._rest, None)
            if more is None:
                break
            if more.num_rows:
                self._waiting.append((more, key_at(more, more.num_rows - 1, KEYS)))
        result = _among(batch, [waiting for waiting, _ in self._waiting])
        self._waiting = [each for each in self._waiting if each[1] > last]
        return result


def _among(batch: pa.RecordBatch, others: list[pa.RecordBatch]) -> Flags:
    """Which rows of `batch` have a key that is in `others`."""
    if not others:
        return np.zeros(batch.num_rows, dtype=bool)
    parts = [batch, *others]
    code = np.zeros(sum(part.num_rows for part in parts), dtype=np.int64)
    span = 1
    for name in KEYS:
        value = _codes([part.column(name) for part in parts])
        value -= value.min()
        width = int(value.max()) + 1
        if span * width >= _MOST:  # numbered anew, what is there so far has few values
            code = np.unique(code, return_inverse=True)[1].astype(np.int64).reshape(-1)
            span = int(code.max()) + 1
        code = code * width + value
        span *= width
    mine, other = code[: batch.num_rows], np.sort(code[batch.num_rows :], kind="stable")
    place = np.minimum(np.searchsorted(other, mine), len(other) - 1)
    result: Flags = other[place] == mine
    return result


def _codes(columns: list[pa.Array]) -> Ints:
    """A number for each value, the same for the same one."""
    if columns[0].type in {pa.int32(), pa.int64()}:
        return np.concatenate([numbers(column) for column in columns])
    known: dict[str, int] = {}
    return np.concatenate([_text_codes(column, known) for column in columns])


def _text_codes(column: pa.Array, known: dict[str, int]) -> Ints:
    """By the runs of a sorted column, of which there are few."""
    begins = np.flatnonzero(differs(column))
    codes = [known.setdefault(column[int(place)].as_py(), len(known)) for place in begins]
    return np.repeat(np.array(codes, dtype=np.int64), np.diff(np.append(begins, len(column))))


def runs(batch: pa.RecordBatch, name: str) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The batch cut where a text column changes, with its value."""
    begins = np.flatnonzero(differs(batch.column(name)))
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), batch.num_rows], strict=True):
        yield batch.column(name)[begin].as_py(), batch.slice(begin, end - begin)
