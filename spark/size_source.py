"""Growth of replicas as a Spark data source: a task reads a range of topics (kctl.history.retention.replica_growth)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema

from kctl.history.retention.replica_growth import ARROW, SizesQuery, read
from kctl.spark import task_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kctl.history.evaluate.group_ranges import GroupRange

FORMAT = "kctl_growth"
SCHEMA = from_arrow_schema(ARROW)


def load(spark: SparkSession, query: SizesQuery, ranges: Sequence[GroupRange]) -> DataFrame:
    """Return the replicas as a DataFrame of SCHEMA. `error` is null in replicas."""
    return task_source.load(spark, FORMAT, SCHEMA, partial(read, query), ranges)
