"""kctl spark snapshot against a real cluster: what a pass holds, one collector at a time, ends of every kind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kctl.history.lag.plan import LagRequest, plan_span
from kctl.history.lag.row_batches import read as read_lag
from kctl.history.snapshots import schema
from kctl.history.snapshots.read import read_table
from kctl.history.snapshots.store import open_store
from kctl.lag.selection import EVERY, Names
from kctl_testing import SCRIPT, Kctl, TestCluster, eventually
from snapshot_stores import FOREVER, no_damage, seen

Topic = Callable[..., str]
KILLED = Path(__file__).resolve().parents[2] / "support/collector_killed.py"


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
    for number in (signal.SIGINT, signal.SIGTERM):
        before = len(rows(store, schema.PASSES))
        with kctl.running("spark", "snapshot", "--store", str(store), "--every", "1s") as process:
            eventually(lambda n=before: len(rows(store, schema.PASSES)) > n, seconds=30, what="a pass")  # type: ignore[misc]
            refused = kctl("spark", "snapshot", "--store", str(store), "--once")
            assert refused.code == 4
            assert f"process {process.pid} is collecting into" in refused.err
            code, err = stop(process, number)
        assert code == 130
        assert "Traceback" not in err
    found = seen(open_store(store))
    times = {row[0] for row in found[schema.PASSES]}
    assert len(times) == len(found[schema.PASSES])
    assert {row[0] for row in found[schema.LOGS]} == times
    kctl.ok("spark", "snapshot", "--store", str(store), "--once")
    assert not list(store.rglob("*.tmp"))


def test_a_topic_made_anew_is_another_one(cluster: TestCluster, kctl: Kctl, topic: Topic, tmp_path: Path) -> None:
    """Its offsets begin anew, and so are the commits: no lag, loss or rewind comes of it."""
    name, store = topic(partitions=1), tmp_path / "store"
    group, once = f"{name}-group", ("spark", "snapshot", "--store", str(store), "--once")
    for count in (30, 4):
        kctl.ok("produce", name, stdin="x\n" * count)
        kctl.ok("consume", name, "--group", group, "--from-beginning", "--exit-eof", "--quiet")
        kctl.ok(*once)
        if count == 30:
            kctl.ok("topic", "delete", name, "--yes")
            kctl.ok("topic", "create", name, "--partitions", "1", "--replication-factor", "1")
    mine = [row for row in rows(store, schema.COMMITS) if row["group"] == group]
    assert [(row["committed_offset"], row["log_end_offset"]) for row in mine] == [(30, 30), (4, 4)]
    assert len({row["topic_id"] for row in mine}) == 2
    plan = plan_span(store, 0, 10**13, LagRequest(Names((group,)), EVERY, observations=2))
    (row,) = (row for batch in read_lag(plan.query) for row in batch.to_pylist())
    assert (row["lag"], row["lost"], row["status"], row["error"]) == (0, 0, "OK", None)
    assert row["consumed_per_s"] is None  # there is one look at the new one


@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.long)])
def test_kills_at_any_moment_leave_exactly_the_passes_that_were_stored(
    cluster: TestCluster, kctl: Kctl, topic: Topic, tmp_path: Path, kills: int
) -> None:
    """While it collects and compacts, readers see each row once, and never lose one; and so they do after kills."""
    name, store = topic(partitions=3), tmp_path / "store"
    kctl.ok("produce", name, stdin="x\n")
    kctl.ok("consume", name, "--group", f"{name}-group", "--from-beginning", "--exit-eof", "--quiet")
    argv = [sys.executable, str(KILLED), str(store), cluster.bootstrap, str(kills), "1"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=kctl.environment) as run:
        before: set[int] = set()
        looks = 0
        while run.poll() is None:
            if (store / "kctl-store.json").exists():
                now = _counts(store).keys()
                assert now >= before, "what counted once counts always"
                before, looks = set(now), looks + 1
            time.sleep(0.03)
        out, err = run.communicate()
    assert run.returncode == 0, err
    assert looks > kills
    told = {at_ms: tuple(counts) for at_ms, *counts in map(json.loads, out.splitlines())}
    found = _counts(store)
    assert len(told) >= kills
    assert told.items() <= found.items()
    assert len(found) - len(told) <= kills  # a pass may be stored, and its collector killed before it says so
    assert any(path.name.startswith("hour-") for path in store.glob("passes/*/*/*"))
    kctl.ok("spark", "snapshot", "--store", str(store), "--once")
    assert found.items() <= _counts(store).items()
    assert not list(store.rglob("*.tmp"))


def _counts(store: Path) -> dict[int, tuple[int, ...]]:
    """The rows of each pass in some tables: none twice, and none of a pass that is not in `passes`."""
    opened = open_store(store)
    # `passes` last: a pass may be stored in between.
    tables = (schema.GROUPS, schema.COMMITS, schema.LOGS, schema.REPLICAS, schema.PASSES)
    found: dict[str, Counter[int]] = {}
    for table in tables:
        keys = [
            row
            for batch in read_table(opened, table, *FOREVER, damaged=no_damage, columns=schema.SORT_KEYS[table])
            for row in (tuple(each.values()) for each in batch.to_pylist())
        ]
        assert len(set(keys)) == len(keys)
        found[table] = Counter(row[0] for row in keys)  # at_ms is the first column of each
    passes = found.pop(schema.PASSES)
    assert all(each.keys() <= passes.keys() for each in found.values())
    return {at_ms: tuple(each[at_ms] for each in found.values()) for at_ms in found[schema.LOGS]}


def test_a_full_disk(cluster: TestCluster, kctl: Kctl, topic: Topic, tmp_path: Path) -> None:
    """With space for two passes the others are lost, and said; what was stored is whole; with more space it goes on."""
    topic(partitions=3)
    kctl.ok("spark", "snapshot", "--store", str(tmp_path / "one"), "--once")
    pages = sum(-(-path.stat().st_size // 4096) for path in (tmp_path / "one").rglob("*") if path.is_file())
    disk = tmp_path / "disk"
    disk.mkdir()
    collect = f"{SCRIPT} spark snapshot --store {disk}/store"
    script = f"""
        mount -t tmpfs -o size={pages * 10}k none {disk}
        {collect} --every 1s --for 5s -o json; echo "code $?"
        cp -r {disk}/store {tmp_path}/full
        mount -o remount,size={pages * 80}k {disk}
        {collect} --once > /dev/null; echo "code $?"
        cp -r {disk}/store {tmp_path}/later
    """
    done = subprocess.run(
        ["/usr/bin/unshare", "--mount", "--map-root-user", "/bin/sh", "-c", script],
        env=kctl.environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    *lines, first, last = done.stdout.splitlines()
    reports = [json.loads(line) for line in lines]
    stored = [report for report in reports if report["stored"]]
    lost = [report for report in reports if not report["stored"]]
    assert (first, last) == ("code 5", "code 0"), done
    assert stored
    assert all("No space left on device" in report["error"] for report in lost)
    assert f"of {len(reports)} passes {len(lost)} w" in done.stderr
    assert "Traceback" not in done.stderr
    full = _counts(tmp_path / "full")
    assert len(full) == len(stored)
    later = _counts(tmp_path / "later")
    assert full.items() < later.items()
    assert len(later) == len(full) + 1


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (["--once", "--every", "5s"], 2, "--once does not go with"),
        (["--every", "10ms"], 2, "at least 1s"),
        (["--for", "0s"], 2, "greater than 0"),
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
    for change, text in (({"cluster_id": "other"}, "has snapshots of cluster other"), ({"version": 2}, "version 2")):
        about.write_text(json.dumps({**entry, **change}))
        done = kctl("spark", "snapshot", "--store", str(store), "--once")
        assert (done.code, text in done.err) == (4, True), done
    assert sorted(store.rglob("*")) == before


def test_no_cluster(own_kctl: Kctl, tmp_path: Path) -> None:
    done = own_kctl("spark", "snapshot", "--store", str(tmp_path / "s"), "--once", "--bootstrap-server", "127.0.0.1:9")
    assert done.code == 3
    assert not (tmp_path / "s").exists()


@pytest.mark.long
def test_a_broker_that_is_slow_and_then_down(own_kctl: Kctl, tmp_path: Path) -> None:
    """The pace stays, what the broker alone knew is missing and said, up to the report; later passes are whole."""
    kctl, store = own_kctl, tmp_path / "store"
    kctl.ok("cluster", "create", "snap", "--use", "--layout", "pseudo-distributed", "--brokers", "2", timeout=180)
    try:
        kctl.ok("topic", "create", "t", "--replica-assignment", "1,2")
        for partition in (0, 1):
            kctl.ok("produce", "t", "--partition", str(partition), stdin="x\n" * 5)
        kctl.ok("consume", "t", "--group", "g", "--from-beginning", "--max-messages", "7", "--quiet")
        collector = ("spark", "snapshot", "--store", str(store), "--every", "1s", "-o", "json")
        with kctl.running(*collector) as process:
            reports = _Reports(process)
            reports.until(lambda report: report["complete"])
            kctl.ok("cluster", "pause", "snap", "2", "--yes")
            slow = reports.until(lambda report: not report["complete"])
            kctl.ok("cluster", "unpause", "snap", "2")
            after = reports.until(lambda report: report["complete"])
            kctl.ok("cluster", "kill", "snap", "2", "--yes")
            down = reports.until(lambda report: any("broker 2 is down" in text for text in report["failures"]))
            code, err = stop(process, signal.SIGINT)
        assert code == 130, err
        assert slow["duration_ms"] > 5_000
        assert "broker 2" in str(slow["failures"])
        assert after["missed"] + reports.missed_before(after) > 4
        # The clock goes on at whole seconds, however long a pass took.
        steps = [report["missed"] + 1 for report in reports.seen[1:]]
        assert sum(steps) == pytest.approx((report_ms(reports.seen[-1]) - report_ms(reports.seen[0])) / 1000, abs=1)

        last = round(report_ms(down))
        (entry,) = [row for row in rows(store, schema.PASSES) if row["at_ms"] == last]
        assert (entry["complete"], entry["failures"]) == (False, down["failures"])
        ends = {row["partition"]: row["log_end_offset"] for row in rows(store, schema.LOGS)
                if row["topic"] == "t" and row["at_ms"] == last}  # fmt: skip
        assert ends == {0: 5, 1: None}
        assert {row["broker"] for row in rows(store, schema.REPLICAS) if row["at_ms"] == last} == {1}
        whole = sorted(row["at_ms"] for row in rows(store, schema.PASSES) if row["complete"])
        (harmed,) = store.rglob(f"commits/*/*/pass-{whole[0]}.parquet")
        harmed.write_bytes(harmed.read_bytes()[:-20])
        done = kctl(
            "spark", "lag", "--store", str(store), "--from", str(whole[0]), "--to", str(last + 1), "--group", "g",
            "-o", "json", timeout=180,
        )  # fmt: skip
        assert done.code == 5, done
        assert "broker 2 is down" in done.err
        assert str(harmed) in done.err
        found = {row["partition"]: row for row in json.loads(done.out)}
        assert found[0]["lag"] is not None
        assert found[1]["committed_offset"] is not None
        assert (found[1]["log_end_offset"], found[1]["lag"], found[1]["status"]) == (None, None, "UNKNOWN")

        kctl.ok("cluster", "start", "snap", timeout=120)
        eventually(
            lambda: kctl("spark", "snapshot", "--store", str(store), "--once").code == 0,
            seconds=60,
            what="a whole pass",
        )
    finally:
        kctl("cluster", "destroy", "snap", "--yes", "--confirm-cluster", "snap", timeout=120)


class _Reports:
    """What a collector tells with -o json, line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._lines = process.stdout
        self.seen: list[dict[str, Any]] = []

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next report of which it holds, of at most sixty."""
        for line in islice(self._lines, 60):
            self.seen.append(json.loads(line))
            if holds(self.seen[-1]):
                return self.seen[-1]
        return pytest.fail(f"no such report among {self.seen}")

    def missed_before(self, report: dict[str, Any]) -> int:
        """How many passes were left out up to the one before."""
        return sum(each["missed"] for each in self.seen[: self.seen.index(report)])
