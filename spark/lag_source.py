"""Groups as `kctl spark lag` tells of them, as a Spark data source: a row for each partition, topic or group.

A task has a range of groups. It reads the store's snapshots of them, puts the passes that were just made behind, judges
them (evaluate.windows), takes each partition's last reading with its span (evaluate.spans), and makes rows of them
with what else is known of the cluster (snapshots.moment), by lag.status_rows. A group is in one
task, whole: so rows are added up there, and nothing is shuffled or joined.

Passes that were just made travel inside the pickled reader; nothing in them is secret. What cannot be read is a row
with nothing but `error`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, get_type_hints

import pyarrow as pa
from pyspark.sql.types import BooleanType, DataType, DoubleType, LongType, StringType, StructField, StructType

from kctl.errors import KctlError
from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange
from kctl.history.evaluate.windows import NotSorted
from kctl.history.lag.request import GROUP, PARTITION, TOPIC, LagQuestion
from kctl.history.lag.rows import partition_rows
from kctl.history.lag.status_rows import GroupStatus, LagStatus, PartitionStatus, TopicStatus
from kctl.history.lag.totals import by_group, by_topic
from kctl.history.snapshots.columns import column
from kctl.history.snapshots.store import Damaged
from kctl.spark import task_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


FORMAT = "kctl_lag"
ROWS: dict[str, type[Any]] = {PARTITION: PartitionStatus, TOPIC: TopicStatus, GROUP: GroupStatus}
_BATCH_ROWS = 20_000
_SPARK: dict[type, DataType] = {
    str: StringType(), int: LongType(), float: DoubleType(), bool: BooleanType(), datetime: LongType(),
}  # fmt: skip
_ARROW: dict[type, pa.DataType] = {
    str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), datetime: pa.int64(),
}  # fmt: skip


def read(question: LagQuestion, groups: GroupRange = EVERY_GROUP) -> Iterator[pa.RecordBatch]:
    """The rows of a range of groups, then what could not be read: batches of `arrow_schema`. Needs no Spark."""
    damaged: list[Damaged] = []
    errors: list[str] = []
    try:
        for rows in _chunks(partition_rows(question, groups, damaged, errors=errors), question.by):
            yield _batch(rows, question.by)
    except KctlError as exc:
        errors.append(exc.message)
    except NotSorted as exc:
        errors.append(f"{question.store}: {exc}")
    errors += map(str, damaged)
    if errors:
        yield _told(list(dict.fromkeys(errors)), question.by)


def _chunks(groups: Iterable[list[PartitionStatus]], by: str) -> Iterator[list[LagStatus]]:
    """Each group's rows, added up as asked, some groups at a time."""
    waiting: list[LagStatus] = []
    for rows in groups:
        waiting += by_group(rows) if by == GROUP else by_topic(rows) if by == TOPIC else rows
        if len(waiting) >= _BATCH_ROWS:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


# --- columns --------------------------------------------------------------------------------------------------------


def kinds(by: str) -> dict[str, type]:
    """The columns of a report's rows: str, int, float, bool or datetime. All may be null."""
    hints = get_type_hints(ROWS[by])
    found = {}
    for field in fields(ROWS[by]):
        (kind,) = {each for each in getattr(hints[field.name], "__args__", (hints[field.name],)) if each in _SPARK}
        found[field.name] = kind
    return found


def arrow_schema(by: str) -> pa.Schema:
    """The rows' columns, times as milliseconds, and `error`."""
    own = [pa.field(name, _ARROW[kind]) for name, kind in kinds(by).items()]
    return pa.schema([*own, pa.field("error", pa.string())])


def spark_schema(by: str) -> StructType:
    """`arrow_schema`, as Spark has it."""
    own = [StructField(name, _SPARK[kind]) for name, kind in kinds(by).items()]
    return StructType([*own, StructField("error", StringType())])


def _batch(rows: Sequence[LagStatus], by: str) -> pa.RecordBatch:
    arrays = []
    for name, kind in kinds(by).items():
        values = [getattr(row, name) for row in rows]
        if kind is datetime:
            values = [None if value is None else round(value.timestamp() * 1000) for value in values]
        arrays.append(column(values, _ARROW[kind]))
    arrays.append(pa.nulls(len(rows), pa.string()))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(by))


def _told(errors: Sequence[str], by: str) -> pa.RecordBatch:
    schema = arrow_schema(by)
    arrays = [
        column(errors, pa.string()) if field.name == "error" else pa.nulls(len(errors), field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# --- Spark ----------------------------------------------------------------------------------------------------------


def load(spark: SparkSession, question: LagQuestion, ranges: Sequence[GroupRange]) -> DataFrame:
    """The rows as a DataFrame: the columns of `spark_schema`, in no order between tasks."""
    return task_source.load(spark, FORMAT, spark_schema(question.by), partial(read, question), ranges)
