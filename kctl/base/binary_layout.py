"""Named layouts for binary structures: one definition serves the reader and the writer.

    HEADER = Layout(
        size=INT32,  # bytes after this field
        correlation_id=INT32,
    )
    size, correlation_id = HEADER.unpack_from(data, position)
    HEADER.pack(size, correlation_id)
    HEADER.encode(size=8, correlation_id=7)  # the same by name
    HEADER.offset("correlation_id")  # 4

A field type is a struct of one value, so INT32.unpack_from(data, position) also reads a number on its own. It defines
width and sign; the layout defines the byte order.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Any

INT8, UINT8 = Struct(">b"), Struct(">B")
INT16, UINT16 = Struct(">h"), Struct(">H")
INT32, UINT32 = Struct(">i"), Struct(">I")
INT64, UINT64 = Struct(">q"), Struct(">Q")
FLOAT32, FLOAT64 = Struct(">f"), Struct(">d")
BOOLEAN = Struct(">?")
UINT32_LE, FLOAT32_LE, FLOAT64_LE = Struct("<I"), Struct("<f"), Struct("<d")

BIG_ENDIAN, LITTLE_ENDIAN, NATIVE = ">", "<", "@"  # NATIVE also aligns fields as a C compiler does


def fixed_bytes(size: int) -> Struct:
    """Return the type of a field of `size` bytes."""
    return Struct(f">{size}s")


def padding(size: int) -> Struct:
    """Return the type of `size` bytes that are written as zeros and have no value."""
    return Struct(f">{size}x")


def array_of(kind: Struct, count: int) -> Struct:
    """Return the struct of `count` values of a type, one after the other."""
    return Struct(f">{count}{kind.format[-1]}")


class Layout:
    """A structure of fixed size: its fields by name, in order, with their types.

    The struct's own methods (pack, unpack_from, …) are attributes, so that they cost no extra call.
    """

    def __init__(self, byte_order: str = BIG_ENDIAN, /, **fields: Struct) -> None:
        self.fields: Mapping[str, Struct] = fields
        struct = Struct(byte_order + "".join(kind.format[1:] for kind in fields.values()))
        self._byte_order, self._names = byte_order, [name for name, kind in fields.items() if kind.format[-1] != "x"]
        self.size = struct.size
        self.pack, self.unpack = struct.pack, struct.unpack
        self.unpack_from, self.iter_unpack = struct.unpack_from, struct.iter_unpack

    def offset(self, name: str) -> int:
        """Return the position of a field in the structure."""
        return self.end(name) - self.fields[name].size

    def end(self, name: str) -> int:
        """Return the position after a field."""
        names = list(self.fields)
        until = names[: names.index(name) + 1]
        return Struct(self._byte_order + "".join(self.fields[each].format[1:] for each in until)).size

    def encode(self, **values: Any) -> bytes:
        """Return the bytes of a structure with these values. Raises KeyError for a field without one."""
        assert len(values) == len(self._names), values.keys() - self._names
        return self.pack(*[values[name] for name in self._names])
