"""Avro as kctl reads it: against fastavro for what is well formed, and with bounds for what is not."""

from __future__ import annotations

import io
import json
import struct
import time
import tracemalloc
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kctl.records.decode.avro_schema import read_value, schema_reader

INT_ARRAY = {"type": "array", "items": "int"}
TREE = {"type": "record", "name": "Tree", "fields": [{"name": "next", "type": ["null", "Tree"]}]}
ENDLESS = {"type": "record", "name": "Endless", "fields": [{"name": "next", "type": "Endless"}]}
WIDE = {"type": "record", "name": "Wide", "fields": [{"name": f"f{n}", "type": "null"} for n in range(1000)]}
COLOR = {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}


def _read(schema: Any, data: bytes, *references: Any) -> Any:
    value, remaining = read_value(schema_reader(json.dumps(schema), tuple(map(json.dumps, references))), data)
    assert remaining == 0, f"{remaining} bytes are left"
    return value


def _long(value: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    return out.getvalue()


def _encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ("null", None, None), ("boolean", True, True), ("int", -(2**31), -(2**31)), ("long", 2**63 - 1, 2**63 - 1),
        ("long", -(2**63), -(2**63)), ("float", 1.5, 1.5), ("double", float("-inf"), "-inf"),
        ("bytes", b"\xff", "/w=="),
        ("string", "é", "é"), (COLOR, "BLUE", "BLUE"), (INT_ARRAY, [1, 2, 3], [1, 2, 3]), (INT_ARRAY, [], []),
        ({"type": "map", "values": "string"}, {"a": "b"}, {"a": "b"}),
        ({"type": "fixed", "name": "F", "size": 2}, b"\0\1", "AAE="), (["null", "string"], "x", "x"),
        (TREE, {"next": {"next": None}}, {"next": {"next": None}}),
        ({"type": "error", "name": "E", "fields": [{"name": "a", "type": "int"}]}, {"a": 1}, {"a": 1}),
    ],
)  # fmt: skip
def test_types(schema: Any, value: Any, expected: Any) -> None:
    assert _read(schema, _encoded(schema, value)) == expected


@pytest.mark.parametrize(
    "field",
    [
        {"name": "a", "type": "string", "default": None},
        {"name": "a", "type": "string", "default": 0},
        {"name": "a", "type": ["string", "null"], "default": None},
        {"name": "a", "type": {"type": "string", "avro.java.string": "String"}, "default": []},
        {"name": "a", "type": "string", "aliases": "b", "order": "nonsense", "doc": 7},
        {"name": "a-b c", "type": "string"},
        {"name": "ä", "type": {"type": "string", "logicalType": "unheard-of"}},
        {"name": "", "type": "string"},
    ],
)
def test_what_decides_nothing_about_the_bytes(field: dict[str, Any]) -> None:
    """Java reads values of all these schemas, or did when they were registered."""
    schema = {"type": "record", "name": "R", "fields": [field]}
    data = (b"\0" if isinstance(field["type"], list) else b"") + b"\x04hi"
    assert _read(schema, data) == {field["name"]: "hi"}


@pytest.mark.parametrize(
    ("schema", "data", "expected"),
    [
        ({"type": "int", "logicalType": "date"}, _long(-719162), "0001-01-01"),
        ({"type": "int", "logicalType": "date"}, _long(2**31 - 1), 2**31 - 1),  # no calendar has it
        ({"type": "long", "logicalType": "date"}, _long(1), 1),  # no date is a long
        ({"type": "int", "logicalType": "time-millis"}, _long(86_399_001), "23:59:59.001000"),
        ({"type": "int", "logicalType": "time-millis"}, _long(86_400_000), 86_400_000),
        ({"type": "int", "logicalType": "time-millis"}, _long(-1), -1),
        ({"type": "long", "logicalType": "time-micros"}, _long(1), "00:00:00.000001"),
        ({"type": "long", "logicalType": "timestamp-millis"}, _long(-1), "1969-12-31T23:59:59.999000Z"),
        ({"type": "long", "logicalType": "timestamp-millis"}, _long(2**63 - 1), 2**63 - 1),
        ({"type": "long", "logicalType": "timestamp-micros"}, _long(-(2**63)), -(2**63)),
        ({"type": "long", "logicalType": "timestamp-nanos"}, _long(1), "1970-01-01T00:00:00.000000001Z"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, _long(0), "1970-01-01T00:00:00"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, b"\x04\xff\x85", "-1.23"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, b"\0", "0.00"),
        ({"type": "bytes", "logicalType": "decimal"}, b"\x02\x01", "AQ=="),  # without a precision it is none
        ({"type": "bytes", "logicalType": "decimal", "precision": 1, "scale": 2}, b"\x02\x01", "AQ=="),
        ({"type": "bytes", "logicalType": "decimal", "precision": "x"}, b"\x02\x01", "AQ=="),
        ({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 4}, b"\x01\x00", "256"),
        ({"type": "string", "logicalType": "uuid"}, b"\x08nope", "nope"),
        ({"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, bytes(16),
         "00000000-0000-0000-0000-000000000000"),
        ({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}, struct.pack("<III", 1, 2, 3),
         {"months": 1, "days": 2, "milliseconds": 3}),
        ({"type": "string", "logicalType": ["x"]}, b"\x02a", "a"),
    ],
)  # fmt: skip
def test_logical_types(schema: Any, data: bytes, expected: Any) -> None:
    assert _read(schema, data) == expected


def test_a_decimal_of_any_size() -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 99_999, "scale": 2}
    for size, output in ((1000, "."), (1 << 20, "=")):
        assert output in _read(schema, _long(size) + b"\x7f" * size)


@pytest.mark.parametrize(
    ("schema", "data", "why"),
    [
        ({"type": "array", "items": "null"}, _long(2**62) + b"\0", "more values than its bytes"),
        ({"type": "array", "items": "null"}, _long(-(2**63)) + _long(0) + b"\0", "more values than its bytes"),
        ({"type": "array", "items": "null"}, (_long(9_000)) * 20 + b"\0", "more values than its bytes"),
        ({"type": "array", "items": WIDE}, _long(9_900) + b"\0", "more values than its bytes"),
        ({"type": "array", "items": {"type": "array", "items": WIDE}}, _long(900) + (_long(99) + b"\0") * 900 + b"\0",
         "more values than its bytes"),
        ({"type": "array", "items": {"type": "fixed", "name": "N", "size": 0}}, _long(2**40) + b"\0", "more values"),
        ({"type": "map", "values": "null"}, _long(2**40) + b"\0" * 50, "more values|ends within"),
        (INT_ARRAY, _long(2**40) + b"\0" * 50, "more values"),
        (INT_ARRAY, _long(3) + b"\0\0", "ends within a value"),
        (INT_ARRAY, _long(-1) + _long(-1) + b"\0\0", "a block of -1 bytes"),
        (INT_ARRAY, _long(-1) + _long(1000) + b"\0\0", "a block of 1000 bytes"),
        ("string", _long(-1), "a length of -1"),
        ("string", _long(2**62), "exceeds the remaining"),
        ("bytes", b"\x06ab", "exceeds the remaining"),
        ("string", b"\x02\xff", "utf-8"),
        ("int", _long(2**31), "more than 32 bits"),
        ("long", b"\xff" * 11, "more than 64 bits"),
        ("long", b"\xff" * 9 + b"\x7f", "more than 64 bits"),
        ("long", b"\xff", "ends within a value"),
        ("double", b"1234567", "exceeds the remaining"),
        ("boolean", b"\x02", "a boolean is 2"),
        ("boolean", b"", "ends within a value"),
        (COLOR, _long(2), "no symbol 2"),
        (COLOR, _long(-1), "no symbol -1"),
        (["null", "int"], _long(2), "no type 2"),
        (["null", "int"], _long(-1), "no type -1"),
        ([], _long(0), "no type 0"),
        ({"type": "fixed", "name": "F", "size": 2**40}, b"\0", "exceeds the remaining"),
        (TREE, _long(1) * 100_000 + b"\0", "nested"),
        (ENDLESS, b"", "nested"),
    ],
)  # fmt: skip
def test_what_strangers_write(schema: Any, data: bytes, why: str) -> None:
    """An error within a moment and a few MB, and never a crash."""
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(ValueError, match=why):
        _read(schema, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (7, "is not a type"), (None, "is not a type"), ({}, "is not a type"), ({"type": "nonsense"}, "not defined"),
        ({"type": "array"}, "is not a type"), ({"type": "record", "fields": []}, "has no name"),
        ({"type": "record", "name": "R"}, "has no fields"),
        ({"type": "record", "name": "R", "fields": [1]}, "no fields"),
        ({"type": "enum", "name": "E"}, "no symbols"), ({"type": "fixed", "name": "F"}, "no size"),
        ({"type": "fixed", "name": "F", "size": -1}, "no size"),
        ({"type": "fixed", "name": "F", "size": True}, "no size"),
        ([{"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 2}], "defined twice"),
        ({"type": "record", "name": "R", "fields": [{"name": "a"}]}, "is not a type"),
    ],
)  # fmt: skip
def test_what_is_no_schema(schema: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        schema_reader(json.dumps(schema), ())


@pytest.mark.parametrize("depth", [300, 100_000])
def test_schemas_nested_too_deeply(depth: int) -> None:
    with pytest.raises(ValueError, match="nested"):
        schema_reader('{"type":"array","items":' * depth + '"int"' + "}" * depth, ())


@pytest.mark.parametrize(
    ("references", "name"),
    [
        ([{"type": "fixed", "name": "x.F", "size": 1}], "x.F"),
        ([{"type": "fixed", "name": "F", "namespace": "x", "size": 1}], "x.F"),
        ([{"type": "fixed", "name": "F", "namespace": "outer", "size": 1}], "F"),
        ([{"type": "fixed", "name": "F", "size": 1}], "F"),  # no namespace: Java looks there, too
        ([{"type": "record", "name": "y.R",
           "fields": [{"name": "f", "type": {"type": "fixed", "name": "F", "size": 1}}]}], "y.F"),
    ],
)  # fmt: skip
def test_names_and_namespaces(references: list[Any], name: str) -> None:
    schema = {"type": "record", "name": "outer.R", "fields": [{"name": "f", "type": name}]}
    assert _read(schema, b"\xff", *references) == {"f": "/w=="}
    with pytest.raises(ValueError, match="not defined"):
        schema_reader(json.dumps(schema), ())


# --- against fastavro ------------------------------------------------------------------------------------------------

_SIMPLE = st.sampled_from(["null", "boolean", "int", "long", "string", "double"])


def _schemas() -> st.SearchStrategy[Any]:
    def extend(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        fields = st.lists(inner, max_size=4).map(
            lambda types: [{"name": f"f{index}", "type": each} for index, each in enumerate(types)]
        )
        return st.one_of(
            inner.map(lambda each: {"type": "array", "items": each}),
            inner.map(lambda each: {"type": "map", "values": each}),
            st.tuples(fields, st.integers(0, 10**9)).map(
                lambda pair: {"type": "record", "name": f"R{pair[1]}", "fields": pair[0]}
            ),
        )

    return st.recursive(_SIMPLE, extend, max_leaves=8)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_schemas(), st.binary(max_size=40))
def test_any_bytes_as_fastavro_reads_them(schema: Any, data: bytes) -> None:
    """Where both read a value it is the same; kctl never raises anything else than ValueError."""
    try:
        parsed = fastavro.parse_schema(schema)
    except fastavro.schema.SchemaParseException:
        return  # two records of one name
    try:
        value, remaining = read_value(schema_reader(json.dumps(schema), ()), data)
    except ValueError:
        return
    stream = io.BytesIO(data)
    expected = fastavro.schemaless_reader(stream, parsed, None)
    assert (value, remaining) == (_plain(expected), len(data) - stream.tell())
