"""Rolling restarts of a real cluster of three brokers: under load, killed at each step, with a broken broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster_testing import clusters_dir, nothing_left_running, processes_of
from kctl.client import connect
from kctl.context import Target
from kctl.errors import KctlError
from kctl.restart.steps import Step
from kctl.validate.experiment import Experiment
from kctl.validate.records import new_run
from kctl.validate.settings import ProducerSettings
from kctl_testing import SCRIPT, Kctl, Result, eventually, within

pytestmark = pytest.mark.long

NAME = "roll"
BROKERS = ("broker-1", "broker-2", "broker-3")
RESTART = ("cluster", "restart", NAME, "--rolling", "--yes")
QUICK = ("--stable-checks", "2", "--stable-interval", "200ms", "--broker-timeout", "3m")
_KILLED = Path(__file__).parents[1] / "support" / "kctl_killed.py"
_SECONDS = 400.0


@pytest.fixture(scope="module")
def rolling(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Iterator[Kctl]:
    """A kctl with a cluster of its own, which has a topic that can be protected."""
    kctl = Kctl(tmp_path_factory.mktemp("rolling"), shared)
    with nothing_left_running(kctl):
        kctl.ok(
            "cluster", "create", NAME, "--layout", "pseudo-distributed", "--heap", "256m",
            "--config", "min.insync.replicas=2", "--config", "default.replication.factor=3", timeout=_SECONDS,
        )  # fmt: skip
        kctl.ok("topic", "create", "orders", "--partitions", "6", "--replication-factor", "3")
        yield kctl


@pytest.fixture(autouse=True)
def _all_up(rolling: Kctl) -> None:
    """Whatever the test before left."""
    rolling.ok("cluster", "start", NAME, timeout=_SECONDS)
    rolling.ok("cluster", "health", "--wait", "--timeout", "3m", timeout=_SECONDS)


def restart(kctl: Kctl, *args: str) -> Result:
    return kctl(*RESTART, *QUICK, *args, timeout=_SECONDS)


def restarted(kctl: Kctl, *args: str) -> Any:
    """The result of a restart that is to end well."""
    result = kctl(*RESTART, *QUICK, *args, "-o", "json", timeout=_SECONDS)
    assert result.code == 0, str(result)
    return json.loads(result.out)


def target(kctl: Kctl) -> Target:
    found = kctl.json("context", "show", NAME)
    return Target(NAME, tuple(found["bootstrap_servers"]), found["zookeeper"])


def pids(kctl: Kctl) -> dict[str, int]:
    return {name: pid for name, pid in processes_of(kctl.home).items() if name in BROKERS}


def changed(before: dict[str, int], after: dict[str, int]) -> set[str]:
    """Brokers that run in another process now."""
    assert set(after) == set(BROKERS), after
    return {name for name in BROKERS if before.get(name) != after[name]}


def unfinished(kctl: Kctl) -> bool:
    """A run that was to be forgotten is none any more."""
    return kctl(*RESTART, "--abandon", timeout=60).code == 0


@contextmanager
def least_in_sync(at: Target, topic: str) -> Iterator[list[int]]:
    """The fewest replicas in sync that any broker told while the block ran, in a list of one."""
    least, stop = [99], threading.Event()

    def look() -> None:
        while not stop.is_set():
            try:
                with connect(at, timeout_s=5) as client:
                    while not stop.wait(0.05):
                        found = client.metadata([topic]).topics[topic]
                        least[0] = min(least[0], *(len(p.isr) for p in found.partitions))
            except (KctlError, KeyError):
                stop.wait(0.1)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield least
    finally:
        stop.set()
        thread.join(30)


def test_under_load_no_write_fails_and_two_are_always_in_sync(rolling: Kctl, tmp_path: Path) -> None:
    at = target(rolling)
    settings = ProducerSettings("orders", new_run(), per_s=300, value_bytes=100)
    before = pids(rolling)
    controller = rolling.json("cluster", "health")["controller_id"]
    with connect(at) as client, Experiment(at, settings, tmp_path) as experiment, least_in_sync(at, "orders") as least:
        experiment.wait_writes(50, timeout_s=within(30))
        result = rolling(*RESTART, "-o", "json", timeout=_SECONDS)
        assert result.code == 0, str(result)
        experiment.wait_writes(50, timeout_s=within(60))
        experiment.wait_recovered(timeout_s=within(60))
        verdict = experiment.finish(client, timeout_s=within(60))
    found = verdict.findings
    assert verdict.ok, verdict
    assert (found.failed, found.indeterminate) == (0, 0)
    assert found.acked > 300
    assert least[0] == 2  # one at a time is away, and never two
    assert changed(before, pids(rolling)) == set(BROKERS)
    value = json.loads(result.out)
    assert (value["outcome"], value["resumed"], value["not_elected"], value["unprotected"]) == ("done", False, [], [])
    assert [row["result"] for row in value["brokers"]] == ["restarted"] * 3
    for row in value["brokers"]:
        assert 0 < row["stop_ms"] + row["start_ms"] <= row["in_sync_ms"], row
        assert 0 < row["longest_under_replicated_ms"] <= row["in_sync_ms"] + 5000, row
    journal = [json.loads(line) for line in Path(value["journal"]).read_text().splitlines()]
    assert [entry["broker"] for entry in journal if entry["step"] == "stop"][-1] == controller
    assert rolling.json("leader", "status")["not_preferred"] == []


def test_what_cannot_be_protected_is_said_before(rolling: Kctl) -> None:
    rolling.ok("topic", "create", "alone", "--partitions", "1", "--replication-factor", "1")
    try:
        before = pids(rolling)
        plan = json.loads(rolling.ok(*RESTART, "--dry-run", "-o", "json").out)
        assert [(row["topic"], row["replication_factor"]) for row in plan["unprotected"]] == [("alone", 1)]
        assert sorted(row["broker"] for row in plan["brokers"]) == [1, 2, 3]
        assert plan["brokers"][-1]["is_controller"]
        assert plan["blockers"] == []
        refused = rolling("cluster", "restart", NAME, "--rolling")
        assert refused.code == 4, str(refused)
        assert "alone is not protected" in refused.err
        assert pids(rolling) == before
    finally:
        rolling.ok("topic", "delete", "alone", "--yes")


def test_a_broker_that_may_not_go_stays(rolling: Kctl) -> None:
    """Broker 2 is dead: without another one min.insync.replicas would not hold."""
    rolling.ok("cluster", "kill", NAME, "2", "--yes")
    eventually(
        lambda: len(rolling.json("broker", "list")) == 2, seconds=within(60), what="broker 2 is noticed to be gone"
    )
    before = pids(rolling)
    result = restart(rolling, "--brokers", "1")
    assert result.code == 4, str(result)
    assert "no broker is taken down now" in result.err
    assert "min.insync.replicas is 2" in result.err
    assert pids(rolling) == before
    assert not unfinished(rolling)
    value = restarted(rolling, "--brokers", "1,2")  # one of those that are asked for: it is started first
    assert [row["result"] for row in value["brokers"]] == ["restarted"] * 2
    assert changed(before, pids(rolling)) == {"broker-1", "broker-2"}


AFTER_AN_ACT = (Step.STOPPED, Step.STARTED, Step.IN_SYNC, Step.ELECTED)
POINTS = [("after", step) for step in Step if step is not Step.RESUME] + [("before", step) for step in AFTER_AN_ACT]


@pytest.mark.parametrize(("moment", "step"), POINTS, ids=lambda value: str(getattr(value, "value", value)))
def test_kctl_killed_at_each_step(moment: str, step: Step, rolling: Kctl) -> None:
    """kill -9 of kctl there, and the same command again ends it; a broker that it left down comes first."""
    before = pids(rolling)
    node = str(1 + POINTS.index((moment, step)) % 3)
    only = ("--brokers", node)
    killed = driven(rolling, moment, step, *RESTART, *QUICK, *only)
    assert killed.code == -signal.SIGKILL, str(killed)
    assert len(pids(rolling)) >= 2
    if step is Step.END:
        assert not unfinished(rolling)
        assert changed(before, pids(rolling)) == {f"broker-{node}"}
        return
    if step is Step.STOP:  # and once more when it goes on
        again = driven(rolling, "after", Step.RESUME, *RESTART, *QUICK, *only)
        assert again.code == -signal.SIGKILL, str(again)
    value = restarted(rolling, *only)
    assert (value["outcome"], value["resumed"]) == ("done", True)
    assert changed(before, pids(rolling)) == {f"broker-{node}"}
    assert not unfinished(rolling)


def driven(kctl: Kctl, moment: str, step: Step, *args: str) -> Result:
    """kctl, killed right before or after it writes the first entry of this step."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(_KILLED), moment, step.value, *args],
        input="", env=kctl.environment, capture_output=True, text=True, timeout=_SECONDS, check=False,
    )  # fmt: skip
    return Result(args, done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def test_a_broker_that_cannot_start_ends_it_there(rolling: Kctl) -> None:
    """Its config file was edited badly; the brokers after it are not touched, and mended it goes on."""
    (config,) = (clusters_dir(rolling) / NAME).glob("broker-2/*.properties")
    good = config.read_text()
    before = pids(rolling)
    config.write_text(good + "\nreplica.fetch.wait.max.ms=40000\n")
    try:
        result = restart(rolling)
        assert result.code == 5, str(result)
        assert "broker-2 of cluster roll did not start" in result.err
        assert "replica.fetch.wait.max.ms" in result.err  # the end of its log
        assert "broker 2 is in its start, and down now" in result.err
        assert "the same command again goes on" in result.err
        there = pids(rolling)
        assert "broker-2" not in there
        assert len(there) == 2
        other = restart(rolling, "--brokers", "3")
        assert other.code == 4, str(other)
        assert "has not ended" in other.err
    finally:
        config.write_text(good)
    value = restarted(rolling)
    assert (value["outcome"], value["resumed"]) == ("done", True)
    assert changed(before, pids(rolling)) == set(BROKERS)


def test_ctrl_c_says_where_it_stands(rolling: Kctl) -> None:
    before = pids(rolling)
    process = subprocess.Popen(
        [str(SCRIPT), *RESTART, *QUICK], env=rolling.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        eventually(lambda: pids(rolling) != before, seconds=within(60), what="a broker is taken down")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=within(120))
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "broker 1 is" in err or "broker 2 is" in err
    assert "not restarted: " in err
    assert "the same command again goes on" in err
    value = restarted(rolling)
    assert value["resumed"]
    assert changed(before, pids(rolling)) == set(BROKERS)


def test_hooks_restart_the_cluster_of_the_context(rolling: Kctl, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks.yaml"
    hooks.write_text(
        f'stop: [{SCRIPT}, cluster, stop, {NAME}, --node, "{{id}}", --yes]\n'
        f'start: [{SCRIPT}, cluster, start, {NAME}, --node, "broker-{{id}}"]\n'
        "timeout: 3m\n"
    )
    before = pids(rolling)
    argv = ("cluster", "restart", "--rolling", "--hooks", str(hooks), "--context", NAME, "--yes", *QUICK)
    value = rolling.json(*argv, timeout=_SECONDS)
    assert (value["outcome"], [row["result"] for row in value["brokers"]]) == ("done", ["restarted"] * 3)
    assert changed(before, pids(rolling)) == set(BROKERS)
    hooks.write_text(f'stop: [{SCRIPT}, cluster, stop, {NAME}, --node, "{{id}}", --yes]\nstart: ["false"]\n')
    before = pids(rolling)
    failed = rolling(*argv, timeout=_SECONDS)
    assert failed.code == 5, str(failed)
    assert "(false) ended with exit code 1" in failed.err
    assert len(pids(rolling)) == 2
    forgotten = json.loads(rolling.ok(*RESTART, "--abandon", "-o", "json").out)
    assert forgotten["result"] == "forgotten"
    assert not unfinished(rolling)
