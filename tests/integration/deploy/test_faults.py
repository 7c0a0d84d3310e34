"""What goes wrong on a machine: taken ports, crashes, data that is not ours, starts that fail, ZooKeeper gone."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_testing import clusters_dir, nothing_left_running, processes_of
from kctl_testing import Kctl, eventually

SINGLE = ["cluster", "create", "c", "--use", "--layout", "single", "--heap", "256m"]


@pytest.fixture(autouse=True)
def _nothing_left(own_kctl: Kctl) -> Iterator[None]:
    with nothing_left_running(own_kctl):
        yield


def states(kctl: Kctl) -> dict[str, str]:
    """What `status` says of each process."""
    return {
        row["node"]: row["state"] for row in json.loads(kctl("cluster", "status", "c", "-o", "json").out)["processes"]
    }


def test_a_taken_port_is_named_with_its_owner(own_kctl: Kctl) -> None:
    own_kctl.ok(*SINGLE, "--no-start")
    port = _port(own_kctl, "broker-1")
    with socket.create_server(("127.0.0.1", port)):
        result = own_kctl("cluster", "start", "c", "-o", "json")
    error = json.loads(result.err)
    assert (result.code, error["code"], error["port"], error["pid"]) == (4, "busy", port, os.getpid())
    assert f"port {port} of broker-1 is in use by pid {os.getpid()} (" in error["message"]
    assert processes_of(own_kctl.home) == {}


def _port(kctl: Kctl, node: str) -> Any:
    spec = json.loads((clusters_dir(kctl) / "c" / "cluster.json").read_text())
    return next(n["port"] for kind in ("brokers", "zookeepers") for n in spec[kind] if f"{kind[:-1]}-{n['id']}" == node)


def test_a_taken_base_port_refuses_the_create(own_kctl: Kctl) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = own_kctl(*SINGLE, "--base-port", str(port))
    assert result.code == 4
    assert f"port {port}" in result.err
    assert f"pid {os.getpid()}" in result.err
    assert own_kctl.json("cluster", "list") == []


# Passes the check of names and types; only the broker itself finds out.
REJECTED = {
    "a class that does not exist": ("authorizer.class.name=no.such.Authorizer\n", "no.such.Authorizer"),
    "settings that contradict each other": ("replica.fetch.wait.max.ms=40000\n", "replica.fetch.wait.max.ms"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_a_create_that_fails_leaves_nothing(case: str, own_kctl: Kctl, tmp_path: Path) -> None:
    settings, says = REJECTED[case]
    (tmp_path / "bad.properties").write_text(settings)
    result = own_kctl(*SINGLE, "--config-file", str(tmp_path / "bad.properties"), "--timeout", "90s", timeout=120)
    assert result.code == 5, str(result)
    assert "broker-1 of cluster c did not start" in result.err
    assert re.search(says, result.err), str(result)
    assert "Traceback" not in result.err
    assert processes_of(own_kctl.home) == {}
    assert own_kctl.json("cluster", "list") == []
    assert own_kctl.json("context", "list") == []
    assert [p.name for p in clusters_dir(own_kctl).iterdir()] == [".ports.lock"]


@pytest.mark.long
def test_a_start_that_fails_stops_only_what_it_started(own_kctl: Kctl) -> None:
    own_kctl.ok(*SINGLE, timeout=120)
    before = processes_of(own_kctl.home)
    own_kctl.ok("cluster", "kill", "c", "1", "--yes")
    config = clusters_dir(own_kctl) / "c/broker-1/server.properties"
    good = config.read_text()
    config.write_text(good + "num.io.threads=none\n")
    result = own_kctl("cluster", "start", "c", timeout=90)
    assert result.code == 5
    assert "num.io.threads" in result.err
    assert processes_of(own_kctl.home) == {"zookeeper-1": before["zookeeper-1"]}
    config.write_text(good)
    own_kctl.ok("cluster", "start", "c", timeout=90)
    assert own_kctl.json("cluster", "status", "c")["healthy"]


@pytest.mark.long
def test_every_process_killed_and_started_again(own_kctl: Kctl) -> None:
    own_kctl.ok(*SINGLE, timeout=120)
    own_kctl.ok("topic", "create", "t")
    own_kctl.ok("produce", "t", stdin="kept\n")
    for pid in processes_of(own_kctl.home).values():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not processes_of(own_kctl.home), what="both are dead")
    assert states(own_kctl) == {"zookeeper-1": "dead", "broker-1": "dead"}
    # ZooKeeper comes back with the old session of the broker in it: the start waits until that has expired.
    own_kctl.ok("cluster", "start", "c", timeout=120)
    assert own_kctl.ok("consume", "t", "--from-beginning", "--max-messages", "1").out == "kept\n"


@pytest.mark.long
def test_stop_without_zookeeper_ends_and_force_kills(own_kctl: Kctl) -> None:
    own_kctl.ok(*SINGLE, timeout=120)
    killed = own_kctl.json("cluster", "kill", "c", "zookeeper-leader", "--yes")
    assert (killed["node"], killed["state"]) == ("zookeeper-1", "dead")
    # No JVM ends within 20 ms; given longer, it may or may not hang.
    result = own_kctl("cluster", "stop", "c", "--yes", "--timeout", "20ms")
    assert result.code == 5
    assert "ZooKeeper does not respond" in result.err
    assert "--force" in result.err
    own_kctl.ok("cluster", "stop", "c", "--yes", "--timeout", "5s", "--force")
    assert states(own_kctl) == {"zookeeper-1": "stopped", "broker-1": "stopped"}
    own_kctl.ok("cluster", "start", "c", timeout=120)
    forced = own_kctl.json("cluster", "stop", "c", "--yes", "--timeout", "20ms", "--force")
    assert (forced["killed"], forced["stopped"]) == (["broker-1"], ["zookeeper-1"])


@pytest.mark.long
def test_pause_and_unpause(own_kctl: Kctl) -> None:
    own_kctl.ok(*SINGLE, timeout=120)
    assert own_kctl.json("cluster", "pause", "c", "controller", "--dry-run")["state"] == "would pause"
    assert own_kctl("cluster", "pause", "c", "controller").code == 4
    paused = own_kctl.json("cluster", "pause", "c", "controller", "--yes")
    assert (paused["node"], paused["state"]) == ("broker-1", "paused")
    assert states(own_kctl)["broker-1"] == "paused"
    assert own_kctl.json("cluster", "unpause", "c", "1")["state"] == "running"
    eventually(lambda: own_kctl("cluster", "status", "c").code == 0, what="healthy again")
    own_kctl.json("cluster", "pause", "c", "1", "--yes")
    own_kctl.ok("cluster", "start", "c", timeout=90)  # a start lets it go on
    own_kctl.json("cluster", "pause", "c", "zookeeper-1", "--yes")
    own_kctl.ok("cluster", "stop", "c", "--yes", "--timeout", "60s", "--force", timeout=90)
    assert processes_of(own_kctl.home) == {}


SELECTORS = [
    ("leader:nosuch-0", 4, "nosuch"),
    ("leader:t-9", 4, "no partition 9"),
    ("leader:t", 2, "does not select a process"),
    ("broker-9", 4, "no node broker-9"),
    ("9", 4, "no node 9"),
    ("everything", 2, "does not select a process"),
    ("zookeeper-2", 4, "zookeeper-2"),
]


@pytest.mark.long
def test_selectors(own_kctl: Kctl) -> None:
    own_kctl.ok(*SINGLE, timeout=120)
    own_kctl.ok("topic", "create", "t")
    for selector, code, says in SELECTORS:
        result = own_kctl("cluster", "kill", "c", selector, "--yes")
        assert result.code == code, str(result)
        assert says in result.err, str(result)
    for selector in ("1", "broker-1", "controller", "leader:t-0"):
        assert own_kctl.json("cluster", "kill", "c", selector, "--dry-run")["node"] == "broker-1"
    own_kctl.ok("cluster", "kill", "c", "leader:t-0", "--yes")
    for selector in ("1", "controller", "leader:t-0"):
        assert own_kctl("cluster", "kill", "c", selector, "--yes").code == 4


def test_data_of_another_cluster_is_refused(own_kctl: Kctl) -> None:
    own_kctl.ok(*SINGLE, timeout=120)
    own_kctl.ok("cluster", "stop", "c", "--yes")
    meta = clusters_dir(own_kctl) / "c/broker-1/data-1/meta.properties"
    good = meta.read_text()
    cases = [
        (good.replace("broker.id=1", "broker.id=2"), "data of broker 2"),
        ("".join("cluster.id=another\n" if "cluster.id" in line else f"{line}\n" for line in good.splitlines()),
         "cluster another"),
    ]  # fmt: skip
    for text, says in cases:
        assert text != good
        meta.write_text(text)
        result = own_kctl("cluster", "start", "c", timeout=90)
        assert result.code == 4, str(result)
        assert says in result.err
        assert processes_of(own_kctl.home) == {}
    meta.write_text(good)
    (clusters_dir(own_kctl) / "c/zookeeper-1/data/myid").write_text("7\n")
    assert "'7'" in own_kctl("cluster", "start", "c").err
    assert processes_of(own_kctl.home) == {}


def test_a_runtime_that_is_gone(own_kctl: Kctl, tmp_path: Path, kafka_home: Path) -> None:
    link = tmp_path / "kafka"
    link.symlink_to(kafka_home)
    own_kctl.ok(*SINGLE, "--kafka-home", str(link), "--no-start")
    link.unlink()
    result = own_kctl("cluster", "start", "c")
    assert result.code == 4
    assert "Kafka 3.9.2 of cluster c is missing" in result.err


def test_logs(own_kctl: Kctl) -> None:
    own_kctl.ok(*SINGLE, timeout=120)
    both = own_kctl.ok("cluster", "logs", "c", "--tail", "all").out.splitlines()
    assert {line.split()[0] for line in both} == {"broker-1", "zookeeper-1"}
    one = own_kctl.ok("cluster", "logs", "c", "1", "--grep", r"started \(kafka.server.KafkaServer\)").out
    assert one.startswith("[")
    assert one.count("\n") == 1
    rows = [
        json.loads(line) for line in own_kctl.ok("cluster", "logs", "c", "--tail", "7", "-o", "json").out.splitlines()
    ]
    assert len(rows) == 7
    assert [list(row) for row in rows] == [["time", "node", "level", "text"]] * 7
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    assert own_kctl("cluster", "logs", "c", "2").code == 4
    assert own_kctl("cluster", "logs", "c", "--grep", "(").code == 2
    with own_kctl.running(
        "cluster", "logs", "c", "--follow", "--tail", "0", "--grep", "Created log for partition"
    ) as log:
        assert log.stdout is not None
        for number in range(30):  # until the command has started to follow
            own_kctl.ok("topic", "create", f"followed{number}")
            if select.select([log.stdout], [], [], 2)[0]:
                break
        assert re.search(r"followed\d+-0", log.stdout.readline())


@pytest.mark.long
def test_three_brokers_survive_the_leader_and_a_third_of_the_ensemble(own_kctl: Kctl) -> None:
    own_kctl.ok("cluster", "create", "c", "--use", "--layout", "three-node", "--heap", "256m", timeout=180)
    own_kctl.ok("topic", "create", "t", "--replication-factor", "3")
    own_kctl.ok("cluster", "kill", "c", "zookeeper-leader", "--yes")
    killed = own_kctl.json("cluster", "kill", "c", "leader:t-0", "--yes")
    assert states(own_kctl)[killed["node"]] == "dead"

    def others_lead() -> bool:
        return own_kctl("produce", "t", stdin="kept\n", timeout=90).code == 0

    eventually(others_lead, seconds=60, what="another broker leads")
    assert own_kctl("cluster", "status", "c").code == 1
    own_kctl.ok("cluster", "start", "c", timeout=120)
    eventually(lambda: own_kctl("cluster", "status", "c").code == 0, seconds=60, what="everything in sync again")
    assert own_kctl.ok("consume", "t", "--from-beginning", "--max-messages", "1").out == "kept\n"
