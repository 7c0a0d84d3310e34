"""Each shipped playbook on a cluster that is broken before it starts: a broker is down, then ZooKeeper.

Where a run ends is pinned: exit code, step, what is said; and that what was refused has changed nothing. The last
playbook of each half is the one that mends it. One cluster, three ZooKeepers and three brokers, for both.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from books import BookRun
from cluster_testing import nothing_left_running, processes_of
from kctl.playbook.shipped import shipped
from kctl_testing import SCRIPT, Kctl, Result, eventually, within

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
NAME = "broken"
BOUND_S = 150.0  # of any run
LONG_AGO = "2020-01-01T00:00:00Z"


@dataclass(frozen=True)
class Case:
    """A run, and how it ends. step, said: what fails there; None: nothing does. timeout_s: of a request, where one is
    known to stay without an answer; longer on a machine that is slow."""

    book: str
    given: Mapping[str, str]
    code: int
    step: str | None = None
    said: str = ""
    options: tuple[str, ...] = ("--yes",)
    timeout_s: float | None = None

    def argv(self) -> list[str]:
        words = [word for key, value in self.given.items() for word in ("-p", f"{key}={value}")]
        limit = () if self.timeout_s is None else ("--timeout", f"{within(self.timeout_s):.0f}s")
        return ["playbook", "run", self.book, *words, *self.options, *limit, "-o", "json"]


DOWN = "broker 3 down"
ALIKE = (  # one after the other changes nothing for the next: they may run at the same time
    Case("topic-audit", {"min_insync_replicas": "1", "replication_factor": "1", "fail_on": "error"}, 0),
    Case("consumer-lag-gate", {"groups": "billing", "max_lag": "20"}, 0),
    Case("preferred-leader-rebalance", {"wait": "5s"}, 1, "in-sync", DOWN),
    Case("decommission-broker", {"broker": "3", "wait": "5s"}, 1, "in-sync", DOWN),
    Case("decommission-broker", {"broker": "2", "wait": "5s"}, 1, "in-sync", DOWN),
    Case("expand-cluster", {"brokers": "3", "wait": "5s"}, 1, "in-sync", DOWN),
    Case("reliability-validation", {"wait": "5s"}, 1, "before", DOWN),
    Case("nightly-health-report", {"max_disk_percent": "100"}, 1, "verdict", DOWN),
    Case("change-retention", {"topic": "orders", "retention": "1h"}, 5, "before", "sizes of broker 3: the broker"),
    Case("rolling-restart", {"cluster": NAME, "brokers": "1"}, 4, "restart", "1 in sync: 0 would be left"),
    Case("set-up-cluster", {"cluster": NAME, "layout": "three-node"}, 0, options=("--check",)),
)  # fmt: skip
SILENT = "did not respond to DescribeConfigs"
UNTOLD = "a stopped broker could not start without ZooKeeper"
UNMOVED = "nothing is in flight; no throttle of the run is on"
WITHOUT_ZOOKEEPER = (
    Case("topic-audit", {}, 1, "readable", SILENT),
    Case("consumer-lag-gate", {"groups": "billing", "max_lag": "20"}, 0),
    Case("preferred-leader-rebalance", {}, 0),
    Case("nightly-health-report", {"max_disk_percent": "100", "largest": "1"}, 1, "verdict", SILENT),
    Case("change-retention", {"topic": "orders", "retention": "2h"}, 5, "before", SILENT, timeout_s=10),
    Case("rolling-restart", {"cluster": NAME}, 4, "restart", UNTOLD),
    Case("rolling-restart", {"cluster": NAME, "unprotected": "false"}, 4, "plan", UNTOLD),
    Case("reliability-validation", {}, 4, "plan", "zookeeper-1, zookeeper-2, zookeeper-3 of cluster broken are down"),
    Case("set-up-cluster", {"cluster": NAME, "layout": "three-node"}, 0, options=("--check",)),
    # Brokers do not tell their throttles: that is tried for a minute, before anything is moved.
    Case("decommission-broker", {"broker": "3"}, 5, "move", UNMOVED, timeout_s=5),
    Case("expand-cluster", {"brokers": "3"}, 5, "move", UNMOVED, timeout_s=5),
)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Iterator[Kctl]:
    """A cluster with topics that can lose a broker, one that cannot, one that leaves broker 3 out, and a group."""
    kctl = Kctl(tmp_path_factory.mktemp("broken"), shared)
    settings = (
        "default.replication.factor=2", "min.insync.replicas=1", "offsets.topic.replication.factor=2",
        "num.io.threads=64",  # without ZooKeeper each request for settings takes one, and keeps it
    )  # fmt: skip
    with nothing_left_running(kctl):
        configs = [word for each in settings for word in ("--config", each)]
        kctl.ok("cluster", "create", NAME, "--use", "--layout", "three-node", "--heap", "256m", *configs, timeout=180)
        kctl.ok("topic", "create", "orders", "--replica-assignment", "1:2,2:3,3:1")
        kctl.ok("topic", "create", "uneven", "--replica-assignment", "1:2,2:1,1:2,2:1,1:2,2:1")
        kctl.ok("topic", "create", "alone", "--replica-assignment", "3")
        kctl.ok("produce", "orders", stdin="".join(f"{n}\n" for n in range(30)))
        kctl.ok(
            "consume", "orders", "--group", "billing", "--from-beginning", "--max-messages", "10", "--quiet",
        )  # fmt: skip
        yield kctl


def _together(kctl: Kctl, cases: tuple[Case, ...], folder: Path) -> list[BookRun]:
    """All at the same time, as most of their time is waiting; each as on a machine of its own, with its journals."""
    begun = time.monotonic()
    running = [
        subprocess.Popen(
            [str(SCRIPT), *each.argv()], cwd=folder,
            env={**kctl.environment, "XDG_STATE_HOME": str(folder / f"state-{number}")}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number, each in enumerate(cases)
    ]  # fmt: skip
    runs = []
    try:
        for case, process in zip(cases, running, strict=True):
            out, err = process.communicate(timeout=within(BOUND_S))
            result = Result(tuple(case.argv()), process.returncode, out, err, time.monotonic() - begun)
            assert out, str(result)
            runs.append(BookRun(result, json.loads(out)))
    finally:
        for process in running:
            process.kill()
    return runs


def _one(kctl: Kctl, case: Case, folder: Path) -> BookRun:
    (run,) = _together(kctl, (case,), folder)
    return run


def _as_expected(case: Case, run: BookRun) -> str | None:
    failed = [each["step"] for each in run.report["steps"] if each["state"] == "failed"]
    ended = failed[-1] if failed else None
    if (run.code, ended) != (case.code, case.step):
        return f"{case.book} ended with {run.code} at {ended}, not {case.code} at {case.step}: {run.result.err}"
    if case.step is not None and case.said not in run.told(case.step):
        return f"{case.book} does not say {case.said!r}: {run.result.err}"
    return None


def _changed(run: BookRun) -> list[str]:
    return [each["step"] for each in run.report["steps"] if each["state"] == "changed"]


def _all_as_expected(cases: tuple[Case, ...], runs: list[BookRun]) -> None:
    wrong = [said for case, run in zip(cases, runs, strict=True) if (said := _as_expected(case, run))]
    assert not wrong, "\n\n".join(wrong)
    changed = {step for run in runs for step in _changed(run)}
    assert changed <= {"save"}  # a plan, in a file


def _state(kctl: Kctl) -> Any:
    """What a playbook could have changed: replicas and settings of topics, throttles of brokers, offsets."""
    topics = kctl.json("topic", "describe", "--match", ".*")
    brokers = [kctl.json("config", "get", f"broker/{node}") for node in (1, 2, 3)]
    return {
        "topics": {
            each["topic"]: [each["config_entries"], [p["replicas"] for p in each["partitions"]]] for each in topics
        },
        "brokers": [[row for row in rows if "throttled" in row["name"]] for rows in brokers],
        "offsets": {row["partition"]: row["committed_offset"] for row in kctl.json("lag", "billing")},
    }


def _healthy(kctl: Kctl) -> None:
    kctl.ok("cluster", "health", "--wait", "--max-disk-percent", "100", "--timeout", "2m", timeout=150)


def _pids(kctl: Kctl) -> dict[str, int]:
    return processes_of(kctl.home)


def test_all_are_here() -> None:
    names = {each.path.stem for each in shipped()}
    apart = {"reset-group-by-time"}
    assert {each.book for each in ALIKE} | apart == names
    assert {each.book for each in WITHOUT_ZOOKEEPER} | apart == names


def test_a_broker_is_down(broken: Kctl, tmp_path: Path) -> None:
    _healthy(broken)
    before, pids = _state(broken), _pids(broken)
    broken.ok("cluster", "kill", NAME, "3", "--yes")
    eventually(lambda: "down" in broken("broker", "list").out, seconds=within(60), what="broker 3 is seen to be gone")
    _all_as_expected(ALIKE, _together(broken, ALIKE, tmp_path))

    reset = _one(broken, Case("reset-group-by-time", {"group": "billing", "to": LONG_AGO}, 0), tmp_path)
    assert (reset.code, reset.told("summary")[:32]) == (0, "billing reads 10 messages again "), str(reset)
    (saved,) = tmp_path.glob("billing-*.json")
    broken.ok("group", "import", str(saved), "--yes")
    unseen = _one(
        broken, Case("change-retention", {"topic": "orders", "retention": "1h", "watch": "false"}, 0), tmp_path
    )
    assert (unseen.code, _changed(unseen)) == (0, ["change"]), str(unseen)
    broken.ok("topic", "alter", "orders", "--delete-config", "retention.ms", "--yes")
    assert _pids(broken) == {name: pid for name, pid in pids.items() if name != "broker-3"}

    # A topic without a leader does not keep it from starting the broker that is down.
    mended = _one(broken, Case("rolling-restart", {"cluster": NAME, "brokers": "3"}, 0), tmp_path)
    assert (mended.code, _changed(mended)) == (0, ["restart"]), str(mended)
    _healthy(broken)
    assert _state(broken) == before


def test_zookeeper_is_down(broken: Kctl, tmp_path: Path) -> None:
    broken.ok("cluster", "start", NAME, timeout=120)
    _healthy(broken)
    broken.ok("leader", "elect", "--preferred", "--yes")
    before, pids = _state(broken), _pids(broken)
    for number in (1, 2, 3):
        broken.ok("cluster", "kill", NAME, f"zookeeper-{number}", "--yes")
    brokers = {name: pid for name, pid in pids.items() if name.startswith("broker")}
    try:
        assert broken("cluster", "health", "--max-disk-percent", "100").code == 0  # it asks the brokers alone
        reset = _one(broken, Case("reset-group-by-time", {"group": "billing", "to": LONG_AGO}, 0), tmp_path)
        assert (reset.code, _changed(reset)) == (0, ["save", "reset"]), str(reset)
        (saved,) = tmp_path.glob("billing-*.json")
        broken.ok("group", "import", str(saved), "--yes")
        _all_as_expected(WITHOUT_ZOOKEEPER, _together(broken, WITHOUT_ZOOKEEPER, tmp_path))
        assert _pids(broken) == brokers
    finally:
        mended = _one(broken, Case("set-up-cluster", {"cluster": NAME, "layout": "three-node"}, 0), tmp_path)
    assert (mended.code, _changed(mended)) == (0, ["start"]), str(mended)
    _healthy(broken)
    assert _state(broken) == before
