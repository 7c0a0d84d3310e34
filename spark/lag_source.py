"""The rows of the lag report as a Spark data source: a task reads a range of groups (kctl.history.lag.row_batches).

Passes collected just now travel inside the pickled reader; they contain no secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.pandas.types import from_arrow_schema

from kctl.history.lag.row_batches import arrow_schema, kinds, read, rows_of
from kctl.spark import sources, task_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kctl.history.evaluate.group_ranges import GroupRange
    from kctl.history.lag.plan import LagPlan
    from kctl.history.lag.request import LagQuery
    from kctl.history.lag.status_rows import LagStatus

FORMAT = "kctl_lag"


def load(spark: SparkSession, query: LagQuery, ranges: Sequence[GroupRange]) -> DataFrame:
    """Return the rows as a DataFrame with the columns of `arrow_schema`, in no particular order."""
    schema = from_arrow_schema(arrow_schema(query.by))
    return task_source.load(spark, FORMAT, schema, partial(read, query), ranges)


class LagReportJob:
    """The rows of a plan. keep: read the rows once and reuse them in later actions."""

    def __init__(self, spark: SparkSession, plan: LagPlan, *, keep: bool = False) -> None:
        self._by = plan.query.by
        frame = load(spark, plan.query, plan.ranges)
        self._all = sources.once(frame) if keep else frame

    def read(self) -> tuple[list[LagStatus], list[str]]:
        """Return the rows, sorted by group, topic and partition, and the errors."""
        return rows_of(self._all.collect(), self._by)

    def frame(self) -> DataFrame:
        """Return the rows for Parquet: times as timestamps, in no particular order."""
        columns = [
            F.timestamp_millis(name).alias(name) if kind is datetime else F.col(name)
            for name, kind in kinds(self._by).items()
        ]
        return self._all.where(F.col("error").isNull()).select(*columns)
