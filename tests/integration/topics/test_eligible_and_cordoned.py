"""Eligible leader replicas (KIP-966) and cordoned log dirs (KIP-1066), on one cluster of Kafka 4.

The tests depend on each other's state of the brokers: they run in order. The last one leaves only brokers 1 and 4 up.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from java_tools import java_tool
from kctl.cluster.eligible import Eligible, read_eligible
from kctl.model import TopicPartition
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl_testing import Kctl, eventually, within
from kraft_nodes import KraftNodes, kraft_nodes

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftNodes]:
    """Four brokers: 1 is the controller and holds nothing."""
    with kraft_nodes(tmp_path_factory.mktemp("eligible"), 4) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def kctl(nodes: KraftNodes, tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Kctl:
    kctl = Kctl(tmp_path_factory.mktemp("eligible-kctl"), shared)
    kctl.ok("context", "add", "eligible", "--bootstrap-server", nodes.bootstrap)
    kctl.ok("context", "use", "eligible")
    return kctl


def _partition(kctl: Kctl, topic: str) -> dict[str, Any]:
    (described,) = kctl.json("topic", "describe", topic)
    partition: dict[str, Any] = described["partitions"][0]
    return partition


def _wait_for(kctl: Kctl, topic: str, key: str, value: object) -> None:
    eventually(lambda: _partition(kctl, topic)[key] == value, seconds=within(60), what=f"{key} is {value}")


def _wait_until_up(kctl: Kctl, node: int) -> None:
    def is_up() -> bool:
        return any(row["broker"] == node and row["state"] == "up" for row in kctl.json("broker", "list"))

    eventually(is_up, seconds=within(60), what=f"broker {node} is back")


def _elect(kctl: Kctl, topic: str, *args: str) -> tuple[int, str, dict[str, Any]]:
    done = kctl("leader", "elect", "--unclean", "--topic", topic, *args, "-o", "json")
    (row,) = json.loads(done.out)
    return done.code, done.err, row


def _as_kafka_topics(kafka_4_home: Path, nodes: KraftNodes, topic: str) -> dict[str, list[int]]:
    """Return Elr and LastKnownElr of partition 0 as Kafka's own tool has them."""
    out = java_tool(
        kafka_4_home, "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", nodes.bootstrap, "--describe",
        "--topic", topic,
    )  # fmt: skip
    (line,) = [line for line in out.splitlines() if "Partition: 0" in line]
    fields = dict(re.findall(r"(\w+): ?([^\t]*)", line))
    return {key: [int(node) for node in fields[key].split(",") if node.strip()] for key in ("Elr", "LastKnownElr")}


def test_cordoned_log_dirs(nodes: KraftNodes, kctl: Kctl) -> None:
    first, second = nodes.log_dirs(4)
    kctl.ok("topic", "create", "stays", "--replica-assignment", "4,4")
    assert kctl("broker", "cordon", "4", first).code == 4, "not confirmed"
    (row, _) = kctl.json("broker", "cordon", "4", first, "--dry-run")
    assert (row["log_dir"], row["cordoned"], row["result"]) == (first, False, "would cordon")
    (row, other) = kctl.json("broker", "cordon", "4", first, "--yes")
    assert (row["cordoned"], row["result"], other["cordoned"], other["result"]) == (
        True, "cordoned", False, "unchanged",
    )  # fmt: skip
    assert [row["result"] for row in kctl.json("broker", "cordon", "4", first, "--yes")] == ["unchanged"] * 2
    assert kctl("broker", "cordon", "4", "/none", "--yes").code == 4
    assert "CORDONED" in kctl.ok("broker", "log-dirs", "4").out
    assert "CORDONED" not in kctl.ok("broker", "log-dirs", "3").out
    (listed,) = [row for row in kctl.json("broker", "list") if row["broker"] == 4]
    assert listed["cordoned_log_dirs"] == 1

    # What is new goes into the other log dir, and no move into the cordoned one is planned.
    kctl.ok("topic", "create", "one-dir", "--replica-assignment", ",".join("4" * 6))
    replicas = kctl.json("broker", "log-dirs", "4", "--replicas", "--topic", "one-dir")
    assert {row["log_dir"] for row in replicas} == {second}
    findings = json.loads(kctl("doctor", "--about", "brokers", "-o", "json").out)["findings"]
    assert "cordoned.log.dirs" not in json.dumps(findings), "each broker has its own"

    done = kctl("broker", "cordon", "4", "--yes", "-o", "json")
    assert [row["cordoned"] for row in json.loads(done.out)] == [True, True]
    (entry,) = kctl.json("config", "get", "broker/4", "cordoned.log.dirs")
    assert entry["value"] == "*"

    def is_refused() -> bool:  # the controller learns of it with the next heartbeat
        refused = kctl("topic", "create", "nowhere", "--replica-assignment", "4", "--dry-run")
        return refused.code == 4 and "all its log directories are cordoned" in refused.err

    eventually(is_refused, seconds=within(30), what="the controller knows")
    kctl.ok("topic", "create", "elsewhere", "--partitions", "9", "--replication-factor", "3")
    (described,) = kctl.json("topic", "describe", "elsewhere")
    assert {node for p in described["partitions"] for node in p["replicas"]} == {1, 2, 3}
    planned = kctl("topic", "reassign", "plan", "--topic", "elsewhere", "--add-broker", "4")
    assert planned.code == 4
    assert "broker 4 is cordoned in all log dirs" in planned.err
    assert "kctl broker uncordon 4" in planned.err

    rows = kctl.json("broker", "uncordon", "4", second, "--yes")
    assert [(row["cordoned"], row["result"]) for row in rows] == [(True, "unchanged"), (False, "uncordoned")]
    rows = kctl.json("broker", "uncordon", "4", "--yes")
    assert [row["cordoned"] for row in rows] == [False, False]
    (entry,) = kctl.json("config", "get", "broker/4", "cordoned.log.dirs")
    assert (entry["value"], entry["source"]) == ("", "default")


def test_no_replica_is_proposed_while_others_are_eligible(nodes: KraftNodes, kctl: Kctl, kafka_4_home: Path) -> None:
    """50 records on all, 30 more on brokers 2 and 3, which then go; broker 4 comes back and lacks them."""
    kctl.ok("topic", "create", "ledger", "--replica-assignment", "2:3:4", "--config", "min.insync.replicas=2")
    partition = _partition(kctl, "ledger")
    assert (partition["eligible"], partition["last_known_eligible"]) == ([], [])
    assert "ELR" not in kctl.ok("topic", "describe", "ledger").out
    kctl.ok("produce", "ledger", stdin="a\n" * 50)
    nodes.kill(4)
    _wait_for(kctl, "ledger", "isr", [2, 3])
    kctl.ok("produce", "ledger", stdin="b\n" * 30)
    nodes.kill(3)
    _wait_for(kctl, "ledger", "isr", [2])
    _wait_for(kctl, "ledger", "eligible", [3])
    nodes.stop(2)
    _wait_for(kctl, "ledger", "leader", None)
    nodes.start(4)
    _wait_until_up(kctl, 4)

    partition = _partition(kctl, "ledger")
    java = _as_kafka_topics(kafka_4_home, nodes, "ledger")
    assert {"Elr": partition["eligible"], "LastKnownElr": partition["last_known_eligible"]} == java
    assert sorted(java["Elr"]) == [2, 3]
    _check_what_is_shown(kctl)
    _check_changes_of_the_minimum(kctl)

    code, err, row = _elect(kctl, "ledger", "--dry-run")
    assert (code, row["result"], sorted(row["eligible"]), row["loss"]) == (1, "skipped", [2, 3], None)
    assert row["elected"] is None
    assert "are eligible leader replicas, which have every committed record: start them first" in err
    code, err, row = _elect(kctl, "ledger", "--partition", "0", "--yes", "--confirm-cluster", "eligible")
    assert (code, row["result"]) == (1, "skipped")
    assert _partition(kctl, "ledger")["leader"] is None

    code, _, row = _elect(kctl, "ledger", "--ignore-eligible", "--dry-run")
    assert (code, row["result"], row["elected"]) == (0, "would elect", 4)
    loss = row["loss"]
    assert (loss["elected_end_offset"], loss["known_lost"], sorted(loss["eligible"])) == (50, None, [2, 3])

    nodes.start(2)  # what the hint says
    _wait_for(kctl, "ledger", "leader", 2)
    done = kctl("leader", "elect", "--unclean", "--topic", "ledger", "--dry-run")
    assert (done.code, "all with a leader" in done.err) == (0, True)
    (offsets,) = kctl.json("topic", "offsets", "ledger")
    assert offsets["offset"] == 80


def _check_what_is_shown(kctl: Kctl) -> None:
    """Health, diagnosis and doctor name the broker to start."""
    assert re.search(
        r"PARTITION +LEADER +REPLICAS +ISR +ELR +LAST KNOWN ELR", kctl.ok("topic", "describe", "ledger").out
    )
    health = json.loads(kctl("cluster", "health", "-o", "json").out)
    (row,) = [row for row in health["eligible"] if row["topic"] == "ledger"]
    assert (row["leader"], sorted(row["eligible"])) == (None, [2, 3])
    (check,) = [check for check in health["checks"] if check["check"] == "offline_partitions"]
    advice = "start broker 2, an eligible leader replica"
    assert advice in check["summary"]
    done = kctl("cluster", "diagnose", "-o", "json")
    assert [row for row in json.loads(done.out)["eligible"] if row["topic"] == "ledger"] == [row]
    assert "with eligible or last known leader replicas" in kctl("cluster", "diagnose").out
    done = kctl("doctor", "--about", "state", "-o", "json")
    (finding,) = [each for each in json.loads(done.out)["findings"] if each["rule"] == "offline-partitions"]
    assert advice in finding["message"]


def _check_changes_of_the_minimum(kctl: Kctl) -> None:
    """With eligible leader replicas there is one min.insync.replicas for all brokers, and a change forgets them."""
    done = kctl("config", "set", "topic/ledger", "min.insync.replicas=1", "--dry-run")
    assert "Kafka discards the eligible leader replicas (ELR) of ledger-0" in done.err
    done = kctl("topic", "alter", "ledger", "--config", "min.insync.replicas=1", "--dry-run")
    assert "Kafka discards the eligible leader replicas (ELR) of ledger-0" in done.err
    done = kctl("config", "set", "broker/4", "min.insync.replicas=2", "--yes")
    assert done.code == 4
    assert "Broker-level min.insync.replicas cannot be altered while ELR is enabled" in done.err
    assert "kctl config set brokers min.insync.replicas=N" in done.err
    assert kctl("config", "unset", "brokers", "min.insync.replicas", "--yes").code == 4
    (entry,) = kctl.json("config", "get", "broker/4", "min.insync.replicas")
    assert (entry["value"], entry["source"]) == ("1", "dynamic default broker")


def test_an_unclean_election_without_an_eligible_replica(nodes: KraftNodes, kctl: Kctl, kafka_4_home: Path) -> None:
    """The last leader, broker 2, restarts without a clean shutdown: it is only the last known leader then."""
    kctl.ok("topic", "create", "audit", "--replica-assignment", "2:4", "--config", "min.insync.replicas=2")
    kctl.ok("produce", "audit", stdin="a\n" * 20)
    nodes.kill(4)
    _wait_for(kctl, "audit", "isr", [2])
    _wait_for(kctl, "audit", "eligible", [4])
    kctl.ok("produce", "audit", "--acks", "1", stdin="b\n" * 5)
    nodes.kill(2)
    _wait_for(kctl, "audit", "leader", None)
    nodes.start(4)  # without a clean shutdown before: not eligible any more
    _wait_for(kctl, "audit", "eligible", [2])
    code, err, row = _elect(kctl, "audit", "--dry-run")
    assert (code, row["result"]) == (1, "skipped")
    assert "broker 2 is an eligible leader replica, which has every committed record: start it first" in err

    _kill_before_it_leads(nodes)
    partition = _partition(kctl, "audit")
    java = _as_kafka_topics(kafka_4_home, nodes, "audit")
    assert {"Elr": partition["eligible"], "LastKnownElr": partition["last_known_eligible"]} == java
    assert java == {"Elr": [], "LastKnownElr": [2]}
    done = kctl("cluster", "health", "-o", "json")
    assert "start broker 2, the last known leader" in done.out

    code, err, row = _elect(kctl, "audit", "--dry-run")
    assert (code, row["result"], row["elected"]) == (0, "would elect", 4)
    assert (row["loss"]["known_lost"], row["loss"]["last_known_eligible"]) == (None, [2])
    code, err, row = _elect(kctl, "audit", "--yes", "--confirm-cluster", "eligible")
    assert (code, row["result"], row["elected"]) == (0, "elected", 4)
    assert "broker 2 was the last leader and may have more: if possible, start it instead" in err
    assert _partition(kctl, "audit")["leader"] == 4


def _kill_before_it_leads(nodes: KraftNodes) -> None:
    """Start broker 2, and kill it once it is registered again: before it is unfenced, and so before it leads."""
    tp = TopicPartition("audit", 0)
    with connect(Target("eligible", (nodes.bootstrap,))) as client:
        for _ in range(3):
            nodes.launch(2)
            deadline = time.monotonic() + within(60)
            while read_eligible(client, [tp])[tp].replicas:
                assert time.monotonic() < deadline, "broker 2 did not register"
                time.sleep(0.02)
            nodes.kill(2)
            if read_eligible(client, [tp])[tp] == Eligible((), (2,)):
                return
    raise AssertionError("broker 2 led before it was killed, three times")
