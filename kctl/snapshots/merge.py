"""Sorted streams of batches as one, in memory that does not grow with their length.

Each stream shows its next batch. What is not above the least of the batches' last keys is final: no stream can still
bring a lower key. That part of each is taken, put together, sorted and given; then the streams whose batch is used up
show their next one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kctl.snapshots.rows import BadRows

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Key = tuple[Any, ...]


def merged(streams: Sequence[Iterable[pa.RecordBatch]], keys: Sequence[str]) -> Iterator[pa.Table]:
    """Sorted streams (the same columns, text in dictionaries) as one sorted stream of tables, each of one chunk.

    keys: the columns to sort by, all in the batches, without nulls. Rows of equal keys come in the order of `streams`.
    Raises BadRows when a stream is not sorted.
    """
    import pyarrow as pa

    heads = [_Head(stream, keys) for stream in streams]
    before: Key | None = None
    while True:
        heads = [head for head in heads if head.fill()]
        if not heads:
            return
        limit = min(head.last for head in heads)
        taken = [part for head in heads if (part := head.take(limit)).num_rows]
        table = sorted_rows(pa.Table.from_batches(taken), keys)
        chunk = table.to_batches()[0]
        first = key_at(chunk, 0, keys)
        if before is not None and first < before:
            raise BadRows("its rows are not sorted")
        before = key_at(chunk, chunk.num_rows - 1, keys)
        yield table


class _Head:
    """A stream's batch that is not used up yet."""

    def __init__(self, stream: Iterable[pa.RecordBatch], keys: Sequence[str]) -> None:
        self._rest = iter(stream)
        self._keys = keys
        self._batch: pa.RecordBatch | None = None
        self.last: Key = ()

    def fill(self) -> bool:
        """Show the next batch when this one is used up; False at the end."""
        while self._batch is None or not self._batch.num_rows:
            self._batch = next(self._rest, None)
            if self._batch is None:
                return False
            if self._batch.num_rows:
                self.last = key_at(self._batch, self._batch.num_rows - 1, self._keys)
        return True

    def take(self, limit: Key) -> pa.RecordBatch:
        """The rows up to `limit`, which this head then has no more."""
        batch = self._batch
        assert batch is not None
        count = batch.num_rows
        if self.last > limit:
            count = bisect_right(range(count), limit, key=lambda i: key_at(batch, i, self._keys))
        self._batch = batch.slice(count)
        return batch.slice(0, count)


def key_at(batch: pa.RecordBatch, row: int, keys: Sequence[str]) -> Key:
    """A row's key. Python compares text by code points, which is the order of its UTF-8 bytes."""
    return tuple(batch.column(name)[row].as_py() for name in keys)


def sorted_rows(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows sorted by `keys`, stably, as one chunk with one dictionary for each text column."""
    import numpy as np

    whole = table.unify_dictionaries().combine_chunks()
    code = _code(whole, keys)
    if code is None:
        order = np.lexsort([_ranks(whole, name) for name in reversed(keys)])
    elif bool((code[1:] >= code[:-1]).all()):
        return whole
    else:
        order = np.argsort(code, kind="stable")
    return whole.take(order)


def _code(table: pa.Table, keys: Sequence[str]) -> NDArray[Any] | None:
    """One int64 for each row that sorts as its key does; None when the keys' ranges do not fit into one."""
    import numpy as np

    code = np.zeros(table.num_rows, dtype=np.int64)
    span = 1
    for name in keys:
        ranks = _ranks(table, name)
        least = int(ranks.min())
        width = int(ranks.max()) - least + 1
        span *= width
        if span >= 1 << 63:
            return None
        code = code * width + (ranks - least)
    return code


def _ranks(table: pa.Table, name: str) -> NDArray[Any]:
    """Numbers that sort as a column's values do."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    array = table.column(name).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    if isinstance(array, pa.DictionaryArray):
        ranks = pc.rank(array.dictionary, tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64)
        found: NDArray[Any] = ranks[array.indices.to_numpy(zero_copy_only=False)]
        return found
    if pa.types.is_boolean(array.type):
        return array.to_numpy(zero_copy_only=False).astype(np.int64)
    return array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
