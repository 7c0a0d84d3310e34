"""Every validation and the matrix on a real cluster of three brokers that kctl set up: crashes, pauses, restarts."""

from __future__ import annotations

import json
import signal
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_testing import nothing_left_running, processes_of
from kctl.deploy.process import find_processes
from kctl_testing import SCRIPT, Kctl, eventually, within

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

NAME = "proof"
OTHERS = "orders"  # a topic that is there all the time
BROKERS = {"broker-1", "broker-2", "broker-3"}
_SECONDS = 900.0
_CLEAN = ("violated", "breaches", "doubts")
_NEVER = ("lost", "duplicated", "out_of_order", "holes", "misplaced", "foreign", "not_delivered", "delivered_again")


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Iterator[Kctl]:
    """A kctl with a cluster of its own."""
    kctl = Kctl(tmp_path_factory.mktemp("proof"), shared)
    with nothing_left_running(kctl):
        kctl.ok(
            "cluster", "create", NAME, "--use", "--layout", "pseudo-distributed", "--heap", "256m",
            "--config", "auto.leader.rebalance.enable=false",
            # Each unclean election waits until a paused follower has left the ISR: 15 s instead of 45 s at most.
            "--config", "replica.lag.time.max.ms=10000", timeout=within(180),
        )  # fmt: skip
        kctl.ok("topic", "create", OTHERS, "--replica-assignment", "1:2:3,2:3:1,3:1:2")
        yield kctl


@pytest.fixture(autouse=True)
def _as_before(proof: Kctl) -> Iterator[None]:
    """All runs and nothing of a validation is there, before and after each test."""
    _put_right(proof)
    yield
    assert set(processes_of(proof.home)) == {*BROKERS, "zookeeper-1"}
    assert not [row["topic"] for row in proof.json("topic", "list") if row["topic"].startswith("kctl-validate-")]
    home = str(proof.home)
    eventually(
        lambda: not find_processes(lambda argv: "kctl.validate" in " ".join(argv) and home in " ".join(argv)),
        seconds=within(10), what="producers and consumers end",
    )  # fmt: skip


def _put_right(kctl: Kctl) -> None:
    kctl.ok("cluster", "start", NAME, timeout=_SECONDS)
    kctl.ok("cluster", "health", "--wait", "--timeout", "5m", timeout=_SECONDS)
    kctl.ok("leader", "elect", "--preferred", "--topic", OTHERS, "--yes")


def _assert_leaders_as_before(kctl: Kctl) -> None:
    """Of topics of others: no broker puts them back by itself here."""
    status = kctl("leader", "status", "--topic", OTHERS)
    assert status.code == 0, str(status)


def test_all(proof: Kctl, tmp_path: Path) -> None:
    report = tmp_path / "report"
    done = proof(
        "validate", "all", "--yes", "--max-gap", f"{within(60):.0f}s", "--max-isr-time", f"{within(120):.0f}s",
        "--max-leader-time", f"{within(60):.0f}s", "--max-controller-time", f"{within(60):.0f}s",
        "--report", str(report), "-o", "json", timeout=_SECONDS,
    )  # fmt: skip
    assert done.code == 0, str(done)
    value = json.loads(done.out)
    assert (value["ok"], value["failed"], value["unmeasured"], value["left_out"]) == (True, None, [], [])
    rows = {row["scenario"]: row for row in value["scenarios"]}
    assert list(rows) == [
        "leader-election", "controller-election", "rolling-restart", "unclean-election", "broker-loss", "zookeeper-loss"
    ]  # fmt: skip
    for name, row in rows.items():
        assert [row[key] for key in _CLEAN] == [[], [], []], name
        assert [row[key] for key in _NEVER] == [0] * len(_NEVER), name
        assert row["acked"] + row["failed"] + row["indeterminate"] == row["sent"] > 500, name
        assert row["acked"] <= row["log_records"] == row["delivered"], name
        assert row["missing_offsets"] == 0, name
        assert all(each["gap_before_ms"] is not None and each["gap_after_ms"] for each in row["partitions"]), name
        assert sum(row["writes_per_second"]) == row["acked"], name
        drawn = ET.parse(report / f"{name}.svg").getroot()
        assert len([each for each in drawn.iter() if each.get("class") == "fault"]) == len(row["faults"]), name
    _assert_figures(rows)
    assert json.loads((report / "report.json").read_text()) == value
    assert "**Passed.**" in (report / "report.md").read_text()
    assert done.err.count(": passed (") == 6
    _assert_leaders_as_before(proof)


def _assert_figures(rows: dict[str, Any]) -> None:
    """Each fault cost what it must: else it was none."""
    kept = {name: {each["budget"]: each["kept"] for each in row["budgets"]} for name, row in rows.items()}
    assert {name for name, each in kept.items() if each.get("max_controller_ms")} >= {"controller-election"}
    assert kept["leader-election"]["max_leader_ms"]
    assert kept["leader-election"]["max_controller_ms"] is None  # the controller stayed
    assert kept["unclean-election"] == {}
    leader, controller = rows["leader-election"]["faults"], rows["controller-election"]["faults"]
    assert leader[0]["to_new_leader_ms"] > 1000  # its session has to expire
    assert leader[0]["to_new_controller_ms"] == 0
    assert leader[0]["to_full_isr_ms"] > leader[0]["to_new_leader_ms"]
    assert leader[0]["longest_gap_ms"] > 1000
    assert controller[0]["to_new_controller_ms"] > 1000
    stops = rows["rolling-restart"]["faults"]
    assert sorted(each["name"] for each in stops) == [f"stop of broker {n}" for n in (1, 2, 3)]
    assert [each["to_new_controller_ms"] > 0 for each in stops] == [False, False, True]  # the controller last
    assert max(each["longest_gap_ms"] for each in stops) < within(10_000)  # a clean stop hands its leaders over
    unclean = rows["unclean-election"]
    assert unclean["assignment"] == [unclean["assignment"][0]]
    assert len(unclean["assignment"][0]) == 2
    assert (unclean["min_insync_replicas"], unclean["unclean_leader_election"]) == (2, True)
    assert unclean["faults"][0]["to_full_isr_ms"] is None  # the follower stays behind
    assert rows["broker-loss"]["to_full_isr_ms"] > 10_000  # it stayed away
    assert rows["zookeeper-loss"]["to_new_leader_ms"] == 0
    assert [each["name"] for each in rows["zookeeper-loss"]["faults"]] == ["kill -9 of ZooKeeper", "start of ZooKeeper"]


def test_matrix(proof: Kctl, tmp_path: Path) -> None:
    report = tmp_path / "report"
    done = proof("validate", "matrix", "--yes", "--report", str(report), "-o", "json", timeout=_SECONDS)
    assert done.code == 0, str(done)
    value = json.loads(done.out)
    rows = {(row["acks"], row["idempotence"], row["min_insync_replicas"]): row for row in value["matrix"]}
    assert set(rows) == {
        (acks, idempotence, least)
        for acks, idempotence in (("0", False), ("1", False), ("all", False), ("all", True))
        for least in (1, 2)
    }
    for (acks, _, least), row in rows.items():
        assert bool(row["lost"]) == (acks != "all" or least == 1), row
        assert row["acked"] > 100
    safe = rows["all", True, 2]
    assert (safe["failed"], safe["duplicated"], safe["out_of_order"], safe["acked"]) == (0, 0, 0, safe["sent"])
    assert safe["longest_gap_ms"] > rows["1", False, 1]["longest_gap_ms"]  # what it costs
    assert (value["ok"], value["doubts"]) == (True, [])
    _assert_leaders_as_before(proof)
    setups = {(row["acks"], row["idempotence"], row["min_insync_replicas"]): row for row in value["setups"]}
    _assert_losses(setups["1", False, 1])
    assert "acks-1-min-1: partition 0, offset " in done.err
    assert "lost: not in the log files of any replica" in done.err
    assert len(list(report.glob("*.svg"))) == 8


def _assert_losses(row: dict[str, Any]) -> None:
    """acks=1, and the follower that lacks records is elected: exactly those are found, and nothing else is invented."""
    assert not row["ok"]
    assert "lost" in row["violated"]
    assert {"holes", "foreign", "misplaced"} & {name for name in row["violated"] if row[name]} <= {"misplaced"}
    lost = row["records"]["lost"]
    assert [each["partition"] for each in lost] == [0] * len(lost)
    assert [each["sequence"] for each in lost] == sorted(each["sequence"] for each in lost)
    assert row["lost"] >= 100  # what was written while the follower stood still
    named = {(each["partition"], each["offset"], each["sequence"]) for each in lost}
    for each in row["missing"]:
        if each["became"] != "not delivered":
            assert (each["partition"], each["offset"], each["sequence"]) in named
            assert (each["became"], each["unread"]) == ("lost", [])
    assert row["missing"][0]["became"] == "lost"


def _validating(kctl: Kctl, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(SCRIPT), "validate", *args, "--yes"], env=kctl.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_broken_cluster_is_no_place_to_begin(proof: Kctl) -> None:
    for node in ("broker-3", "zookeeper-1"):
        proof.ok("cluster", "kill", NAME, node, "--yes")
        refused = proof("validate", "all", "--yes", timeout=within(60))
        assert refused.code == 4, str(refused)
        assert f"{node} of cluster {NAME} is down" in refused.err
        assert f"kctl cluster start {NAME}" in refused.err
        _put_right(proof)


@pytest.mark.parametrize("moment", ["a follower is paused", "ZooKeeper is dead"])
def test_kctl_killed_while_the_cluster_is_broken(proof: Kctl, moment: str) -> None:
    scenario, node = ("zookeeper-loss", "zookeeper-1") if "dead" in moment else ("unclean-election", "broker")
    process = _validating(proof, scenario)
    try:
        eventually(lambda: _broken(proof, node), seconds=within(120), what=moment)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=within(30))
    finally:
        process.kill()
    assert _broken(proof, node)
    cleaned = proof("validate", scenario, timeout=_SECONDS)
    assert cleaned.code == 4, str(cleaned)  # nobody confirmed another one
    assert "cleaned up after an earlier validation: kctl-validate-" in cleaned.err
    assert node in cleaned.err
    assert not _broken(proof, node)


def _broken(kctl: Kctl, node: str) -> bool:
    """A broker is stopped by a signal; or the node does not run."""
    found = processes_of(kctl.home)
    if node != "broker":
        return node not in found
    return any(Path(f"/proc/{found[name]}/stat").read_text().rpartition(")")[2].split()[0] == "T" for name in BROKERS)


def test_sigterm_while_a_broker_is_dead_brings_it_back(proof: Kctl) -> None:
    process = _validating(proof, "controller-election")
    try:
        eventually(
            lambda: len(processes_of(proof.home)) == 3, seconds=within(120), what="the controller is dead"
        )  # fmt: skip
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=within(180))
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "the evidence so far is in " in err
    _assert_leaders_as_before(proof)
