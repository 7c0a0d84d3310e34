"""Sizes over time, computed from the stream of the table `replicas`.

They are sums by topic and by log dir at the last pass of each time bucket. Memory: 8 B for each topic or log dir and
bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from kctl.history.evaluate.column_arrays import chosen, differs, numbers, numeric
from kctl.history.evaluate.window_rules import Flags, Ints
from kctl.history.report.lag_series import Times
from kctl.history.report.model import Series


class SizeWatch:
    """A pass-through stage that computes series from a stream of batches."""

    def __init__(self, times: Times) -> None:
        ends = np.append(times.bucket_starts[1:], len(times.passes)) - 1
        self._passes, self._buckets = times.passes[ends], times.bucket_of_pass[ends]
        self._topics = _SizeSums(("topic",), times.buckets.size)
        self._log_dirs = _SizeSums(("broker", "log_dir"), times.buckets.size)

    def watch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches unchanged."""
        for batch in batches:
            if batch.num_rows:
                self._push(batch)
            yield batch

    def topic(self, name: str) -> Series:
        """Return the bytes of all replicas of a topic, including future ones. None: no replica in this bucket."""
        return self._topics.series((name,))

    def log_dir(self, broker: int, path: str) -> Series:
        """Return the bytes of all replicas in a log dir."""
        return self._log_dirs.series((broker, path))

    def _push(self, batch: pa.RecordBatch) -> None:
        at = numbers(batch.column("at_ms"))
        index = np.minimum(np.searchsorted(self._passes, at), len(self._passes) - 1)
        selected = np.flatnonzero(self._passes[index] == at)
        if len(selected):
            part = pa.RecordBatch.from_arrays(chosen(batch, batch.schema.names, selected), schema=batch.schema)
            sizes = np.maximum(numbers(part.column("size_bytes")), 0)
            for sums in (self._topics, self._log_dirs):
                sums.add(part, self._buckets[index[selected]], sizes)


class _SizeSums:
    """A table of sums with a row for each value of `keys` and a column for each bucket. -1: no value."""

    def __init__(self, keys: tuple[str, ...], size: int) -> None:
        self._keys, self._size = keys, size
        self._rows: dict[tuple[object, ...], Ints] = {}

    def add(self, part: pa.RecordBatch, buckets: Ints, sizes: Ints) -> None:
        begins = np.flatnonzero(self._changes(part))
        heads = zip(
            *(part.column(name).take(numeric(begins, pa.int64())).to_pylist() for name in self._keys), strict=True
        )
        for head, begin, end in zip(heads, begins.tolist(), [*begins[1:].tolist(), part.num_rows], strict=True):
            row = self._rows.setdefault(head, np.full(self._size, -1, dtype=np.int64))
            columns = buckets[begin:end]
            row[columns] = np.maximum(row[columns], 0)
            np.add.at(row, columns, sizes[begin:end])

    def series(self, key: tuple[object, ...]) -> Series:
        row = self._rows.get(key)
        if row is None:
            return [None] * self._size
        return [None if value < 0 else value for value in row.tolist()]

    def _changes(self, part: pa.RecordBatch) -> Flags:
        result = np.zeros(part.num_rows, dtype=bool)
        for name in self._keys:
            result |= differs(part.column(name))
        return result
