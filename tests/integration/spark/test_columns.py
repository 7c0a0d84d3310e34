"""What Spark makes of columns, and the readings of a store as its tasks give them, are what the plain functions say.

One real Spark; no broker is needed, a Java is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructType

from kctl.history.evaluate.group_ranges import EVERY_GROUP, group_ranges
from kctl.history.evaluate.reading_batches import ARROW, ReadingsQuery, read
from kctl.history.lag.status import Status
from kctl.history.lag.window import MINUTE_MS, WindowRules
from kctl.history.retention.live_reads import ConfigRow, LogDirReplicaRow, LogRow
from kctl.history.retention.usage import Usage
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.compact import compact
from kctl.history.snapshots.store import open_store
from kctl.lag import retention
from kctl.lag.retention import LeaderLog, LogDirSize, ReplicaSize, TopicRetention
from kctl.spark import columns, sources
from kctl.spark.retention_job import RetentionJob, RetentionReadings
from kctl.spark.session import SparkDriver
from kctl.spark.settings import SparkSettings
from kctl.spark.snapshot_source import load
from snapshot_stores import HOUR, put, store_with

# A Spark job takes some tenths of a second: few examples, each with many rows, and none spent on shrinking.
FEW = settings(
    max_examples=6,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)
NOW = 1_700_000_000_000
OFFSET = st.one_of(st.none(), st.integers(0, 2**62), st.integers(0, 20))
SIZE = st.one_of(st.integers(0, 2**40), st.integers(0, 20))
TOPIC = st.sampled_from(["a", "b", "c.d", "日本", "a b"])
PARTITION = st.integers(0, 3)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One embedded Spark, as kctl starts it."""
    with SparkDriver(SparkSettings(use_archive=False)) as driver:
        yield driver.session()


def _frame(spark: SparkSession, schema: StructType, rows: list[Any]) -> DataFrame:
    return spark.createDataFrame([tuple(row) for row in rows], schema)


# --- retention ------------------------------------------------------------------------------------------------------

_policy = st.sampled_from(["delete", "compact", "compact,delete", "delete, compact", "", None])
_limit = st.one_of(st.none(), st.integers(-1, 1), st.integers(1, 2**40))


@FEW
@given(rows=st.lists(st.tuples(st.one_of(st.none(), SIZE), _limit, _policy), min_size=1, max_size=300))
def test_shares_of_limits(spark: SparkSession, rows: list[tuple[int | None, int | None, str | None]]) -> None:
    schema = StructType().add("a", "long").add("l", "long").add("p", "string")
    a, limit, p = F.col("a"), F.col("l"), F.col("p")
    found = (
        _frame(spark, schema, rows)
        .select(columns.used(a, limit, p), columns.deletes(p), columns.age_ms(NOW, a), columns.disk_used(limit, a))
        .collect()
    )
    assert [tuple(row) for row in found] == [
        (
            retention.used(a, limit, p),
            retention.deletes(p),
            retention.age_ms(NOW, a),
            retention.disk_used(limit, a),
        )
        for a, limit, p in rows
    ]


_replicas = st.builds(
    ReplicaSize,
    topic=TOPIC,
    partition=PARTITION,
    broker=st.integers(1, 3),
    log_dir=st.sampled_from(["/d1", "/d2"]),
    size_bytes=SIZE,
    future=st.booleans(),
)
_usage = st.builds(
    Usage,
    # A broker has one current and at most one future copy of a partition.
    replicas=st.lists(_replicas, max_size=40, unique_by=lambda r: (r.topic, r.partition, r.broker, r.future)),
    logs=st.lists(
        st.builds(
            LeaderLog,
            topic=TOPIC,
            partition=PARTITION,
            leader=st.integers(-1, 3),
            log_start_offset=OFFSET,
            log_end_offset=OFFSET,
            oldest_timestamp_ms=st.one_of(st.none(), st.integers(0, 2 * NOW), st.integers(2**61, 2**62)),
        ),
        max_size=20,
        unique_by=lambda r: (r.topic, r.partition),
    ),
    retention=st.lists(
        st.builds(
            TopicRetention,
            topic=TOPIC,
            cleanup_policy=_policy,
            retention_bytes=_limit,
            retention_ms=_limit,
            segment_bytes=st.one_of(st.none(), st.integers(14, 2**30)),
        ),
        unique_by=lambda r: r.topic,
    ),
    log_dirs=st.lists(
        st.builds(
            LogDirSize,
            broker=st.integers(1, 3),
            log_dir=st.sampled_from(["/d1", "/d2", "/empty"]),
            total_bytes=st.one_of(st.none(), st.integers(0, 2**40)),
            usable_bytes=st.one_of(st.none(), st.integers(0, 2**39)),
        ),
        max_size=9,
        unique_by=lambda r: (r.broker, r.log_dir),
    ),
    now_ms=st.just(NOW),
)


@pytest.mark.long
@FEW
@given(usage=_usage)
def test_the_retention_report(spark: SparkSession, usage: Usage) -> None:
    dirs = [LogDirReplicaRow(d.broker, d.log_dir, d.total_bytes, d.usable_bytes) for d in usage.log_dirs]
    copies = [
        LogDirReplicaRow(r.broker, r.log_dir, None, None, r.topic, r.partition, r.size_bytes, 0, r.future)
        for r in usage.replicas
    ]
    readings = RetentionReadings(
        logs=_frame(spark, sources.LOGS.schema, [LogRow(*log) for log in usage.logs]),
        log_dirs=_frame(spark, sources.LOG_DIRS.schema, [*dirs, *copies, LogDirReplicaRow(7, error="down")]),
        configs=_frame(spark, sources.CONFIGS.schema, [ConfigRow(*c) for c in usage.retention]),
    )
    job = RetentionJob(readings, now_ms=usage.now_ms)
    assert job.rows("partition") == usage.by_partition()
    assert job.rows("topic") == usage.by_topic()
    assert job.rows("broker") == usage.by_broker()
    assert job.rows("log-dir") == usage.by_log_dir()
    assert job.failures() == ["log dirs of broker 7: down"]


def test_parquet_has_the_columns_of_the_rows(spark: SparkSession) -> None:
    readings = RetentionReadings(
        logs=_frame(spark, sources.LOGS.schema, []),
        log_dirs=_frame(spark, sources.LOG_DIRS.schema, []),
        configs=_frame(spark, sources.CONFIGS.schema, []),
    )
    job = RetentionJob(readings, now_ms=NOW)
    for by, row in (
        ("partition", retention.PartitionUsage),
        ("topic", retention.TopicUsage),
        ("broker", retention.BrokerUsage),
        ("log-dir", retention.LogDirUsage),
    ):
        assert job.frame(by).columns == [field.name for field in dataclasses.fields(row)]


# --- readings of a store ----------------------------------------------------------------------------------------------

PASSES = 64
# Messages that a group reads a minute; None: it has committed nothing.
GROUPS = {"keeps-up": 10, "slow": 5, "stopped": 0, "nothing": None}


@pytest.fixture(scope="module")
def query(tmp_path_factory: pytest.TempPathFactory) -> ReadingsQuery:
    """A compacted hour and four passes more; ten messages a minute are written to each partition."""
    store = store_with(tmp_path_factory.mktemp("store") / "s", [])
    for number in range(PASSES):
        end = 1000 + 10 * number
        offsets = {group: None if rate is None else 1000 + rate * number for group, rate in GROUPS.items()}
        rows = [(group, "t", p, at, 0, end, 3, "id", False) for group, at in offsets.items() for p in range(3)]
        put(store, number * MINUTE_MS, Pass(rows={schema.COMMITS: rows}))
    for _ in compact(store, HOUR):
        pass
    return ReadingsQuery(
        str(store.root), HOUR.start_ms, HOUR.start_ms + PASSES * MINUTE_MS, WindowRules(), last_only=True
    )


def test_each_task_reads_its_groups(spark: SparkSession, query: ReadingsQuery) -> None:
    store = open_store(Path(query.store))
    ranges = group_ranges(store, query.read_from_ms, query.to_ms, 2, damaged=lambda d: pytest.fail(str(d)))
    assert len(ranges) == 2
    frame = load(spark, query, ranges)
    assert {row[0] for row in frame.select(F.spark_partition_id()).collect()} == {0, 1}
    assert frame.columns == ARROW.names
    found = sorted(tuple(row) for row in frame.collect())
    assert found == sorted(tuple(row.values()) for batch in read(query) for row in batch.to_pylist())
    states = {row["group"]: Status(row["status"]) for row in frame.select("group", "status").distinct().collect()}
    assert states == {
        "keeps-up": Status.OK, "slow": Status.WARN, "stopped": Status.STOP, "nothing": Status.UNKNOWN,
    }  # fmt: skip
    plan = frame._jdf.queryExecution().toString()
    assert "Exchange" not in plan


def test_rates_come_out_in_columns(spark: SparkSession, query: ReadingsQuery) -> None:
    row = load(spark, query, [EVERY_GROUP]).where(F.col("group") == "slow").first()
    assert row is not None
    assert row["consumed_per_s"] == pytest.approx(5 / 60)
    assert row["produced_per_s"] == pytest.approx(10 / 60)
    assert row["catch_up_ms"] is None


def test_what_cannot_be_read_is_a_row(spark: SparkSession, tmp_path: Path) -> None:
    (row,) = load(spark, ReadingsQuery(str(tmp_path / "none"), 0, 1), [EVERY_GROUP]).collect()
    assert row["group"] is None
    assert "is not a snapshot store" in row["error"]
