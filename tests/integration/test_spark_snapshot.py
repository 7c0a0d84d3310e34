"""kctl spark snapshot against a real cluster: what a pass holds, one collector at a time, ends of every kind."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kctl.snapshots import schema
from kctl.snapshots.store import open_store
from kctl_testing import Kctl, TestCluster, eventually
from snapshot_stores import seen

Topic = Callable[..., str]


def rows(store: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table; damage is an error."""
    names = schema.arrow_schema(table).names
    return [dict(zip(names, row, strict=True)) for row in seen(open_store(store)).get(table, [])]


def stop(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    return process.returncode, err


def test_a_pass_holds_what_the_other_commands_show(
    cluster: TestCluster, kctl: Kctl, topic: Topic, tmp_path: Path
) -> None:
    name = topic(partitions=3, **{"retention.ms": "12345678"})
    gone = topic(partitions=1)
    for partition in range(3):
        kctl.ok("produce", name, "--partition", str(partition), stdin="x\n" * (10 + partition))
    kctl.ok("produce", gone, stdin="x\n")
    group = f"{name}-group"
    kctl.ok("consume", name, "--group", group, "--from-beginning", "--max-messages", "7", "--quiet")
    kctl.ok("consume", gone, "--group", f"{gone}-group", "--from-beginning", "--exit-eof", "--quiet")
    store = tmp_path / "store"
    report = kctl.json("spark", "snapshot", "--store", str(store), "--once")
    assert (report["stored"], report["complete"], report["failures"]) == (True, True, [])

    lag = {(row["topic"], row["partition"]): row for row in kctl.json("lag", group)}
    mine = [row for row in rows(store, schema.COMMITS) if row["group"] == group]
    assert {(row["topic"], row["partition"]) for row in mine} == lag.keys()
    for row in mine:
        same = lag[row["topic"], row["partition"]]
        for key in ("committed_offset", "log_start_offset", "log_end_offset"):
            assert row[key] == same[key]
        assert not row["deleted"]
    logs = {row["partition"]: row for row in rows(store, schema.LOGS) if row["topic"] == name}
    assert {n: row["log_end_offset"] for n, row in logs.items()} == {0: 10, 1: 11, 2: 12}
    assert all(row["last_stable_offset"] == row["log_end_offset"] for row in logs.values())
    assert all(0 <= report_ms(report) - row["oldest_timestamp_ms"] < 600_000 for row in logs.values())
    (config,) = [row for row in rows(store, schema.CONFIGS) if row["topic"] == name]
    assert (config["retention_ms"], config["cleanup_policy"]) == (12345678, "delete")
    sizes = [row["size_bytes"] for row in rows(store, schema.REPLICAS) if row["topic"] == name]
    assert len(sizes) == 3
    assert min(sizes) > 0
    assert {row["broker"] for row in rows(store, schema.LOG_DIRS)} == set(cluster.broker_ids)
    assert all(row["total_bytes"] >= row["usable_bytes"] > 0 for row in rows(store, schema.LOG_DIRS))

    kctl.ok("topic", "delete", gone, "--yes")
    kctl.ok("spark", "snapshot", "--store", str(store), "--once")
    last = max(row["at_ms"] for row in rows(store, schema.PASSES))
    ghosts = [row for row in rows(store, schema.COMMITS) if row["topic"] == gone and row["at_ms"] == last]
    assert all(row["deleted"] and row["log_end_offset"] is None for row in ghosts)
    assert not [row for row in rows(store, schema.LOGS) if row["topic"] == gone and row["at_ms"] == last]


def report_ms(report: dict[str, Any]) -> float:
    from datetime import datetime

    return datetime.fromisoformat(report["at"].replace("Z", "+00:00")).timestamp() * 1000


def test_members_are_in_it_and_spark_is_not(cluster: TestCluster, kctl: Kctl, topic: Topic, tmp_path: Path) -> None:
    name = topic(partitions=2)
    with kctl.running("consume", name, "--group", f"{name}-group", "--from-beginning"):
        eventually(lambda: _assigned(kctl, name), seconds=30, what="the member has its partitions")
        done = kctl("spark", "snapshot", "--store", str(tmp_path / "s"), "--once", env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert done.code == 0, done
    imported = {line.rpartition("|")[2].strip() for line in done.err.splitlines()}
    assert "pyarrow.parquet" in imported
    assert not imported & {"pyspark", "pandas", "py4j"}
    owners = [row for row in rows(tmp_path / "s", schema.OWNERS) if row["topic"] == name]
    assert [row["partition"] for row in owners] == [0, 1]
    assert all(row["client_id"] and row["host"] for row in owners)
    mine = [row for row in rows(tmp_path / "s", schema.COMMITS) if row["topic"] == name]
    assert {row["partition"] for row in mine} == {0, 1}
    (group,) = [row for row in rows(tmp_path / "s", schema.GROUPS) if row["group"] == f"{name}-group"]
    assert (group["state"], group["members"]) == ("Stable", 1)


def _assigned(kctl: Kctl, name: str) -> bool:
    found = kctl("lag", f"{name}-group", "-o", "json")
    return found.code == 0 and sum(row["client_id"] is not None for row in json.loads(found.out)) == 2


def test_passes_at_a_pace_and_its_ends(cluster: TestCluster, kctl: Kctl, tmp_path: Path) -> None:
    store = tmp_path / "store"
    lines = kctl.ok("spark", "snapshot", "--store", str(store), "--every", "1s", "--for", "3s", "-o", "json").out
    reports = [json.loads(line) for line in lines.splitlines()]
    assert 1 <= len(reports) <= 3
    assert len(reports) + sum(report["missed"] for report in reports) <= 3
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        before = len(rows(store, schema.PASSES))
        with kctl.running("spark", "snapshot", "--store", str(store), "--every", "1s") as process:
            eventually(lambda n=before: len(rows(store, schema.PASSES)) > n, seconds=30, what="a pass")  # type: ignore[misc]
            refused = kctl("spark", "snapshot", "--store", str(store), "--once")
            assert refused.code == 4
            assert f"process {process.pid} collects into" in refused.err
            code, err = stop(process, number)
        assert code == (-signal.SIGKILL if number == signal.SIGKILL else 130)
        assert "Traceback" not in err
    found = seen(open_store(store))
    times = {row[0] for row in found[schema.PASSES]}
    assert len(times) == len(found[schema.PASSES])
    assert {row[0] for row in found[schema.LOGS]} == times
    kctl.ok("spark", "snapshot", "--store", str(store), "--once")
    assert not list(store.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (["--once", "--every", "5s"], 2, "--once makes one pass"),
        (["--every", "10ms"], 2, "at least 1s"),
        (["--for", "0s"], 2, "more than 0"),
        (["--once", "--keep", "5m"], 2, "at least 1h"),
        (["--every", "1s", "-o", "csv"], 2, "-o json"),
    ],
)
def test_options(kctl: Kctl, tmp_path: Path, args: list[str], code: int, text: str) -> None:
    done = kctl("spark", "snapshot", "--store", str(tmp_path / "s"), *args)
    assert (done.code, text in done.err) == (code, True), done
    assert not (tmp_path / "s").exists()


def test_a_store_of_another_cluster_and_a_newer_one(cluster: TestCluster, kctl: Kctl, tmp_path: Path) -> None:
    store = tmp_path / "store"
    kctl.ok("spark", "snapshot", "--store", str(store), "--once")
    about = store / "kctl-store.json"
    entry = json.loads(about.read_text())
    before = sorted(store.rglob("*"))
    for change, text in (({"cluster_id": "other"}, "holds snapshots of cluster other"), ({"version": 2}, "version 2")):
        about.write_text(json.dumps({**entry, **change}))
        done = kctl("spark", "snapshot", "--store", str(store), "--once")
        assert (done.code, text in done.err) == (4, True), done
    assert sorted(store.rglob("*")) == before


def test_no_cluster(own_kctl: Kctl, tmp_path: Path) -> None:
    done = own_kctl("spark", "snapshot", "--store", str(tmp_path / "s"), "--once", "--bootstrap-server", "127.0.0.1:9")
    assert done.code == 3
    assert not (tmp_path / "s").exists()


@pytest.mark.long
def test_one_broker_down(own_kctl: Kctl, tmp_path: Path) -> None:
    """What the broker alone knew is missing and said; the rest is there, and later passes are whole again."""
    kctl, store = own_kctl, tmp_path / "store"
    kctl.ok("cluster", "create", "snap", "--layout", "pseudo-distributed", "--brokers", "2", timeout=180)
    try:
        kctl.ok("topic", "create", "t", "--replica-assignment", "1,2")
        kctl.ok("spark", "snapshot", "--store", str(store), "--once")
        kctl.ok("cluster", "kill", "snap", "2", "--yes")
        done = kctl("spark", "snapshot", "--store", str(store), "--once", "-o", "json")
        assert done.code == 5, done
        assert "broker 2" in done.err
        report = json.loads(done.out)
        assert (report["stored"], report["complete"]) == (True, False)
        last = max(row["at_ms"] for row in rows(store, schema.PASSES))
        (entry,) = [row for row in rows(store, schema.PASSES) if row["at_ms"] == last]
        assert entry["complete"] is False
        assert any("broker 2" in line or "t-1" in line for line in entry["failures"])
        ends = {row["partition"]: row["log_end_offset"] for row in rows(store, schema.LOGS)
                if row["topic"] == "t" and row["at_ms"] == last}  # fmt: skip
        assert ends == {0: 0, 1: None}
        assert {row["broker"] for row in rows(store, schema.REPLICAS) if row["at_ms"] == last} == {1}
        kctl.ok("cluster", "start", "snap", timeout=120)
        eventually(
            lambda: kctl("spark", "snapshot", "--store", str(store), "--once").code == 0,
            seconds=60,
            what="a whole pass",
        )
    finally:
        kctl("cluster", "destroy", "snap", "--yes", "--confirm-cluster", "snap", timeout=120)
