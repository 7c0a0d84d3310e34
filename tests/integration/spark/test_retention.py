"""kctl spark retention and trends on a real cluster: sizes are the disk's, and Spark reads what one process reads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kctl.history.retention.reader_losses import disk_losses
from kctl.history.retention.store_reads import StoreReads, reads_of
from kctl.history.retention.what_if import Change
from kctl.history.retention.what_if_report import what_if
from kctl.history.rollups.catch_up import catch_up
from kctl.history.rollups.rollup import TABLES, TOPICS
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.rollup_files import rows_of
from kctl.history.snapshots.store import create_store, open_store
from kctl.lag.selection import EVERY
from kctl.spark.rollup_job import hours_by_spark
from kctl.spark.session import SparkDriver
from kctl.spark.settings import SparkSettings
from kctl.spark.store_reads import reads_by_spark
from kctl_testing import Kctl, TestCluster
from snapshot_stores import HOUR, put, seen

Topic = Callable[..., str]
_JOB_S = 180
HOUR_MS = 3_600_000
GB = 10**9


def a_store(root: Path) -> None:
    """Seven passes, half an hour apart: `endless` fills the disk of broker 1 at 1 GB an hour, in 90 hours."""
    store = create_store(root, "c")
    for number in range(7):
        size = (1 + number) * GB // 2
        rows: dict[str, list[tuple[Any, ...]]] = {
            schema.LOGS: [("endless", 0, "id", 1, 3, 0, 100 * (number + 1), 100 * (number + 1), HOUR.start_ms)],
            schema.CONFIGS: [("endless", "delete", -1, -1, GB, HOUR_MS, HOUR_MS, 0, -1, 0.5)],
            schema.REPLICAS: [(broker, "/d", "endless", 0, size, 0, False) for broker in (1, 2)],
            schema.LOG_DIRS: [(1, "/d", 10**12, 93 * GB - number * GB // 2, None), (2, "/d", 10**12, 250 * GB, None)],
            schema.COMMITS: [("g", "endless", 0, 0, 0, 100 * (number + 1), 3, "id", False)],
            schema.GROUPS: [("g", "Empty", "classic", "consumer", 0, 1)],
        }
        put(store, number * HOUR_MS // 2, Pass(rows=rows))


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One embedded Spark for the module."""
    with SparkDriver(SparkSettings(master="local[2]")) as driver:
        yield driver.session()


def test_spark_reads_what_one_process_reads(spark: SparkSession, tmp_path: Path) -> None:
    a_store(tmp_path / "s")
    span = (HOUR.start_ms, HOUR.start_ms + 4 * HOUR_MS)
    jobs: list[StoreReads] = [
        reads_of(str(tmp_path / "s"), *span), reads_by_spark(spark, 2, str(tmp_path / "s"), *span),
    ]  # fmt: skip
    reports = []
    for job in jobs:
        outlook, _ = job.outlook()
        readers, ends = job.readers(outlook), job.ends_near([outlook.now_ms - HOUR_MS], outlook.now_ms)
        tried = what_if(outlook, Change(retention_ms=HOUR_MS), EVERY, readers, ends)
        assert not job.errors
        losses = disk_losses(outlook, readers)
        reports.append((outlook.by_log_dir(), outlook.by_replica(), outlook.by_topic(), readers, tried, losses))
    assert reports[0] == reports[1]
    log_dirs, _, _, _, tried, losses = reports[1]
    assert log_dirs[0].full_ms == 90 * HOUR_MS
    assert tried.topics[0].freed_at_most_bytes > 0
    assert [row.group for row in tried.groups] == ["g"]
    assert {(row.broker, row.group) for row in losses} >= {(1, "g")}


def test_roll_ups_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for each in (None, spark):
        a_store(tmp_path / str(len(rows)))
        store = open_store(tmp_path / str(len(rows)))
        made = catch_up(store, make_hours=None if each is None else hours_by_spark(each, 2))
        assert (made.hours, made.errors) == (3, [])
        rows.append({table: rows_of(store, table, 0, 10**14, days=False) for table in TABLES})
    assert rows[0] == rows[1]
    assert [row["produced"] for row in rows[1][TOPICS][0]] == [100, 200, 200]


@pytest.mark.usefixtures("spark_archive")
def test_the_command_over_a_store(kctl: Kctl, tmp_path: Path) -> None:
    """What the disks are full of is told in all ways at once, and by the exit code."""
    a_store(tmp_path / "s")
    done = kctl(
        "spark", "retention", "--store", str(tmp_path / "s"), "--by", "log-dir", "--full-within", "5d", "--explain",
        "--parquet", str(tmp_path / "p"), "-o", "json", timeout=_JOB_S,
    )  # fmt: skip
    assert done.code == 1, str(done)
    assert "1 log dir is full within 5d: /d on broker 1 in 3d 18h" in json.loads(done.err.splitlines()[-1])["message"]
    rows = json.loads(done.out)
    assert [(row["broker"], row["full_ms"]) for row in rows] == [(1, 90 * HOUR_MS), (2, 250 * HOUR_MS)]
    assert [cause["topic"] for cause in rows[0]["causes"]] == ["endless"]
    assert any("full in 3d 18h" in line["text"] for line in rows[0]["explain"])
    written = pq.read_table(tmp_path / "p").to_pylist()
    assert sorted(row["full_ms"] for row in written) == [90 * HOUR_MS, 250 * HOUR_MS]


def test_sizes_are_those_of_the_disk(
    cluster: TestCluster, kctl: Kctl, topic: Topic, spark: SparkSession, tmp_path: Path
) -> None:
    """Each figure in bytes is a sum of .log files: of a replica, partition, topic, log dir and broker."""
    name = topic(partitions=2, replication_factor=2, segment_bytes="20000")
    kctl.ok("produce", name, stdin="x" * 100 + "\n")
    store = tmp_path / "store"
    kctl.ok("spark", "snapshot", "--store", str(store), "--once")
    kctl.ok("produce", name, stdin=("x" * 100 + "\n") * 1000)
    time.sleep(2)  # followers, and what other tests left behind
    kctl.ok("spark", "snapshot", "--store", str(store), "--once")
    job = reads_by_spark(spark, 2, str(store), 0, 10**14)
    outlook, moment = job.outlook()
    assert (job.errors, moment.failures) == ([], ())
    by_replica = outlook.by_replica()
    for row in by_replica:
        assert row.size_bytes == _log_bytes(Path(row.log_dir) / f"{row.topic}-{row.partition}")
    own = [row for row in by_replica if row.topic == name]
    assert (len(own), sum(row.is_leader for row in own)) == (4, 2)
    for log_dir in outlook.by_log_dir():
        assert log_dir.size_bytes == sum(map(_log_bytes, Path(log_dir.log_dir).glob("*-*[0-9]")))
    per_broker = dict.fromkeys(cluster.broker_ids, 0)
    for log_dir in outlook.by_log_dir():
        per_broker[log_dir.broker] += log_dir.size_bytes
    assert {row.broker: row.size_bytes for row in outlook.by_broker()} == per_broker
    (whole,) = [row for row in outlook.by_topic() if row.topic == name]
    assert whole.replicas_bytes == sum(row.size_bytes for row in own)
    assert whole.size_bytes == sum(row.size_bytes for row in own if row.is_leader)
    parts = {row.partition: row for row in outlook.by_partition() if row.topic == name}
    assert sum(row.replicas_bytes for row in parts.values()) == whole.replicas_bytes
    assert whole.written_bytes_per_hour is not None
    assert whole.written_bytes_per_hour > 0


def _log_bytes(folder: Path) -> int:
    """Segments; those that wait for their removal have another name."""
    return sum(path.stat().st_size for path in folder.glob("*.log"))


@pytest.mark.usefixtures("spark_archive")
def test_segments_that_are_expired(cluster: TestCluster, kctl: Kctl, topic: Topic, tmp_path: Path) -> None:
    """Old records are to go at the broker's next check; configs are those of the cluster, or of a store."""
    name = topic(partitions=1, **{"retention.ms": "1000"})
    kctl.ok("produce", name, stdin="old\n")
    store = tmp_path / "store"
    kctl.ok("spark", "snapshot", "--store", str(store), "--once")
    (log_dir,) = {row[2] for row in seen(open_store(store))[schema.REPLICAS] if row[3] == name}
    time.sleep(1.5)
    options = ("--show", "segments", "--log-dir", log_dir, "--topic", name)
    for source in ((), ("--store", str(store))):
        found = kctl.json("spark", "retention", *options, *source)
        assert [(each["topic"], each["base_offset"], each["expired"]) for each in found] == [(name, 0, True)]
