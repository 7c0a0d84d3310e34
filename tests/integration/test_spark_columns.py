"""The rules that Spark applies over columns say what the plain functions of kctl.lag say: random rows, one real Spark.

No broker is needed; a Java is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructType

from kctl.lag import retention, rules
from kctl.lag.retention import LogDirSize, PartitionLog, ReplicaSize, TopicRetention
from kctl.lag.usage import Usage
from kctl.spark import columns, lag_job, sources
from kctl.spark.reading import CommitRow, ConfigRow, LogDirRow, LogRow
from kctl.spark.retention_job import Readings, RetentionJob
from kctl.spark.session import SparkDriver
from kctl.spark.settings import SparkSettings

# A Spark job takes some tenths of a second: few examples, each with many rows, and none spent on shrinking.
FEW = settings(
    max_examples=6,
    deadline=None,
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


# --- lag ------------------------------------------------------------------------------------------------------------


@FEW
@given(rows=st.lists(st.tuples(OFFSET, OFFSET, OFFSET), min_size=1, max_size=300))
@example(rows=[(3, 6, 10), (None, 0, 5), (5, 0, 5), (9, 0, 5), (0, 0, 2**63 - 1), (3, None, 10)])
def test_lag_and_lost(spark: SparkSession, rows: list[tuple[int | None, int | None, int | None]]) -> None:
    frame = _frame(spark, _offsets_schema(), rows)
    c, s, e = F.col("c"), F.col("s"), F.col("e")
    found = frame.select("c", "s", "e", columns.lag_of(c, s, e), columns.lost_of(c, s)).collect()
    assert [tuple(row) for row in found] == [(c, s, e, rules.lag_of(c, s, e), rules.lost_of(c, s)) for c, s, e in rows]


def _offsets_schema() -> StructType:
    return StructType().add("c", "long").add("s", "long").add("e", "long")


_commits = st.builds(
    CommitRow,
    group=st.sampled_from(["g", "h", "G", "é"]),
    state=st.just("Empty"),
    topic=TOPIC,
    partition=PARTITION,
    committed_offset=st.one_of(st.none(), st.integers(0, 50)),
    client_id=st.one_of(st.none(), st.just("c")),
    host=st.none(),
    error=st.none(),
)
_logs = st.builds(
    LogRow,
    topic=TOPIC,
    partition=PARTITION,
    leader=st.just(1),
    log_start_offset=st.integers(0, 20),
    log_end_offset=st.integers(20, 60),
    oldest_timestamp_ms=st.none(),
    error=st.none(),
)
_unread = _logs.map(lambda row: LogRow(row.topic, row.partition, row.leader, error="no answer"))


@FEW
@given(
    commits=st.lists(_commits, max_size=60, unique_by=lambda r: (r.group, r.topic, r.partition)),
    logs=st.lists(st.one_of(_logs, _unread), max_size=20, unique_by=lambda r: (r.topic, r.partition)),
)
def test_the_lag_report(spark: SparkSession, commits: list[CommitRow], logs: list[LogRow]) -> None:
    by_tp = {(log.topic, log.partition): log for log in logs}
    expected = []
    for row in sorted(commits, key=lambda r: (r.group, r.topic or "", r.partition or 0)):
        assert row.topic is not None
        assert row.partition is not None
        log = by_tp.get((row.topic, row.partition))
        start, end = (log.log_start_offset, log.log_end_offset) if log else (None, None)
        at = row.committed_offset
        lag, lost = rules.lag_of(at, start, end), rules.lost_of(at, start)
        expected.append(
            rules.LagRow(
                row.group,
                row.state,
                row.topic,
                row.partition,
                at,
                start,
                end,
                lag,
                lost,
                row.client_id,
                row.host,
            )
        )
    silent = CommitRow("silent", "Empty")
    failed = [CommitRow(f"failed-{n}", "", error="coordinator gone") for n in range(7)]
    frame = lag_job.with_lag(
        _frame(spark, sources.COMMITS.schema, [*commits, silent, *failed]),
        _frame(spark, sources.LOGS.schema, logs),
    )
    job = lag_job.LagJob(frame, {"broker 9": "down"})
    assert job.rows("partition") == expected
    assert job.rows("topic") == rules.by_topic(expected)
    assert job.rows("group") == rules.by_group(expected)
    report = job.report()
    assert set(report.groups) == {"silent"}
    named = ", ".join(f"failed-{n}" for n in range(5))
    assert report.failed == {"broker 9": "down", f"groups {named} and 2 more": "coordinator gone"}
    wanted = {(row.topic, row.partition) for row in expected}
    unread = {key for key, log in by_tp.items() if log.error}
    assert set(report.deleted) == wanted - by_tp.keys()
    assert set(report.unread) == wanted & unread


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
            PartitionLog,
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
    dirs = [LogDirRow(d.broker, d.log_dir, d.total_bytes, d.usable_bytes) for d in usage.log_dirs]
    copies = [
        LogDirRow(r.broker, r.log_dir, None, None, r.topic, r.partition, r.size_bytes, 0, r.future)
        for r in usage.replicas
    ]
    readings = Readings(
        logs=_frame(spark, sources.LOGS.schema, [LogRow(*log) for log in usage.logs]),
        log_dirs=_frame(spark, sources.LOG_DIRS.schema, [*dirs, *copies, LogDirRow(7, error="down")]),
        configs=_frame(spark, sources.CONFIGS.schema, [ConfigRow(*c) for c in usage.retention]),
    )
    job = RetentionJob(readings, now_ms=usage.now_ms)
    assert job.rows("partition") == usage.by_partition()
    assert job.rows("topic") == usage.by_topic()
    assert job.rows("broker") == usage.by_broker()
    assert job.rows("log-dir") == usage.by_log_dir()
    assert job.failures() == ["log dirs of broker 7: down"]


def test_parquet_has_the_columns_of_the_rows(spark: SparkSession) -> None:
    readings = Readings(
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
