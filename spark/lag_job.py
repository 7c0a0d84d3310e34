"""The lag report as a Spark job: rows of kctl.history.lag.status_rows, from kctl.spark.lag_source."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kctl.history.lag.status_rows import LagStatus
from kctl.lag.retention import at
from kctl.spark import sources
from kctl.spark.lag_source import ROWS, kinds, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kctl.history.lag.plan import LagPlan


class LagReportJob:
    """What a plan reads. keep: rows are read once, and kept for what comes after the first action."""

    def __init__(self, spark: SparkSession, plan: LagPlan, *, keep: bool = False) -> None:
        self._by = plan.question.by
        frame = load(spark, plan.question, plan.ranges)
        self._all = sources.once(frame) if keep else frame

    def read(self) -> tuple[list[LagStatus], list[str]]:
        """The rows, sorted by group, topic and partition; and what could not be read."""
        types = list(kinds(self._by).values())
        row_type = ROWS[self._by]
        rows: list[Any] = []
        errors: dict[str, None] = {}
        for *values, error in self._all.collect():
            if error is not None:
                errors[error] = None
                continue
            rows.append(row_type(*(at(v) if kind is datetime else v for v, kind in zip(values, types, strict=True))))
        rows.sort(key=lambda row: tuple(getattr(row, key, 0) for key in ("group", "topic", "partition")))
        return rows, list(errors)

    def frame(self) -> DataFrame:
        """The rows for Parquet: times as timestamps, in no order."""
        own = [
            F.timestamp_millis(name).alias(name) if kind is datetime else F.col(name)
            for name, kind in kinds(self._by).items()
        ]
        return self._all.where(F.col("error").isNull()).select(*own)
