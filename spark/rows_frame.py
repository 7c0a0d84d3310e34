"""Rows that kctl has made, as a DataFrame, to be written as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KINDS: dict[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    str: pa.string(),
    datetime: pa.timestamp("us", tz="UTC"),
}


def arrow_of(rows: Sequence[Any], row: type[Any]) -> pa.Table:
    """Rows of a dataclass as a table; columns have their JSON names. Raises TypeError for a field of a type that no
    column has."""
    return pa.Table.from_pylist([_plain(each) for each in rows], schema=_schema(row))


def frame_of(spark: SparkSession, rows: Sequence[Any], row: type[Any]) -> DataFrame:
    """`arrow_of` as a DataFrame."""
    return spark.createDataFrame(arrow_of(rows, row))


def _schema(row: type[Any]) -> pa.Schema:
    hints = get_type_hints(row)
    return pa.schema([pa.field(each.name, _kind(hints[each.name])) for each in fields(row)])


def _kind(hint: Any) -> pa.DataType:
    if get_origin(hint) in {Union, UnionType}:
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    if hint in _KINDS:
        return _KINDS[hint]
    if get_origin(hint) is list:
        return pa.list_(_kind(get_args(hint)[0]))
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return pa.struct(list(_schema(hint)))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return pa.string()
    raise TypeError(f"no column is made of {hint}")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.value if isinstance(value, Enum) else value
