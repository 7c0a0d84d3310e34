"""Convert between Arrow columns and numpy arrays by their buffers, without pandas or a Python object per value.

Layout (Arrow columnar format): a validity bitmap, least significant bit first, absent if nothing is null; numbers as
plain values; booleans as a bitmap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kctl.history.evaluate.window_rules import Flags, Ints, NullableInts

if TYPE_CHECKING:
    from collections.abc import Sequence

Watch: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Observes batches and passes them on unchanged."""

_WIDTHS: dict[pa.DataType, type[np.signedinteger[Any]]] = {pa.int32(): np.int32, pa.int64(): np.int64}


def nullable(column: pa.Array) -> NullableInts:
    """Return an int32 or int64 column; negative numbers are null. Raises TypeError for another type."""
    valid = _validity(column)
    value = numbers(column)
    valid &= value >= 0
    return NullableInts(np.where(valid, value, 0), valid)


def numbers(column: pa.Array) -> Ints:
    """Return an int32 or int64 column as int64; nulls have arbitrary values. Raises TypeError for another type."""
    width = _WIDTHS.get(column.type)
    if width is None:
        raise TypeError(f"column has type {column.type}, not int32 or int64")
    data = column.buffers()[1]
    if data is None:  # only nulls
        return np.zeros(len(column), dtype=np.int64)
    dtype: np.dtype[Any] = np.dtype(width)
    result = np.frombuffer(memoryview(data), dtype, len(column), column.offset * dtype.itemsize)
    return result.astype(np.int64, copy=False)


def _validity(column: pa.Array) -> Flags:
    bitmap = column.buffers()[0]
    if column.null_count == 0 or bitmap is None:
        return np.full(len(column), column.null_count == 0)
    return bits(bitmap, column.offset, len(column))


def bits(bitmap: pa.Buffer, offset: int, length: int) -> Flags:
    """Return `length` bits of a bitmap, from `offset` on."""
    packed = np.frombuffer(memoryview(bitmap), np.dtype(np.uint8))
    result = np.unpackbits(packed, count=offset + length, bitorder="little")[offset:]
    return result.view(np.bool_)


def differs(column: pa.Array) -> Flags:
    """Return where a text or number column differs from the row before; True for the first. Null equals null."""
    size = len(column)
    result = np.ones(size, dtype=bool)
    if size < 2:
        return result
    if isinstance(column, pa.DictionaryArray):
        indices = nullable(column.indices.cast(pa.int64()))  # -1: null
        changed = np.flatnonzero(np.diff(np.where(indices.valid, indices.value, -1))) + 1
        result[1:] = False
        result[changed] = _unequal(column, changed)
    elif column.type in _WIDTHS:
        values = nullable(column)
        result[1:] = np.diff(np.where(values.valid, values.value, -1)) != 0
    else:
        result[1:] = bits_of(_unequal_neighbors(column))
    return result


def _unequal(column: pa.Array, places: Ints) -> Flags:
    """Return whether each value at `places` differs from the one before. A dictionary may contain a text twice."""
    here, before = (column.take(numeric(at, pa.int64())).cast(pa.string()) for at in (places, places - 1))
    return bits_of(_not_same(here, before))


def _unequal_neighbors(column: pa.Array) -> pa.Array:
    return _not_same(column.slice(1), column.slice(0, len(column) - 1))


def _not_same(here: pa.Array, before: pa.Array) -> pa.Array:
    """Return where the columns differ. Null equals null."""
    unequal = pc.not_equal(here, before)
    if unequal.null_count == 0:
        return unequal
    return pc.if_else(pc.is_null(unequal), pc.xor(pc.is_null(here), pc.is_null(before)), unequal)


def bits_of(column: pa.Array) -> Flags:
    """Return a boolean column without nulls."""
    data = column.buffers()[1]
    assert data is not None
    return bits(data, column.offset, len(column))


def numeric(values: npt.NDArray[Any], kind: pa.DataType, valid: Flags | None = None) -> pa.Array:
    """Return values with the width of `kind` as a column; null where not `valid`."""
    validity = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [validity, data])


def chosen(batch: pa.RecordBatch, names: Sequence[str], places: Ints) -> list[pa.Array]:
    """Return the values of the named columns at `places`; the columns themselves if `places` is all rows."""
    if len(places) == batch.num_rows:
        return [batch.column(name) for name in names]
    indices = numeric(places, pa.int64())
    return [batch.column(name).take(indices) for name in names]
