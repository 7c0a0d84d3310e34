"""Groups over time as a Spark data source: a task reads a range of groups (kctl.history.evaluate.reading_batches)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema

from kctl.history.evaluate.reading_batches import ARROW, ReadingsQuery, read
from kctl.spark import task_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kctl.history.evaluate.group_ranges import GroupRange

FORMAT = "kctl_readings"
SCHEMA = from_arrow_schema(ARROW)


def load(spark: SparkSession, query: ReadingsQuery, ranges: Sequence[GroupRange]) -> DataFrame:
    """Return the readings as a DataFrame of SCHEMA, in no particular order. `error` is null in readings."""
    return task_source.load(spark, FORMAT, SCHEMA, partial(read, query), ranges)
