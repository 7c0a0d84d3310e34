"""Rollups of hours, created by Spark's tasks: each task rolls up its share of the hours and writes the files itself.

The store is a folder that every executor can write to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kctl.errors import KctlError
from kctl.history.evaluate.store_access import store_here
from kctl.history.rollups.catch_up import MakeHours, hours_here, make_hour
from kctl.history.snapshots.columns import column
from kctl.history.snapshots.layout import Hour
from kctl.history.snapshots.store import Store
from kctl.spark import task_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = "kctl_rollups"
SCHEMA = StructType([StructField("start_ms", LongType()), StructField("error", StringType())])
_ARROW = pa.schema([pa.field("start_ms", pa.int64()), pa.field("error", pa.string())])


def hours_by_spark(spark: SparkSession, parallelism: int) -> MakeHours:
    """Return a function that rolls up hours in at most `parallelism` tasks."""

    def make_hours(store: Store, hours: Sequence[Hour]) -> Iterator[tuple[int, list[str]]]:
        if parallelism <= 1 or len(hours) <= 1:
            yield from hours_here(store, hours)
            return
        shares = [tuple(hours[start::parallelism]) for start in range(min(parallelism, len(hours)))]
        errors: dict[int, list[str]] = {hour.start_ms: [] for hour in hours}
        rows = task_source.load(spark, FORMAT, SCHEMA, partial(make_share, str(store.root.absolute())), shares)
        for row in rows.collect():
            if row["error"] is not None:
                errors[row["start_ms"]].append(row["error"])
        yield from errors.items()

    return make_hours


def make_share(store: str, hours: Sequence[Hour]) -> Iterator[pa.RecordBatch]:
    """Create the rollups of `hours`. Yield a row for each hour, and a row for each error.

    A retried task writes the same files again.
    """
    for hour in hours:
        try:
            errors: list[str | None] = [str(each) for each in make_hour(store_here(store), hour)]
        except KctlError as exc:
            errors = [exc.message]
        rows = [None, *errors]
        arrays = [column([hour.start_ms] * len(rows), pa.int64()), column(rows, pa.string())]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
