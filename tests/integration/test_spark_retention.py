"""kctl spark retention and trends on a real cluster: sizes are the disk's, and Spark reads what one process reads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kctl.snapshots import schema
from kctl.snapshots.collect import Pass
from kctl.snapshots.store import create_store
from kctl.spark.outlook_job import OutlookJob
from kctl_testing import Kctl, TestCluster
from snapshot_stores import HOUR, put

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
            schema.LOG_DIRS: [(1, "/d", 10**12, 93 * GB - number * GB // 2, None), (2, "/d", 10**12, 500 * GB, None)],
            schema.COMMITS: [("g", "endless", 0, 0, 0, 100 * (number + 1), 3, "id", False)],
            schema.GROUPS: [("g", "Empty", "classic", "consumer", 0, 1)],
        }
        put(store, number * HOUR_MS // 2, Pass(rows=rows))


def test_spark_reads_what_one_process_reads(kctl: Kctl, tmp_path: Path) -> None:
    a_store(tmp_path / "s")
    job = OutlookJob(create_store(tmp_path / "s", "c"), HOUR.start_ms, HOUR.start_ms + 4 * HOUR_MS)
    here, _ = job.outlook()
    common = ("spark", "retention", "--store", str(tmp_path / "s"))
    rows = kctl.json(*common, "--by", "log-dir", "--parquet", str(tmp_path / "p"), timeout=_JOB_S)
    assert [row["full_ms"] for row in rows] == [row.full_ms for row in here.by_log_dir()]
    assert rows[0]["full_ms"] == 90 * HOUR_MS
    assert [cause["topic"] for cause in rows[0]["causes"]] == ["endless"]
    import pyarrow.parquet as pq

    written = [row for path in (tmp_path / "p").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    assert sorted(row["full_ms"] for row in written) == sorted(row["full_ms"] for row in rows)

    done = kctl(*common, "--by", "log-dir", "--full-within", "5d", timeout=_JOB_S)
    assert done.code == 1
    assert "1 log dir is full within 5d: /d of broker 1 in 3d 18h" in done.err
    what_if = kctl.json(*common, "--what-if", "retention.ms=1h", "--topic", "end*", timeout=_JOB_S)
    assert what_if["topics"][0]["freed_at_most_bytes"] > 0
    assert [row["group"] for row in what_if["groups"]] == ["g"]
    losses = kctl.json(*common, "--show", "losses", "--master", "local[2]", timeout=_JOB_S)
    assert {(row["broker"], row["group"]) for row in losses} >= {(1, "g")}


def test_roll_ups_by_tasks(kctl: Kctl, tmp_path: Path) -> None:
    a_store(tmp_path / "here")
    a_store(tmp_path / "there")
    options = ("spark", "trends", "--of", "topics")
    here = kctl.json(*options, "--store", str(tmp_path / "here"))
    there = kctl.json(*options, "--store", str(tmp_path / "there"), "--master", "local[2]", timeout=_JOB_S)
    assert here == there
    assert [row["produced"] for row in here] == [100, 200, 200]


def test_sizes_are_those_of_the_disk(cluster: TestCluster, kctl: Kctl, topic: Topic, tmp_path: Path) -> None:
    name = topic(partitions=2, replication_factor=2)
    kctl.ok("produce", name, stdin="x" * 100 + "\n")
    store = tmp_path / "store"
    kctl.ok("spark", "snapshot", "--store", str(store), "--once")
    kctl.ok("produce", name, stdin=("x" * 100 + "\n") * 1000)
    time.sleep(2)
    kctl.ok("spark", "snapshot", "--store", str(store), "--once")
    rows = kctl.json("spark", "retention", "--store", str(store), "--topic", name, "--by", "replica", timeout=_JOB_S)
    assert len(rows) == 4
    assert sum(row["leader"] for row in rows) == 2
    for row in rows:
        files = (Path(row["log_dir"]) / f"{name}-{row['partition']}").glob("*.log")
        assert row["size_bytes"] == sum(path.stat().st_size for path in files)
    (whole,) = kctl.json("spark", "retention", "--store", str(store), "--topic", name, timeout=_JOB_S)
    assert whole["replicas_bytes"] == sum(row["size_bytes"] for row in rows)
    assert whole["written_bytes_per_hour"] > 0
    live = kctl.json("spark", "retention", "--topic", f"{name[:-1]}?", timeout=_JOB_S)
    assert [row["replicas_bytes"] for row in live if row["topic"] == name] == [whole["replicas_bytes"]]


def test_segments_that_are_expired(cluster: TestCluster, kctl: Kctl, topic: Topic, tmp_path: Path) -> None:
    """Old records are to go at the broker's next check; one from the future stays, and says why."""
    name = topic(partitions=1, **{"retention.ms": "1000"})
    kctl.ok("produce", name, stdin="old\n")
    store = tmp_path / "store"
    kctl.ok("spark", "snapshot", "--store", str(store), "--once")
    (row,) = kctl.json("spark", "retention", "--store", str(store), "--topic", name, "--by", "replica", timeout=_JOB_S)
    time.sleep(2)
    options = ("--show", "segments", "--log-dir", row["log_dir"], "--topic", name)
    for source in ((), ("--store", str(store))):
        found = json.loads(kctl.ok("spark", "retention", *options, *source, "-o", "json").out)
        assert [(each["topic"], each["base_offset"], each["expired"]) for each in found] == [(name, 0, True)]
