"""The status of each row of a store by its last ten: `python window_engines.py ENGINE STORE`.

Prints how many rows have each status, and the sum of their lags: all engines have to print the same. The peers do what
kctl.history.lag.window does of it with rows a minute apart and without null; kctl also gets time lags, rates and more.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from kctl.history.evaluate.group_ranges import GroupRange

CORES = 2
Found = dict[int, tuple[int, int]]  # status → rows, sum of lags

# kctl.history.lag.status, as SQL: Spark's and DuckDB's. Numbers as kctl.history.lag.status.Status has them.
SQL = """
WITH seen AS (
  SELECT *, greatest(log_end_offset - committed_offset, 0) AS behind FROM commits
), steps AS (
  SELECT *, lag(committed_offset) OVER w AS offset_before, lag(behind) OVER w AS behind_before
  FROM seen WINDOW w AS (PARTITION BY `group`, topic, `partition` ORDER BY at_ms)
), marks AS (
  SELECT *,
    CASE WHEN offset_before IS NULL OR committed_offset <> offset_before THEN at_ms END AS changed_ms,
    CASE WHEN committed_offset < offset_before THEN 1 ELSE 0 END AS is_back,
    CASE WHEN behind < behind_before THEN 1 ELSE 0 END AS less_behind
  FROM steps
), windows AS (
  SELECT *,
    count(*) OVER w AS observations, min(at_ms) OVER w AS first_ms, max(changed_ms) OVER w AS last_changed_ms,
    first_value(behind) OVER w AS first_behind, first_value(log_end_offset) OVER w AS first_end,
    min(behind) OVER w AS least_behind, max(committed_offset) OVER w AS most_committed,
    max(is_back) OVER v AS rewound, max(less_behind) OVER v AS recovered
  FROM marks
  WINDOW w AS (PARTITION BY `group`, topic, `partition` ORDER BY at_ms ROWS BETWEEN 9 PRECEDING AND CURRENT ROW),
         v AS (PARTITION BY `group`, topic, `partition` ORDER BY at_ms ROWS BETWEEN 8 PRECEDING AND CURRENT ROW)
), since AS (
  SELECT *, greatest(coalesce(last_changed_ms, first_ms), first_ms) AS since_ms FROM windows
), judged AS (
  SELECT greatest(log_end_offset - greatest(committed_offset, log_start_offset), 0) AS unread,
    CASE WHEN observations < 10 OR behind = 0 THEN 1
         WHEN at_ms - since_ms > since_ms - first_ms AND first_end > committed_offset THEN 4
         WHEN rewound = 1 AND committed_offset < most_committed THEN 6
         WHEN least_behind = 0 THEN 1
         WHEN since_ms <= first_ms THEN 5
         WHEN recovered = 0 AND behind > first_behind THEN 2
         ELSE 1 END AS status
  FROM since
)
SELECT status, count(*) AS row_count, sum(unread) AS unread FROM judged GROUP BY status
"""


def spark_sql(store: Path) -> Found:
    """Spark as pip installs it, over the same Parquet files."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{CORES}]").config("spark.driver.memory", "6g")
    spark = builder.config("spark.sql.shuffle.partitions", "8").config("spark.ui.enabled", "false").getOrCreate()
    spark.read.parquet(*_files(store)).createOrReplaceTempView("commits")
    return {row[0]: (row[1], int(row[2])) for row in spark.sql(SQL).collect()}


def kctl_spark(store: Path) -> Found:
    """kctl's way in Spark: tasks have ranges of groups, judge them, and give on what they come to."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
    from pyspark.sql.types import LongType, StructField, StructType

    from kctl.history.evaluate.group_ranges import group_ranges
    from kctl.history.snapshots.store import open_store
    from kctl.spark.session import SparkDriver
    from kctl.spark.settings import SparkSettings
    from kctl.spark.task_source import load

    schema = StructType([StructField(name, LongType()) for name in ("status", "row_count", "unread")])
    with SparkDriver(SparkSettings(f"local[{CORES}]")) as driver:
        damaged: list[Any] = []
        ranges = group_ranges(open_store(store), 0, 10**13, CORES, damaged=damaged.append)
        assert not damaged
        frame = load(driver.session(), "statuses", schema, partial(_task, store), ranges)
        found = frame.groupBy("status").agg(F.sum("row_count"), F.sum("unread")).collect()
        return {row[0]: (row[1], row[2]) for row in found}


def _task(store: Path, groups: GroupRange) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    rows = [(status, *sums) for status, sums in _judged(store, groups).items()]
    arrays = [pa.array(values, pa.int64()) for values in zip(*rows, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, names=["status", "row_count", "unread"])


def kctl_python(store: Path) -> Found:
    """The same in one process without Spark."""
    from kctl.history.evaluate.group_ranges import EVERY_GROUP

    return _judged(store, EVERY_GROUP)


def _judged(store: Path, groups: GroupRange) -> Found:
    import numpy as np
    import pyarrow as pa

    from kctl.history.evaluate.column_arrays import numbers
    from kctl.history.evaluate.windows import judge_batches
    from kctl.history.snapshots.read import read_sorted
    from kctl.history.snapshots.store import open_store

    damaged: list[Any] = []
    batches = read_sorted(open_store(store), "commits", 0, 10**13, damaged=damaged.append, **groups._asdict())
    rows, lags = np.zeros(8, dtype=np.int64), np.zeros(8, dtype=np.int64)
    for batch in judge_batches(batches):
        status = numbers(batch.column("status").cast(pa.int64()))
        rows += np.bincount(status, minlength=8)
        lags += np.bincount(status, weights=numbers(batch.column("lag")), minlength=8).astype(np.int64)
    assert not damaged
    return {each: (int(rows[each]), int(lags[each])) for each in np.flatnonzero(rows).tolist()}


def duckdb(store: Path) -> Found:
    """DuckDB's window functions."""
    import duckdb as engine  # type: ignore[import-not-found]  # only benchmarks need it

    connection = engine.connect(config={"threads": CORES})
    connection.execute(
        "CREATE VIEW commits AS SELECT * FROM read_parquet($files)".replace("$files", repr(_files(store)))
    )
    return {row[0]: (row[1], int(row[2])) for row in connection.execute(SQL.replace("`", '"')).fetchall()}


def polars(store: Path) -> Found:
    """Polars' lazy frames, by its own planner."""
    import polars as pl  # type: ignore[import-not-found]  # only benchmarks need it

    keys = ["group", "topic", "partition"]
    c, behind, at = pl.col("committed_offset"), pl.col("behind"), pl.col("at_ms")

    def by_key(expression: Any) -> Any:
        return expression.over(keys)

    frame = pl.scan_parquet(_files(store)).select(
        *keys, "at_ms", "committed_offset", "log_start_offset", "log_end_offset",
        behind=(pl.col("log_end_offset") - c).clip(0),
    ).sort(*keys, "at_ms").with_columns(
        changed_ms=by_key(pl.when(c.ne_missing(c.shift(1))).then(at)),
        is_back=by_key((c < c.shift(1)).fill_null(value=False).cast(pl.Int8)),
        less_behind=by_key((behind < behind.shift(1)).fill_null(value=False).cast(pl.Int8)),
        full=by_key(at.shift(9)).is_not_null(),
        first_ms=by_key(at.shift(9)), first_behind=by_key(behind.shift(9)),
        first_end=by_key(pl.col("log_end_offset").shift(9)),
    ).with_columns(
        last_changed_ms=by_key(pl.col("changed_ms").rolling_max(10, min_samples=1)),
        least_behind=by_key(behind.rolling_min(10, min_samples=1)),
        most_committed=by_key(c.rolling_max(10, min_samples=1)),
        rewound=by_key(pl.col("is_back").rolling_max(9, min_samples=1)),
        recovered=by_key(pl.col("less_behind").rolling_max(9, min_samples=1)),
        unread=(pl.col("log_end_offset") - pl.max_horizontal("committed_offset", "log_start_offset")).clip(0),
    ).with_columns(since_ms=pl.max_horizontal(pl.col("last_changed_ms"), pl.col("first_ms"))).with_columns(
        status=pl.when(~pl.col("full") | (behind == 0)).then(1)
        .when((at - pl.col("since_ms") > pl.col("since_ms") - pl.col("first_ms")) & (pl.col("first_end") > c)).then(4)
        .when((pl.col("rewound") == 1) & (c < pl.col("most_committed"))).then(6)
        .when(pl.col("least_behind") == 0).then(1)
        .when(pl.col("since_ms") <= pl.col("first_ms")).then(5)
        .when((pl.col("recovered") == 0) & (behind > pl.col("first_behind"))).then(2)
        .otherwise(1)
    )  # fmt: skip
    found = frame.group_by("status").agg(pl.len(), pl.col("unread").sum()).collect()
    return {row[0]: (row[1], row[2]) for row in found.rows()}


ENGINES: dict[str, Callable[[Path], Found]] = {
    "spark-sql": spark_sql,
    "kctl-spark": kctl_spark,
    "kctl-python": kctl_python,
    "duckdb": duckdb,
    "polars": polars,
}


def _files(store: Path) -> list[str]:
    return sorted(map(str, store.glob("commits/*/*/*.parquet")))


if __name__ == "__main__":
    answer = ENGINES[sys.argv[1]](Path(sys.argv[2]))
    sys.stdout.write(json.dumps({str(status): answer[status] for status in sorted(answer)}) + "\n")
