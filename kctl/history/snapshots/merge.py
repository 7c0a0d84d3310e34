"""Merge sorted streams of batches, with memory use that does not grow with their length.

Two batches of each stream are loaded. Rows up to the smallest of the streams' last keys are final: no stream can still
return a smaller key. These rows are taken, sorted and returned, and more batches are loaded. (With one batch each,
streams with the same keys at different times would return a row or two at a time, because the last key of one stream
is just before that of another.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kctl.history.snapshots.rows import BadRows

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Key = tuple[Any, ...]


def merged(streams: Sequence[Iterable[pa.RecordBatch]], keys: Sequence[str]) -> Iterator[pa.Table]:
    """Yield sorted streams as one sorted stream of tables with one chunk each.

    The streams have the same columns, with text in dictionaries. keys: the columns to sort by, without nulls. Rows with
    equal keys are in the order of `streams`. Raises BadRows if a stream is not sorted.
    """
    import pyarrow as pa

    heads = [_Head(stream, keys) for stream in streams]
    before: Key | None = None
    while True:
        heads = [head for head in heads if head.fill()]
        if not heads:
            return
        limit = min(head.last for head in heads)
        parts = [part for head in heads for part in head.take(limit)]
        if not parts:  # the last key of a batch is before its first
            raise BadRows("its rows are not sorted")
        table = sorted_rows(pa.Table.from_batches(parts), keys)
        chunk = table.to_batches()[0]
        first = key_at(chunk, 0, keys)
        if before is not None and first < before:
            raise BadRows("its rows are not sorted")
        before = key_at(chunk, chunk.num_rows - 1, keys)
        yield table


class _Head:
    """The loaded, non-empty batches of a stream. last: the key of the last loaded row."""

    def __init__(self, stream: Iterable[pa.RecordBatch], keys: Sequence[str]) -> None:
        self._rest = iter(stream)
        self._keys = keys
        self._loaded: deque[tuple[pa.RecordBatch, Key]] = deque()
        self._ended = False

    @property
    def last(self) -> Key:
        return self._loaded[-1][1]

    def fill(self) -> bool:
        """Load up to two batches. Return False at the end of the stream."""
        while len(self._loaded) < 2 and not self._ended:
            batch = next(self._rest, None)
            if batch is None:
                self._ended = True
            elif batch.num_rows:
                self._loaded.append((batch, key_at(batch, batch.num_rows - 1, self._keys)))
        return bool(self._loaded)

    def take(self, limit: Key) -> Iterator[pa.RecordBatch]:
        """Remove and yield the rows up to `limit`."""
        while self._loaded:
            batch, last = self._loaded[0]
            if last > limit:
                break
            self._loaded.popleft()
            yield batch
        if not self._loaded:
            return
        count = bisect_right(range(batch.num_rows), limit, key=lambda i: key_at(batch, i, self._keys))
        if count:
            self._loaded[0] = batch.slice(count), last
            yield batch.slice(0, count)


def key_at(batch: pa.RecordBatch, row: int, keys: Sequence[str]) -> Key:
    """Return the key of a row. Python compares text by code points, which is the order of its UTF-8 bytes."""
    return tuple(batch.column(name)[row].as_py() for name in keys)


def sorted_rows(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the rows sorted stably by `keys`, as one chunk with one dictionary for each text column."""
    import numpy as np
    import pyarrow as pa

    whole = table.unify_dictionaries().combine_chunks()
    code = _code(whole, keys)
    if code is None:
        order = np.lexsort([_ranks(whole, name) for name in reversed(keys)])
    elif bool((code[1:] >= code[:-1]).all()):
        return whole
    else:
        order = np.argsort(code, kind="stable")
    # From the buffer, because pa.array of a numpy array imports pandas.
    return whole.take(pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order)]))


def _code(table: pa.Table, keys: Sequence[str]) -> NDArray[Any] | None:
    """Return an int64 for each row that sorts like its key; None if the ranges of the keys do not fit."""
    import numpy as np

    code = np.zeros(table.num_rows, dtype=np.int64)
    span = 1
    for name in keys:
        ranks = _ranks(table, name)
        low = int(ranks.min())
        width = int(ranks.max()) - low + 1
        span *= width
        if span >= 1 << 63:
            return None
        code = code * width + (ranks - low)
    return code


def _ranks(table: pa.Table, name: str) -> NDArray[Any]:
    """Return numbers that sort like the values of a column."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    array = table.column(name).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    if array.type == pa.string():
        array = array.dictionary_encode()
    if isinstance(array, pa.DictionaryArray):
        ranks = _numbers(pc.rank(array.dictionary, tiebreaker="dense"), np.dtype(np.uint64)).astype(np.int64)
        result: NDArray[Any] = ranks[_numbers(array.indices, np.dtype(np.int32))]
        return result
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int32())
    width = np.int32 if array.type == pa.int32() else np.int64
    return _numbers(array, np.dtype(width)).astype(np.int64, copy=False)


def _numbers(array: pa.Array, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return the values of an array without nulls, without a copy. (`to_numpy` imports pandas.)"""
    import numpy as np

    data = array.buffers()[1]
    if data is None:
        return np.zeros(0, dtype=kind)
    values: NDArray[Any] = np.frombuffer(memoryview(data), kind, len(array), array.offset * kind.itemsize)
    return values
