"""Readings of a store of snapshots through a real Spark: the rows of each task, put together. No broker is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kctl.lag.status import Status
from kctl.lag.window import MINUTE_MS, WindowRules
from kctl.snapshots import schema
from kctl.snapshots.collect import Pass
from kctl.snapshots.compact import compact
from kctl.snapshots.store import open_store
from kctl.spark.session import SparkDriver
from kctl.spark.settings import SparkSettings
from kctl.spark.snapshot_ranges import EVERY_GROUP, group_ranges
from kctl.spark.snapshot_source import ARROW, Question, load, read
from snapshot_stores import HOUR, put, store_with

PASSES = 64
# Messages that a group reads a minute; None: it has committed nothing.
GROUPS = {"keeps-up": 10, "slow": 5, "stopped": 0, "nothing": None}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One embedded Spark, as kctl starts it."""
    with SparkDriver(SparkSettings(master="local[2]", use_archive=False)) as driver:
        yield driver.session()


@pytest.fixture(scope="module")
def question(tmp_path_factory: pytest.TempPathFactory) -> Question:
    """A compacted hour and four passes more; ten messages a minute are written to each partition."""
    store = store_with(tmp_path_factory.mktemp("store") / "s", [])
    for number in range(PASSES):
        end = 1000 + 10 * number
        offsets = {group: None if rate is None else 1000 + rate * number for group, rate in GROUPS.items()}
        rows = [(group, "t", p, at, 0, end, 3, "id", False) for group, at in offsets.items() for p in range(3)]
        put(store, number * MINUTE_MS, Pass(rows={schema.COMMITS: rows}))
    for _ in compact(store, HOUR):
        pass
    return Question(str(store.root), HOUR.start_ms, HOUR.start_ms + PASSES * MINUTE_MS, WindowRules(), last_only=True)


def test_each_task_reads_its_groups(spark: SparkSession, question: Question) -> None:
    store = open_store(Path(question.store))
    ranges = group_ranges(store, question.read_from_ms, question.to_ms, 2, damaged=lambda d: pytest.fail(str(d)))
    assert len(ranges) == 2
    frame = load(spark, question, ranges)
    assert {row[0] for row in frame.select(F.spark_partition_id()).collect()} == {0, 1}
    assert frame.columns == ARROW.names
    found = sorted(tuple(row) for row in frame.collect())
    assert found == sorted(tuple(row.values()) for batch in read(question) for row in batch.to_pylist())
    states = {row["group"]: Status(row["status"]) for row in frame.select("group", "status").distinct().collect()}
    assert states == {
        "keeps-up": Status.OK, "slow": Status.WARN, "stopped": Status.STOP, "nothing": Status.UNKNOWN,
    }  # fmt: skip
    plan = frame._jdf.queryExecution().toString()
    assert "Exchange" not in plan


def test_rates_come_out_in_columns(spark: SparkSession, question: Question) -> None:
    row = load(spark, question, [EVERY_GROUP]).where(F.col("group") == "slow").first()
    assert row is not None
    assert row["consumed_per_s"] == pytest.approx(5 / 60)
    assert row["produced_per_s"] == pytest.approx(10 / 60)
    assert row["catch_up_ms"] is None


def test_what_cannot_be_read_is_a_row(spark: SparkSession, tmp_path: Path) -> None:
    (row,) = load(spark, Question(str(tmp_path / "none"), 0, 1), [EVERY_GROUP]).collect()
    assert row["group"] is None
    assert "is no store" in row["error"]
