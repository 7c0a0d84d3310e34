"""Rows that kctl has made, as a DataFrame, to be written as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_KINDS: dict[Any, DataType] = {
    int: LongType(),
    float: DoubleType(),
    bool: BooleanType(),
    str: StringType(),
    datetime: TimestampType(),
}


def frame_of(spark: SparkSession, rows: Sequence[Any], row: type[Any]) -> DataFrame:
    """Rows of a dataclass as a DataFrame; columns have their JSON names. Raises TypeError for a field of a type that no
    column has."""
    return spark.createDataFrame([plain(each) for each in rows], schema_of(row))


def table_of(rows: Sequence[Any], row: type[Any]) -> pa.Table:
    """The same without Spark, as an Arrow table."""
    import pyarrow as pa

    schema = pa.schema([pa.field(each.name, _arrow(each.dataType)) for each in schema_of(row).fields])
    columns = zip(*map(plain, rows), strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, schema=schema)])


def _arrow(kind: DataType) -> pa.DataType:
    """pyspark's own way there changes from version to version. Raises TypeError for lists and structs."""
    import pyarrow as pa

    if isinstance(kind, TimestampType):
        return pa.timestamp("us", tz="UTC")
    plain_kinds = {"bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
    found = plain_kinds.get(kind.simpleString())
    if found is None:
        raise TypeError(f"no column is made of {kind.simpleString()}")
    return found


def schema_of(row: type[Any]) -> StructType:
    """The columns of a dataclass."""
    hints = get_type_hints(row)
    return StructType([StructField(each.name, _kind(hints[each.name])) for each in fields(row)])


def plain(row: Any) -> tuple[Any, ...]:
    """A row in the order of its columns, dataclasses in it as well."""
    return tuple(_value(getattr(row, each.name)) for each in fields(row))


def _kind(hint: Any) -> DataType:
    if get_origin(hint) in {Union, UnionType}:
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    if hint in _KINDS:
        return _KINDS[hint]
    if get_origin(hint) is list:
        return ArrayType(_kind(get_args(hint)[0]))
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return schema_of(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return StringType()
    raise TypeError(f"no column is made of {hint}")


def _value(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return plain(value)
    if isinstance(value, list):
        return [_value(each) for each in value]
    return value.value if isinstance(value, Enum) else value
