"""kctl broker, controller, cluster health and cluster diagnose on a healthy cluster."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from java_tools import java_tool
from kctl_testing import Kctl, TestCluster, eventually, within

LOGGER = "kafka.request.logger"


def _by_id(rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {row["broker"]: row for row in rows}


def test_list_and_describe(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    mine = topic(partitions=3, replication_factor=2)
    rows = kctl.json("broker", "list")
    assert list(rows[0]) == [
        "broker", "host", "port", "rack", "state", "is_controller", "leaders", "replica_count", "not_in_sync",
        "size_bytes", "used_percent", "log_dir_count", "offline_log_dirs", "cordoned_log_dirs",
        "release", "error",
    ]  # fmt: skip
    assert [row["broker"] for row in rows] == list(cluster.broker_ids)
    assert [f"{row['host']}:{row['port']}" for row in rows] == cluster.bootstrap.split(",")
    assert {(row["state"], row["release"], row["error"]) for row in rows} == {("up", "3.9", None)}
    assert sum(row["is_controller"] for row in rows) == 1
    assert all(row["log_dir_count"] and row["offline_log_dirs"] == 0 and 0 < row["used_percent"] < 100 for row in rows)

    (described,) = kctl.json("broker", "describe", "2")
    assert list(described) == [
        "broker", "host", "port", "rack", "state", "is_controller", "leaders", "preferred", "replica_count",
        "partitions_not_in_sync", "release", "log_dirs", "error",
    ]  # fmt: skip
    assert sum(found["replica_count"] for found in described["log_dirs"]) > 0
    (topic_row,) = kctl.json("topic", "describe", mine)
    held = sum(2 in p["replicas"] for p in topic_row["partitions"])
    shown = kctl.json("broker", "log-dirs", "2", "--topic", mine, "--replicas")
    assert len(shown) == held
    both = kctl.json("broker", "describe", "3", "1")
    assert [row["broker"] for row in both] == [3, 1]
    out = kctl.ok("broker", "describe", "2").out
    assert "BROKER      2\n" in out
    assert "LOG DIR" in out


def test_log_dirs_as_kafkas_own_tool(
    kctl: Kctl, cluster: TestCluster, topic: Callable[..., str], kafka_home: Path
) -> None:
    mine = topic(partitions=3, replication_factor=3)
    kctl.ok("produce", mine, stdin="x" * 5_000 + "\n")
    out = java_tool(
        kafka_home, "org.apache.kafka.tools.LogDirsCommand", "--bootstrap-server", cluster.bootstrap, "--describe",
        "--topic-list", mine, "--broker-list", "1,2",
    )  # fmt: skip
    found = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    java = {
        (broker["broker"], log_dir["logDir"], p["partition"], p["size"], p["offsetLag"], p["isFuture"])
        for broker in found["brokers"]
        for log_dir in broker["logDirs"]
        for p in log_dir["partitions"]
    }
    rows = kctl.json("broker", "log-dirs", "1", "2", "--topic", mine, "--replicas")
    assert {
        (r["broker"], r["log_dir"], f"{r['topic']}-{r['partition']}", r["size_bytes"], r["offset_lag"], r["is_future"])
        for r in rows
    } == java
    assert len(java) == 6
    dirs = kctl.json("broker", "log-dirs", "1", "2", "--topic", mine)
    assert list(dirs[0]) == [
        "broker", "log_dir", "replica_count", "future_replicas", "size_bytes", "usable_bytes", "total_bytes",
        "used_percent", "cordoned", "error",
    ]  # fmt: skip
    assert {(row["broker"], row["log_dir"]) for row in dirs} == {
        (broker["broker"], log_dir["logDir"]) for broker in found["brokers"] for log_dir in broker["logDirs"]
    }
    assert sum(row["size_bytes"] for row in dirs) == sum(row[3] for row in java) > 2 * 5_000


def test_api_versions_as_kafkas_own_tool(kctl: Kctl, cluster: TestCluster, kafka_home: Path) -> None:
    out = java_tool(kafka_home, "kafka.admin.BrokerApiVersionsCommand", "--bootstrap-server", cluster.bootstrap)
    java = {
        (int(key), name, int(low), int(high or low))
        for name, key, low, high in re.findall(r"^\t(\w+)\((\d+)\): (\d+)(?: to (\d+))? ", out, re.MULTILINE)
    }
    rows = kctl.json("broker", "api-versions")
    assert list(rows[0]) == ["api_key", "api", "same", "versions"]
    assert {
        (row["api_key"], row["api"], row["versions"][0]["min_version"], row["versions"][0]["max_version"])
        for row in rows
    } == java
    assert rows[0]["versions"] == [{"brokers": [1, 2, 3], "min_version": 0, "max_version": 11}]
    none = kctl.ok("broker", "api-versions", "--differences")
    assert (none.out, "no differences between 3 brokers" in none.err) == ("", True)
    assert kctl.json("broker", "features", "1") == []


def test_controller(kctl: Kctl, cluster: TestCluster) -> None:
    found = kctl.json("controller")
    assert list(found) == [
        "metadata", "controller_id", "host", "port", "epoch", "since", "high_watermark", "named_by", "voters",
        "observers", "failures", "problem",
    ]  # fmt: skip
    assert found["metadata"] == "zookeeper"
    assert found["named_by"] == {str(node): found["controller_id"] for node in cluster.broker_ids}
    assert found["epoch"] >= 1
    assert found["since"].endswith("Z")
    (mine,) = [row["broker"] for row in kctl.json("broker", "list") if row["is_controller"]]
    assert mine == found["controller_id"]
    without = kctl.json("controller", "--bootstrap-server", cluster.bootstrap)
    assert (without["controller_id"], without["epoch"], without["since"]) == (found["controller_id"], None, None)
    gone = kctl("controller", "--zookeeper", "127.0.0.1:1/kafka", "-o", "json")
    assert gone.code == 5, "the rest is shown; ZooKeeper's part is missing, and that is said"
    assert json.loads(gone.out)["controller_id"] == found["controller_id"]
    assert "127.0.0.1:1" in json.loads(gone.err)["message"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("broker", "describe", "9"), 4, "broker 9 is not in the cluster"),
        (("broker", "log-dirs", "9", "10"), 4, "brokers 9, 10 are not in the cluster"),
        (("broker", "log-dirs", "--topic", "no-such-topic"), 4, "no-such-topic"),
        (("broker", "log-dirs", "--topic", "b@d"), 2, "only ASCII letters"),
        (("broker", "api-versions", "two"), 2, "two"),
        (("broker", "loggers", "list", "no.such"), 4, "no.such"),
        (("broker", "loggers", "list", "--match", "("), 2, "is not a valid regular expression"),
        (("broker", "loggers", "list", "--level", "LOUD"), 2, "LOUD is not a log level"),
        (("broker", "loggers", "set", "kafka.request.loger=DEBUG", "-y"), 4, "did you mean kafka.request.logger"),
        (("broker", "loggers", "set", f"{LOGGER}=LOUD", "-y"), 2, "'LOUD' is not a log level"),
        (("broker", "loggers", "set", LOGGER, "-y"), 2, "is not LOGGER=LEVEL"),
        (("broker", "loggers", "set", f"{LOGGER}=DEBUG", f"{LOGGER}=INFO", "-y"), 2, "is specified twice"),
        (("broker", "loggers", "set", f"{LOGGER}=DEBUG", "--broker", "9", "-y"), 4, "broker 9 is not in the cluster"),
        (("broker", "loggers", "set", f"{LOGGER}=DEBUG", "--for", "soon", "-y"), 2, "is not a duration"),
        (("broker", "loggers", "set", f"{LOGGER}=DEBUG"), 4, "not confirmed"),
        (("cluster", "health", "--wait", "--watch"), 2, "cannot be combined"),
        (("cluster", "diagnose", "--watch-for", "ever"), 2, "is not a duration"),
    ],
)  # fmt: skip
def test_bad_input(kctl: Kctl, cluster: TestCluster, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = kctl(*arguments)
    assert (result.code, result.out) == (code, ""), str(result)
    assert message in result.err
    assert "Traceback" not in result.err


def _level(kctl: Kctl) -> dict[str, list[int]]:
    return {row["level"]: row["brokers"] for row in kctl.json("broker", "loggers", "list", LOGGER)}


def test_loggers(kctl: Kctl, cluster: TestCluster) -> None:
    (before,) = _level(kctl)
    other = "ERROR" if before != "ERROR" else "WARN"
    (planned,) = kctl.json("broker", "loggers", "set", f"{LOGGER}={other}", "--broker", "2", "--dry-run")
    expected = {"broker": 2, "logger": LOGGER, "before": before, "after": other, "error": None}
    assert planned == {**expected, "result": "would set"}
    assert _level(kctl) == {before: [1, 2, 3]}, "nothing that was refused or only planned has changed a level"
    (done,) = kctl.json("broker", "loggers", "set", f"{LOGGER}={other.lower()}", "--broker", "2", "--yes")
    try:
        assert done == {**expected, "result": "set"}
        assert _level(kctl) == {before: [1, 3], other: [2]}
        (again,) = kctl.json("broker", "loggers", "set", f"{LOGGER}={other}", "--broker", "2", "--yes")
        assert again["result"] == "unchanged"
    finally:
        rows = kctl.json("broker", "loggers", "set", f"{LOGGER}={before}", "--yes")
    assert [row["result"] for row in rows] == ["unchanged", "set", "unchanged"]
    assert _level(kctl) == {before: [1, 2, 3]}


def test_loggers_for_a_while(kctl: Kctl, cluster: TestCluster) -> None:
    (before,) = _level(kctl)
    started = time.monotonic()
    (done,) = kctl.json("broker", "loggers", "set", f"{LOGGER}=ERROR", "--broker", "1", "--for", "1s", "--yes")
    assert (done["result"], done["before"], done["after"]) == ("put back", before, "ERROR")
    assert time.monotonic() - started > 1
    assert _level(kctl) == {before: [1, 2, 3]}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_puts_levels_back(kctl: Kctl, cluster: TestCluster, number: signal.Signals) -> None:
    (before,) = _level(kctl)
    with kctl.running("broker", "loggers", "set", f"{LOGGER}=ERROR", "--broker", "3", "--for", "1h", "-y") as process:
        eventually(lambda: _level(kctl).get("ERROR") == [3], what="the level is set")
        process.send_signal(number)
        out, err = process.communicate(timeout=within(20))
    assert process.returncode == 130, err
    assert "put back" in out
    assert _level(kctl) == {before: [1, 2, 3]}


def test_what_others_set_meanwhile_stays(kctl: Kctl, cluster: TestCluster) -> None:
    (before,) = _level(kctl)
    with kctl.running("broker", "loggers", "set", f"{LOGGER}=ERROR", "--broker", "3", "--for", "1h", "-y") as process:
        eventually(lambda: _level(kctl).get("ERROR") == [3], what="the level is set")
        kctl.ok("broker", "loggers", "set", f"{LOGGER}=WARN", "--broker", "3", "--yes")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=within(20))
    assert "changed by others" in out
    assert _level(kctl)["WARN"] == [3]
    kctl.ok("broker", "loggers", "set", f"{LOGGER}={before}", "--yes")


def test_health(kctl: Kctl, cluster: TestCluster) -> None:
    """Healthy; what is at fault elsewhere on this machine (its disk) is left out."""
    found = kctl.json("cluster", "health", "--max-disk-percent", "100", "--wait", "--timeout", "60s", "--brokers", "3")
    assert list(found) == [
        "healthy", "cluster_id", "controller_id", "broker_count", "brokers_down", "topic_count", "internal_topics",
        "partition_count", "checks", "eligible",
    ]  # fmt: skip
    assert found["eligible"] is None, "with ZooKeeper there are none"
    assert (found["healthy"], found["broker_count"]) == (True, 3)
    assert [check["check"] for check in found["checks"]] == [
        "brokers", "controller", "topics", "offline_partitions", "under_min_isr_partitions",
        "under_replicated_partitions", "log_dirs", "disks", "preferred_leaders", "replicas",
    ]  # fmt: skip
    assert list(found["checks"][0]) == ["check", "status", "summary", "subjects", "reasons"]
    less = kctl("cluster", "health", "--brokers", "4", "--max-disk-percent", "100", "-o", "json")
    assert less.code == 1
    assert json.loads(less.err)["problems_found"] == ["brokers"]
    waited = kctl("cluster", "health", "--brokers", "4", "--wait", "--timeout", "1s")
    assert (waited.code, "3 brokers of 4" in waited.out) == (1, True), str(waited)
    full = kctl("cluster", "health", "--max-disk-percent", "0")
    assert full.code == 1
    assert "above 0 %" in full.out
    nobody = kctl("cluster", "health", "--wait", "--timeout", "1s", "--bootstrap-server", "127.0.0.1:1")
    assert nobody.code == 3
    with kctl.running("cluster", "health", "--watch", "--interval", "200ms", "-o", "json") as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [line["rows"]["broker_count"] for line in lines] == [3, 3]


def test_diagnose_finds_nothing_on_a_healthy_cluster(
    kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]
) -> None:
    mine = topic(partitions=2, replication_factor=3)
    kctl.ok("produce", mine, stdin="x\n" * 100)
    result = kctl("cluster", "diagnose", "--watch-for", "2s", "-o", "json")
    found = json.loads(result.out)
    assert list(found) == [
        "partition_count", "offline", "under_replicated", "under_min_isr", "suspects", "held_back", "watched_ms",
        "isr_changes", "failures", "eligible", "no_controller",
    ]  # fmt: skip
    assert found["watched_ms"] == 2000
    assert not [row for row in found["held_back"] if row["topic"] == mine]
