"""A reader of Avro values for a schema (Avro 1.12 specification, "Schema Declaration" and "Encoding").

Only the parts that a reader needs are checked. Defaults, aliases, docs and the characters of names do not affect the
bytes, and registries contain schemas in which they are invalid.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from struct import Struct
from typing import Any

from kctl.base.binary_layout import FLOAT32_LE, FLOAT64_LE
from kctl.records.decode.avro_logical import logical_type

ValueReader = Callable[["Cursor"], Any]

_MAX_DEPTH = 200  # levels of a value, and of a schema
_MAX_VALUES = 10_000_000
_FREE_VALUES = 10_000  # allowed whatever the number of bytes
_VALUES_PER_BYTE = 4
_INT_MAX = 1 << 31
_LONG_BYTES = 10


class Cursor:
    """Bytes and a read position.

    values_left: how many more values may be read, including nested ones. An array of nulls can claim a 64-bit count of
    values without using a byte for any of them.
    """

    __slots__ = ("data", "depth", "position", "values_left")

    def __init__(self, data: bytes) -> None:
        self.data, self.position, self.depth = data, 0, 0
        self.values_left = min(_MAX_VALUES, _FREE_VALUES + _VALUES_PER_BYTE * len(data))

    def take(self, size: int) -> bytes:
        start, end = self.position, self.position + size
        if size < 0 or end > len(self.data):
            raise ValueError(f"a length of {size} exceeds the remaining {len(self.data) - start} bytes")
        self.position = end
        return self.data[start:end]

    def count(self, values: int) -> None:
        self.values_left -= values
        if self.values_left < 0:
            raise ValueError("it claims more values than its bytes can hold")

    def enter(self) -> None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep")


def read_value(reader: ValueReader, data: bytes) -> tuple[Any, int]:
    """Return the value and the number of trailing bytes. Raises ValueError."""
    cursor = Cursor(data)
    try:
        value = reader(cursor)
    except IndexError:
        raise ValueError("it ends within a value") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value, len(data) - cursor.position


def schema_reader(text: str, references: tuple[str, ...]) -> ValueReader:
    """Return a reader of values for a schema. references: the schemas that it refers to, each after its own references.

    Raises ValueError for text that is not an Avro schema.
    """
    parser = _SchemaParser()
    try:
        for each in references:
            parser.parse(json.loads(each), "", 0)
        return parser.parse(json.loads(text), "", 0)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


# --- values -----------------------------------------------------------------------------------------------------------


def _long(cursor: Cursor) -> int:
    data, position = cursor.data, cursor.position
    byte = data[position]
    value, shift = byte & 0x7F, 7
    while byte & 0x80:
        position += 1
        byte = data[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 7 * _LONG_BYTES:
            raise ValueError("a number has more than 64 bits")
    cursor.position = position + 1
    if value >> 64:
        raise ValueError("a number has more than 64 bits")
    return (value >> 1) ^ -(value & 1)


def _int(cursor: Cursor) -> int:
    value = _long(cursor)
    if not -_INT_MAX <= value < _INT_MAX:
        raise ValueError("an int has more than 32 bits")
    return value


def _boolean(cursor: Cursor) -> bool:
    byte = cursor.data[cursor.position]
    if byte > 1:
        raise ValueError(f"a boolean is {byte}")
    cursor.position += 1
    return byte == 1


def _bytes(cursor: Cursor) -> bytes:
    return cursor.take(_long(cursor))


def _string(cursor: Cursor) -> str:
    return cursor.take(_long(cursor)).decode()


def _floating(layout: Struct) -> ValueReader:
    def read(cursor: Cursor) -> float | str:
        (value,) = layout.unpack(cursor.take(layout.size))
        return value if math.isfinite(value) else str(value)  # JSON has neither NaN nor infinity

    return read


def _base64(reader: Callable[[Cursor], bytes]) -> ValueReader:
    return lambda cursor: base64.b64encode(reader(cursor)).decode()


_NUMBERS: dict[str, ValueReader] = {"int": _int, "long": _long}
_PRIMITIVES: dict[str, ValueReader] = {
    "null": lambda _cursor: None,
    "boolean": _boolean,
    **_NUMBERS,
    "float": _floating(FLOAT32_LE),
    "double": _floating(FLOAT64_LE),
    "bytes": _base64(_bytes),
    "string": _string,
}


# --- schemas ----------------------------------------------------------------------------------------------------------


class _Named:
    """A named type. Its reader exists once the whole schema has been parsed."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.read: ValueReader

    def __call__(self, cursor: Cursor) -> Any:
        return self.read(cursor)


class _SchemaParser:
    def __init__(self) -> None:
        self._names: dict[str, _Named] = {}

    def parse(self, schema: Any, namespace: str, depth: int) -> ValueReader:
        if depth > _MAX_DEPTH:
            raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep")
        if isinstance(schema, str):
            return self._reference(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace, depth)
        if not isinstance(schema, dict):
            raise ValueError(f"{str(schema)[:40]} is not a type")
        kind = schema.get("type")
        if kind in {"record", "error", "enum", "fixed"}:
            return self._named(kind, schema, namespace, depth)
        if kind == "array":
            return _array(self.parse(schema.get("items"), namespace, depth + 1))
        if kind == "map":
            return _map(self.parse(schema.get("values"), namespace, depth + 1))
        if kind in _PRIMITIVES:
            return _with_logical_type(schema, kind, _PRIMITIVES[kind], _bytes if kind == "bytes" else None)
        return self.parse(kind, namespace, depth + 1)

    def _reference(self, name: str, namespace: str) -> ValueReader:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        # As Java does: first within the namespace, then as a full name.
        for full in (f"{namespace}.{name}" if namespace and "." not in name else name, name):
            if full in self._names:
                return self._names[full]
        raise ValueError(f"the type {name[:80]!r} is not defined")

    def _union(self, branches: list[Any], namespace: str, depth: int) -> ValueReader:
        readers = [self.parse(branch, namespace, depth + 1) for branch in branches]

        def read(cursor: Cursor) -> Any:
            index = _long(cursor)
            if not 0 <= index < len(readers):
                raise ValueError(f"a union of {len(readers)} types has no type {index}")
            return readers[index](cursor)

        return read

    def _named(self, kind: str, schema: dict[str, Any], namespace: str, depth: int) -> ValueReader:
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"a type {kind} has no name")
        space, _, simple = name.rpartition(".")
        if not space:
            explicit = schema.get("namespace")
            space = explicit if isinstance(explicit, str) else namespace
        full = f"{space}.{simple}" if space else simple
        if full in self._names:
            if self._names[full].schema == schema:
                return self._names[full]
            raise ValueError(f"the type {full[:80]!r} is defined twice")
        named = self._names[full] = _Named(schema)
        named.read = self._definition(kind, schema, space, depth)
        return named

    def _definition(self, kind: str, schema: dict[str, Any], namespace: str, depth: int) -> ValueReader:
        if kind == "enum":
            return _enum(schema.get("symbols"))
        if kind == "fixed":
            size = schema.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise ValueError("a fixed has no size")

            def raw(cursor: Cursor) -> bytes:
                return cursor.take(size)

            return _with_logical_type(schema, kind, _base64(raw), raw)
        fields = schema.get("fields")
        if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
            raise ValueError("a record has no fields")
        return _record([(str(f.get("name")), self.parse(f.get("type"), namespace, depth + 1)) for f in fields])


def _record(fields: list[tuple[str, ValueReader]]) -> ValueReader:
    def read(cursor: Cursor) -> dict[str, Any]:
        cursor.count(len(fields))
        cursor.enter()
        value = {name: read_field(cursor) for name, read_field in fields}
        cursor.depth -= 1
        return value

    return read


def _enum(symbols: Any) -> ValueReader:
    if not isinstance(symbols, list):
        raise ValueError("an enum has no symbols")

    def read(cursor: Cursor) -> Any:
        index = _int(cursor)
        if not 0 <= index < len(symbols):
            raise ValueError(f"an enum of {len(symbols)} symbols has no symbol {index}")
        return symbols[index]

    return read


def _block(cursor: Cursor) -> int:
    """Return the number of items in the next block; 0 at the end."""
    count = _long(cursor)
    if count < 0:
        count = -count
        size = _long(cursor)
        if not 0 <= size <= len(cursor.data) - cursor.position:
            raise ValueError(f"a block of {size} bytes exceeds the remaining data")
    cursor.count(count)
    return count


def _array(read_item: ValueReader) -> ValueReader:
    def read(cursor: Cursor) -> list[Any]:
        cursor.enter()
        items: list[Any] = []
        while count := _block(cursor):
            items += [read_item(cursor) for _ in range(count)]
        cursor.depth -= 1
        return items

    return read


def _map(read_item: ValueReader) -> ValueReader:
    def read(cursor: Cursor) -> dict[str, Any]:
        cursor.enter()
        entries: dict[str, Any] = {}
        while count := _block(cursor):
            for _ in range(count):
                key = _string(cursor)
                entries[key] = read_item(cursor)
        cursor.depth -= 1
        return entries

    return read


def _with_logical_type(
    schema: dict[str, Any], kind: str, plain: ValueReader, raw: Callable[[Cursor], bytes] | None
) -> ValueReader:
    """Return a reader that formats logical types. plain: reads the base value; raw: reads the bytes of byte types."""
    show = logical_type(schema, kind)
    if show is None:
        return plain
    if raw is None:
        return lambda cursor: show(plain(cursor))
    return lambda cursor: show(raw(cursor))
