"""Each layout comes up, does what its commands say, and goes away without a trace."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_testing import clusters_dir, nothing_left_running, processes_of
from kctl_testing import Kctl, Result


@pytest.fixture(autouse=True)
def _nothing_left(own_kctl: Kctl) -> Iterator[None]:
    with nothing_left_running(own_kctl):
        yield


LAYOUTS = {
    "single": (["--chroot", "/", "--config", "num.partitions=2"], 1, 1),
    "pseudo-distributed": (["--brokers", "2", "--rack", "auto", "--log-dirs", "2", "--heap", "256m"], 1, 2),
    "three-node": (["--heap", "256m"], 3, 3),
}


@pytest.mark.parametrize(
    "layout",
    # The session's own cluster is a pseudo-distributed one.
    ["single", "three-node", pytest.param("pseudo-distributed", marks=pytest.mark.long)],
)
def test_layout(layout: str, own_kctl: Kctl) -> None:
    options, zookeepers, brokers = LAYOUTS[layout]
    names = [f"zookeeper-{n + 1}" for n in range(zookeepers)] + [f"broker-{n + 1}" for n in range(brokers)]
    made = json.loads(
        own_kctl.ok("cluster", "create", "c", "--use", "--layout", layout, *options, "-o", "json", timeout=150).out
    )
    assert made["layout"] == layout
    assert made["brokers"] == list(range(1, brokers + 1))
    assert processes_of(own_kctl.home).keys() == set(names)
    _check_status(own_kctl, names)
    _check_it_is_the_current_context(own_kctl, brokers)
    again = own_kctl.json("cluster", "start", "c")
    assert (again["started"], again["already_running"]) == ([], names)

    refused = own_kctl("cluster", "create", "c", "--use", "--layout", layout)
    assert refused.code == 4
    assert "exists" in refused.err
    _check_stop_and_start(own_kctl, names)

    directory = Path(made["directory"])
    assert own_kctl("cluster", "destroy", "c").code == 4
    assert directory.is_dir()
    gone = own_kctl.json("cluster", "destroy", "c", "--confirm-cluster", "c")
    assert set(gone["killed"]) == set(names)
    assert processes_of(own_kctl.home) == {}
    assert not directory.exists()
    assert own_kctl.json("cluster", "list") == []
    assert own_kctl.json("context", "list") == []


def _check_status(kctl: Kctl, names: list[str]) -> None:
    status = kctl.json("cluster", "status", "c")
    assert status["healthy"]
    assert status["problems"] == []
    assert [row["node"] for row in status["processes"]] == names
    assert {row["state"] for row in status["processes"]} == {"running"}
    running = processes_of(kctl.home)
    assert {row["node"]: row["pid"] for row in status["processes"]} == running
    roles = [row["role"] for row in status["processes"] if row["kind"] == "zookeeper"]
    assert sorted(roles) == (["standalone"] if len(roles) == 1 else ["follower", "follower", "leader"])
    controllers = [row["node_id"] for row in status["processes"] if row["role"] == "controller"]
    assert controllers == [status["controller_id"]]
    for row in status["processes"]:
        assert row["rss_bytes"] > 10_000_000
        assert row["uptime_ms"] > 0
        assert row["disk_bytes"] > 0
        assert Path(row["log"]).is_file()


STATUS_KEYS = [
    "name", "layout", "healthy", "problems", "cluster_id", "controller_id", "partition_count",
    "under_replicated_partitions", "offline_partitions", "bootstrap_servers", "zookeeper", "kafka_version",
    "upgrade_to", "directory", "processes",
]  # fmt: skip
PROCESS_KEYS = [
    "node", "kind", "node_id", "state", "role", "pid", "port", "rack", "leader_partitions",
    "under_replicated_partitions", "uptime_ms", "rss_bytes", "cpu_ms", "disk_bytes", "kafka_version", "log",
]  # fmt: skip
LIST_KEYS = [
    "name", "state", "layout", "broker_count", "running_processes", "process_count", "kafka_version",
    "bootstrap_servers", "current", "directory", "problem",
]  # fmt: skip


def _check_it_is_the_current_context(kctl: Kctl, brokers: int) -> None:
    exported = kctl.ok("cluster", "env", "c").out
    script = f"{exported}\necho $KCTL_CONTEXT $BOOTSTRAP $ZOOKEEPER"
    words = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=True).stdout.split()
    status = kctl.json("cluster", "status", "c")
    assert words == ["c", ",".join(status["bootstrap_servers"]), status["zookeeper"]]
    kctl.ok("topic", "create", "t", "--replication-factor", str(brokers))
    kctl.ok("produce", "t", stdin="one\ntwo\n")
    assert sorted(kctl.ok("consume", "t", "--from-beginning", "--max-messages", "2").out.split()) == ["one", "two"]


def _check_stop_and_start(kctl: Kctl, names: list[str]) -> None:
    stopped = kctl.json("cluster", "stop", "c", "--yes")
    assert (set(stopped["stopped"]), stopped["killed"]) == (set(names), [])
    assert processes_of(kctl.home) == {}
    for node in names:
        if node.startswith("broker"):  # controlled shutdown, all of it
            for folder in (clusters_dir(kctl) / "c" / node).glob("data-*"):
                assert (folder / ".kafka_cleanshutdown").is_file()
    status = kctl("cluster", "status", "c", "-o", "json")
    assert status.code == 1
    assert {row["state"] for row in json.loads(status.out)["processes"]} == {"stopped"}
    assert kctl.json("cluster", "list")[0]["state"] == "stopped"
    assert kctl.json("cluster", "stop", "c")["already_stopped"] == names  # nothing to interrupt: it does not ask
    assert kctl.json("cluster", "start", "c", timeout=120)["started"] == names
    assert sorted(kctl.ok("consume", "t", "--from-beginning", "--max-messages", "2").out.split()) == ["one", "two"]
    assert kctl.json("cluster", "status", "c")["healthy"]


def test_dry_run_shows_every_file_and_writes_none(own_kctl: Kctl) -> None:
    shown = own_kctl.ok("cluster", "create", "c", "--layout", "three-node", "--base-port", "29900", "--dry-run").out
    planned = [line.split()[1] for line in shown.splitlines() if line.startswith("==> ")]
    assert not clusters_dir(own_kctl).exists() or list(clusters_dir(own_kctl).glob("[!.]*")) == []
    own_kctl.ok("cluster", "create", "c", "--layout", "three-node", "--base-port", "29900", "--no-start")
    written = {str(p) for p in (clusters_dir(own_kctl) / "c").rglob("*") if p.is_file()}
    assert written == {*planned, str(clusters_dir(own_kctl) / "c" / "cluster.json")}
    for path in planned:
        assert f"==> {path} <==\n{Path(path).read_text()}" in shown
    assert processes_of(own_kctl.home) == {}


def test_json_keys_are_stable(own_kctl: Kctl) -> None:
    own_kctl.ok("cluster", "create", "c", "--use", "--layout", "single", "--no-start")
    status: Result = own_kctl("cluster", "status", "c", "-o", "json")
    document = json.loads(status.out)
    assert list(document) == STATUS_KEYS
    assert {tuple(row) for row in document["processes"]} == {tuple(PROCESS_KEYS)}
    (listed,) = own_kctl.json("cluster", "list")
    assert list(listed) == LIST_KEYS


def test_start_dry_run_and_single_nodes(own_kctl: Kctl) -> None:
    own_kctl.ok("cluster", "create", "c", "--use", "--layout", "single", "--no-start")
    plan = own_kctl.json("cluster", "start", "c", "--dry-run")
    assert plan == [{"node": "zookeeper-1", "result": "would start"}, {"node": "broker-1", "result": "would start"}]
    assert own_kctl("cluster", "start", "c", "--node", "7").code == 4
    assert own_kctl.json("cluster", "start", "c", "--node", "zookeeper-1", timeout=90)["started"] == ["zookeeper-1"]
    assert own_kctl.json("cluster", "start", "c", "--node", "1", timeout=90)["started"] == ["broker-1"]
    restarted = own_kctl.json("cluster", "restart", "c", "--node", "1", "--yes", timeout=90)
    assert restarted["started"]["started"] == ["broker-1"]
    assert own_kctl.json("cluster", "status", "c")["healthy"]
