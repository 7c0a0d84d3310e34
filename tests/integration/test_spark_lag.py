"""kctl spark lag on a real cluster with real Spark: groups of every kind, now and over time.

Each command takes a Spark of its own, some ten seconds: there are few, and each is asked for many things.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from kctl.client import connect
from kctl.context import Target
from kctl_testing import Kctl, TestCluster, eventually

Topic = Callable[..., str]
HEAVY_S = 180.0
STEPS, STEP_S = 24, 1.0
WRITTEN, READ = 40, 30  # messages a step


@dataclass(frozen=True)
class Load:
    """Half a minute of a topic, looked at each second; groups by what they do. from_ms: when their ways were steady."""

    store: Path
    topic: str
    tag: str
    from_ms: int

    def group(self, name: str) -> str:
        return f"{self.tag}.{name}"


def _target(cluster: TestCluster) -> Target:
    return Target(cluster.name, tuple(cluster.bootstrap.split(",")))


class _Groups:
    """Groups whose offsets are committed without members, as consumers that assign partitions by hand do."""

    def __init__(self, cluster: TestCluster, topic: str) -> None:
        from kafka import KafkaConsumer
        from kafka.structs import TopicPartition

        self._made: dict[str, Any] = {}
        self._new: Callable[[str], Any] = lambda group: KafkaConsumer(
            group_id=group, bootstrap_servers=cluster.bootstrap.split(","), enable_auto_commit=False
        )
        self._partition = TopicPartition(topic, 0)

    def commit(self, group: str, offset: int) -> None:
        from kafka.structs import OffsetAndMetadata

        if group not in self._made:
            self._made[group] = self._new(group)
            self._made[group].assign([self._partition])
        self._made[group].commit({self._partition: OffsetAndMetadata(offset, "", -1)})

    def close(self) -> None:
        for consumer in self._made.values():
            consumer.close(autocommit=False)


@pytest.fixture(scope="module")
def load(kctl: Kctl, cluster: TestCluster, tmp_path_factory: pytest.TempPathFactory) -> Load:
    """The groups' ways, with a collector beside them."""
    tag, store = f"lag.{os.getpid()}", tmp_path_factory.mktemp("lag") / "store"
    topic = f"{tag}.t"
    kctl.ok(
        "topic", "create", topic, "--partitions", "1", "--replication-factor", "3", "--config", "retention.ms=3600000"
    )
    kctl.ok("produce", topic, stdin="x\n" * 1000)
    gone = f"{tag}.gone"
    kctl.ok("topic", "create", gone, "--partitions", "1")
    kctl.ok("produce", gone, stdin="x\n")
    kctl.ok("consume", gone, "--group", f"{tag}.ghost", "--from-beginning", "--exit-eof", "--quiet")
    groups = _Groups(cluster, topic)
    with kctl.running("consume", topic, "--group", f"{tag}.member", "--from-beginning", "-o", "json"):
        eventually(lambda: _keeps_up(kctl, f"{tag}.member"), seconds=60, what="the member has read all")
        began = _walk(kctl, groups, tag, topic, gone, store)
    groups.close()
    return Load(store, topic, tag, began)


def _keeps_up(kctl: Kctl, group: str) -> bool:
    found = kctl("lag", group, "-o", "json")
    return found.code == 0 and any(row["lag"] == 0 for row in json.loads(found.out))


def _walk(kctl: Kctl, groups: _Groups, tag: str, topic: str, gone: str, store: Path) -> int:
    """Step by step: write, commit, look. When the first steady look was."""
    began = 0
    for step in range(STEPS):
        due = time.monotonic() + STEP_S
        kctl.ok("produce", topic, stdin="x\n" * WRITTEN)
        end = 1000 + WRITTEN * (step + 1)
        groups.commit(f"{tag}.keeps-up", end)
        groups.commit(f"{tag}.slow", 500 + READ * (step + 1))
        groups.commit(f"{tag}.rewound", 900 if step < STEPS - 4 else 100)
        if step == 0:
            groups.commit(f"{tag}.stopped", 400)
            began = time.time_ns() // 1_000_000
        if step == STEPS // 2:
            kctl.ok("topic", "delete", gone, "--yes")
        kctl.ok("spark", "snapshot", "--store", str(store), "--once")
        time.sleep(max(due - time.monotonic(), 0))
    return began


def _by_group(rows: list[dict[str, Any]], load: Load) -> dict[str, dict[str, Any]]:
    found = {}
    for row in rows:
        name = row["group"].removeprefix(f"{load.tag}.")
        if row["topic"] in {load.topic, f"{load.tag}.gone"}:
            found[name] = row
    return found


@pytest.mark.long
def test_groups_over_time(kctl: Kctl, load: Load, tmp_path: Path) -> None:
    where = tmp_path / "rows"
    result = kctl(
        "spark", "lag", "--store", str(load.store), "--from", str(load.from_ms), "--group", f"{load.tag}.*",
        "--explain", "--parquet", str(where), "--fail-on", "ERR", "-o", "json", timeout=HEAVY_S,
    )  # fmt: skip
    assert result.code == 1, str(result)
    rows = json.loads(result.out)
    found = _by_group(rows, load)
    assert {name: row["status"] for name, row in found.items()} == {
        "keeps-up": "OK", "slow": "WARN", "stopped": "STOP", "rewound": "REWIND", "ghost": "OK", "member": "OK",
    }  # fmt: skip
    assert found["ghost"]["standing"] in {"deleted", "dead"}  # brokers drop a deleted topic's commits soon
    assert found["member"]["client_id"]
    assert found["member"]["state"] == "Stable"
    slow = found["slow"]
    # Rates by what was really written and read, over a time that was measured: within 10 %.
    assert slow["consumed_per_s"] / slow["produced_per_s"] == pytest.approx(READ / WRITTEN, rel=0.1)
    assert slow["lag"] == 500 + STEPS * (WRITTEN - READ)
    share = slow["consumed_per_s"] / slow["produced_per_s"]
    assert slow["loss_ms"] == pytest.approx(slow["deletion_ms"] / (1 - share), rel=1e-6)
    assert 3_000_000 < slow["deletion_ms"] < 3_600_000  # its next message was written a minute or two ago
    assert found["stopped"]["consumed_per_s"] == 0
    assert found["stopped"]["catch_up_ms"] is None
    assert found["keeps-up"]["time_lag_ms"] == 0
    assert found["rewound"]["peak_lag"] == found["rewound"]["lag"]
    assert all(row["explain"] for row in rows)
    told = json.loads(result.err.splitlines()[-1])
    assert told["limits"] == {"ERR": 2}
    table = pyarrow.parquet.read_table(where)
    assert sorted(table.column("group").to_pylist()) == sorted(row["group"] for row in rows)
    assert str(table.schema.field("at").type).startswith("timestamp")


@pytest.mark.long
def test_now_with_history(kctl: Kctl, cluster: TestCluster, load: Load) -> None:
    """Live offsets are those of `kctl lag`; what moved before is known of the store."""
    expected = {(row["group"], row["partition"]): row for row in kctl.json("lag", "--topic", load.topic)}
    rows = kctl.json(
        "spark", "lag", "--store", str(load.store), "--group", f"{load.tag}.*", "--topic", load.topic, timeout=HEAVY_S
    )
    assert {(row["group"], row["partition"]) for row in rows} == {k for k in expected if k[0].startswith(load.tag)}
    for row in rows:
        same = expected[row["group"], row["partition"]]
        for key in ("committed_offset", "log_start_offset", "log_end_offset", "lag", "lost"):
            assert row[key] == same[key]
    assert _by_group(rows, load)["stopped"]["status"] == "STOP"


@pytest.mark.long
def test_time_lag_without_history_is_the_age_of_the_next_message(kctl: Kctl, load: Load) -> None:
    rows = kctl.json("spark", "lag", "--group", load.group("slow"), timeout=HEAVY_S)
    now_ms = time.time() * 1000
    (row,) = rows
    assert (row["status"], row["consumed_per_s"]) == (None, None)
    options = ("--partition", "0", "--offset", str(row["committed_offset"]), "--max-messages", "1", "-o", "json")
    first = json.loads(kctl.ok("consume", load.topic, *options).out)
    written_ms = datetime.fromisoformat(first["timestamp"].replace("Z", "+00:00")).timestamp() * 1000
    read_ms = datetime.fromisoformat(row["at"].replace("Z", "+00:00")).timestamp() * 1000
    assert read_ms < now_ms
    true = read_ms - written_ms
    assert true / 2 - 1000 <= row["time_lag_ms"] <= true * 2 + 1000
    assert row["deletion_by_time_ms"] == 3_600_000 - row["time_lag_ms"]


def test_brokers_tell_points_of_a_log(kctl: Kctl, cluster: TestCluster, topic: Topic) -> None:
    """ListOffsets by time of real brokers; no Spark."""
    from kctl.lag.log_times import Wanted, fetch_points
    from kctl.lag.rates import time_lag
    from kctl.model import TopicPartition

    name = topic(partitions=2, replication_factor=1)
    for _ in range(3):
        kctl.ok("produce", name, "--partition", "0", stdin="x\n" * 10)
        time.sleep(0.5)
    with connect(_target(cluster)) as client:
        at_ms = time.time_ns() // 1_000_000
        leaders = {p.tp: p.leader for p in client.metadata([name]).topics[name].partitions}
        tp, empty = TopicPartition(name, 0), TopicPartition(name, 1)
        wanted = {tp: Wanted(leaders[tp], 5, 30), empty: Wanted(leaders[empty], 0, 0)}
        points, failed = fetch_points(client, wanted, at_ms)
        missing = {tp: Wanted(4711, 5, 30)}
        _, unasked = fetch_points(client, missing, at_ms)
    assert failed == {}
    old, young = time_lag(points[tp], 5).ms, time_lag(points[tp], 25).ms
    assert old is not None
    assert young is not None
    assert 500 < young < old < 120_000
    assert set(unasked) == {tp}
