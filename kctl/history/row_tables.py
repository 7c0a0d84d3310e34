"""Rows of a dataclass as an Arrow table, for Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

_KINDS: dict[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    str: pa.string(),
    datetime: pa.timestamp("us", tz="UTC"),
}


def table_of(rows: Sequence[Any], row: type[Any]) -> pa.Table:
    """Return the rows as a table; columns have their JSON names. Raises TypeError for an unsupported field type."""
    schema = schema_of(row)
    columns = zip(*([_value(getattr(each, field.name)) for field in fields(row)] for each in rows), strict=True)
    values = columns if rows else ([] for _ in schema)
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, schema=schema)])


def schema_of(row: type[Any]) -> pa.Schema:
    """Return the columns of a dataclass. All may be null."""
    return pa.schema(_fields(row))


def _fields(row: type[Any]) -> list[pa.Field]:
    hints = get_type_hints(row)
    return [pa.field(each.name, _kind(hints[each.name])) for each in fields(row)]


def _kind(hint: Any) -> pa.DataType:
    if get_origin(hint) in {Union, UnionType}:
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    if (kind := _KINDS.get(hint)) is not None:
        return kind
    if get_origin(hint) is list:
        return pa.list_(_kind(get_args(hint)[0]))
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return pa.struct(_fields(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return pa.string()
    raise TypeError(f"no column type for {hint}")


def _value(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _value(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, list):
        return [_value(each) for each in value]
    return value.value if isinstance(value, Enum) else value
