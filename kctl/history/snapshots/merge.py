"""Sorted streams of batches as one, in memory that does not grow with their length.

Each stream shows its next two batches. What is not above the least of their last keys is final: no stream can still
bring a lower key. That part of each is taken, put together, sorted and given, and the streams show more. (With one
batch each, streams that hold the same keys at different times would give a row or two at a time: the last key of one
lies just before that of another.)
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
        taken = [part for head in heads for part in head.take(limit)]
        if not taken:  # a batch's last key lies before its first
            raise BadRows("its rows are not sorted")
        table = sorted_rows(pa.Table.from_batches(taken), keys)
        chunk = table.to_batches()[0]
        first = key_at(chunk, 0, keys)
        if before is not None and first < before:
            raise BadRows("its rows are not sorted")
        before = key_at(chunk, chunk.num_rows - 1, keys)
        yield table


class _Head:
    """A stream's batches that are shown, none of them empty. last: the key of the last row that is shown."""

    def __init__(self, stream: Iterable[pa.RecordBatch], keys: Sequence[str]) -> None:
        self._rest = iter(stream)
        self._keys = keys
        self._shown: deque[tuple[pa.RecordBatch, Key]] = deque()
        self._ended = False

    @property
    def last(self) -> Key:
        return self._shown[-1][1]

    def fill(self) -> bool:
        """Show two batches, or what is left; False at the end."""
        while len(self._shown) < 2 and not self._ended:
            batch = next(self._rest, None)
            if batch is None:
                self._ended = True
            elif batch.num_rows:
                self._shown.append((batch, key_at(batch, batch.num_rows - 1, self._keys)))
        return bool(self._shown)

    def take(self, limit: Key) -> Iterator[pa.RecordBatch]:
        """The rows up to `limit`, which this head then has no more."""
        while self._shown:
            batch, last = self._shown[0]
            if last > limit:
                break
            self._shown.popleft()
            yield batch
        if not self._shown:
            return
        count = bisect_right(range(batch.num_rows), limit, key=lambda i: key_at(batch, i, self._keys))
        if count:
            self._shown[0] = batch.slice(count), last
            yield batch.slice(0, count)


def key_at(batch: pa.RecordBatch, row: int, keys: Sequence[str]) -> Key:
    """A row's key. Python compares text by code points, which is the order of its UTF-8 bytes."""
    return tuple(batch.column(name)[row].as_py() for name in keys)


def sorted_rows(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows sorted by `keys`, stably, as one chunk with one dictionary for each text column."""
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
    # Made of its buffer: Arrow's own way from numpy imports pandas.
    return whole.take(pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order)]))


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
    """The values of an array without nulls, where they lie. (`to_numpy` imports pandas.)"""
    import numpy as np

    data = array.buffers()[1]
    if data is None:
        return np.zeros(0, dtype=kind)
    values: NDArray[Any] = np.frombuffer(memoryview(data), kind, len(array), array.offset * kind.itemsize)
    return values
