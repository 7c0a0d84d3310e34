"""Arrow columns built from buffers.

`pyarrow.array` of a list imports pandas, which takes half a CPU second or more: longer than all reads of a Spark task,
or of a pass over a small cluster. Layout (Arrow columnar format): validity bitmap, least significant bit first, absent
if nothing is null; numbers as plain values; booleans as a bitmap; text as int32 offsets and UTF-8 bytes; lists as int32
offsets into their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values (None: null) as a column of int32, int64, double, bool, string or list of strings.

    Raises TypeError for another type, OverflowError for a number outside the range of its type.
    """
    import numpy as np
    import pyarrow as pa

    valid = np.fromiter((value is not None for value in values), dtype=bool, count=len(values))
    validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    if kind == pa.string():
        encoded = [b"" if value is None else value.encode("utf-8", "replace") for value in values]
        data = [_offsets([len(text) for text in encoded]), pa.py_buffer(b"".join(encoded))]
    elif kind == pa.bool_():
        data = [pa.py_buffer(np.packbits(np.array([bool(value) for value in values], dtype=bool), bitorder="little"))]
    elif kind in {pa.int32(), pa.int64(), pa.float64()}:
        width = {pa.int32(): np.int32, pa.int64(): np.int64, pa.float64(): np.float64}[kind]
        data = [pa.py_buffer(np.array([0 if value is None else value for value in values], dtype=width))]
    elif kind == pa.list_(pa.string()):
        children = column([text for value in values for text in value or ()], pa.string())
        offsets = _offsets([len(value or ()) for value in values])
        return pa.Array.from_buffers(kind, len(values), [validity, offsets], children=[children])
    else:
        raise TypeError(f"columns of type {kind} are not supported")
    return pa.Array.from_buffers(kind, len(values), [validity, *data])


def _offsets(lengths: Sequence[int]) -> pa.Buffer:
    import numpy as np
    import pyarrow as pa

    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(np.array(lengths, dtype=np.int32), out=offsets[1:])
    return pa.py_buffer(offsets)
