"""Rolling restarts of a real cluster of three brokers: under load, killed at each step, blocked, with a broken broker.

Each restart of a broker costs 7 s on a quiet machine, so a test restarts one where one tells all; the orders of events
are those of tests/unit/restart/test_run.py, and the restart of all three under load is here.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster_testing import clusters_dir, nothing_left_running, processes_of
from kctl.errors import KctlError
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.restart.steps import RestartStep as Step
from kctl.validate.experiment import Experiment
from kctl.validate.workload.records import new_run
from kctl.validate.workload.settings import ProducerSettings
from kctl_forks import KILLED_AT
from kctl_testing import SCRIPT, Kctl, Result, eventually, within

NAME = "roll"
BROKERS = ("broker-1", "broker-2", "broker-3")
RESTART = ("cluster", "restart", NAME, "--rolling", "--yes")
QUICK = ("--stable-checks", "2", "--stable-interval", "200ms", "--broker-timeout", "3m")
_SECONDS = 400.0


@pytest.fixture(scope="module")
def rolling(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Iterator[Kctl]:
    """A kctl with a cluster of its own, which has a topic that can be protected."""
    kctl = Kctl(tmp_path_factory.mktemp("rolling"), shared)
    with nothing_left_running(kctl):
        kctl.ok(
            "cluster", "create", NAME, "--use", "--layout", "pseudo-distributed", "--heap", "200m",
            "--config", "min.insync.replicas=2", "--config", "default.replication.factor=3", timeout=_SECONDS,
        )  # fmt: skip
        kctl.ok("topic", "create", "orders", "--partitions", "6", "--replication-factor", "3")
        yield kctl


@pytest.fixture(autouse=True)
def _all_up(rolling: Kctl) -> None:
    """Whatever the test before left, and brokers that stop have somewhere to lead to."""
    rolling(*RESTART, "--abandon", timeout=60)
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
    """Is there a run to go on with?"""
    return kctl(*RESTART, "--abandon", "--dry-run", timeout=60).code == 0


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
        result = rolling(*RESTART, *QUICK, "-o", "json", timeout=_SECONDS)
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
        assert [row["is_controller"] for row in plan["brokers"]] == [False, False, True]
        assert (plan["blockers"], plan["left_down"]) == ([], [])
        refused = rolling("cluster", "restart", NAME, "--rolling")
        assert refused.code == 4, str(refused)
        assert "alone is not protected: 1 partition with 1 replica" in refused.err
        assert not unfinished(rolling)
        table = rolling.ok(*RESTART, "--dry-run").out
        assert table.startswith("NOT PROTECTED")
        assert max(map(len, table.splitlines())) <= 80
        assert pids(rolling) == before
    finally:
        rolling.ok("topic", "delete", "alone", "--yes")


def test_a_broker_that_may_not_go_stays(rolling: Kctl) -> None:
    """Without ZooKeeper, and without broker 2: nothing is done, and it is told why. Then broker 2 is started first."""
    before = pids(rolling)
    rolling.ok("cluster", "kill", NAME, "zookeeper-1", "--yes")
    result = restart(rolling, "--brokers", "1", "--timeout", "1s")
    assert result.code == 4, str(result)
    assert "no broker can be stopped now: a stopped broker could not start without ZooKeeper" in result.err
    rolling.ok("cluster", "start", NAME, timeout=_SECONDS)
    rolling.ok("cluster", "kill", NAME, "2", "--yes")
    with connect(target(rolling)) as client:
        eventually(
            lambda: 2 not in client.metadata(()).brokers, seconds=within(60), what="broker 2 is noticed to be gone"
        )
    result = restart(rolling, "--brokers", "1", "--timeout", "1s")
    assert result.code == 4, str(result)
    assert "no broker can be stopped now: orders-0 has " in result.err
    assert "in sync: 1 would be left, and min.insync.replicas is 2" in result.err
    assert "broker 2 hosts replicas and is down, but is not part of this restart" in result.err
    assert {**before, **pids(rolling)} == before
    assert not unfinished(rolling)
    value = restarted(rolling, "--brokers", "2", "--no-election")  # of those that are asked for: it is started
    assert [row["result"] for row in value["brokers"]] == ["restarted"]
    assert value["elected"] is None
    assert changed(before, pids(rolling)) == {"broker-2"}


# Every entry of the journal of one broker, in the order in which the runs that follow each other come to it; `stop` is
# written once more after its broker was found to be there, and `elect` after each death until the end is written.
CHAIN = [(moment, step) for step in Step for moment in ("before", "after") if (moment, step) != ("after", Step.END)]


def test_kctl_killed_at_every_entry_of_one_restart(rolling: Kctl) -> None:
    """kill -9 of kctl at one entry after the other; each time the same command goes on, and the broker is restarted
    once."""
    before = pids(rolling)
    node = rolling.json("cluster", "health")["controller_id"]
    only = ("--brokers", str(node))
    seen: list[int | None] = []
    for moment, step in CHAIN:
        killed = driven(rolling, moment, step, *RESTART, *QUICK, *only)
        assert killed.code == -signal.SIGKILL, f"{moment} {step}: {killed}"
        seen.append(pids(rolling).get(f"broker-{node}"))
    value = restarted(rolling, *only)
    after = pids(rolling)
    assert (value["outcome"], value["resumed"]) == ("done", True)
    assert changed(before, after) == {f"broker-{node}"}
    assert set(seen) <= {before[f"broker-{node}"], None, after[f"broker-{node}"]}  # there never was a third process
    assert rolling.json("leader", "status")["not_preferred"] == []
    assert not unfinished(rolling)


def driven(kctl: Kctl, moment: str, step: Step, *args: str) -> Result:
    """kctl, killed right before or after it writes the first entry of this step."""
    return kctl(*args, env={KILLED_AT: f"{moment},{step.value},1"}, timeout=_SECONDS)


def test_a_broker_that_cannot_start_ends_it_there(rolling: Kctl) -> None:
    """Its config file was edited badly; the broker after it is not touched, and mended it goes on."""
    (config,) = (clusters_dir(rolling) / NAME).glob("broker-2/server.properties")
    good = config.read_text()
    before = pids(rolling)
    config.write_text(good + "\nreplica.fetch.wait.max.ms=40000\n")
    try:
        result = restart(rolling, "--brokers", "2")
        assert result.code == 5, str(result)
        assert "broker-2 of cluster roll did not start" in result.err
        assert "replica.fetch.wait.max.ms" in result.err  # the end of its log
        assert "broker 2 was being started and is down now" in result.err
        assert "run the same command again to resume" in result.err
        assert pids(rolling).keys() == {"broker-1", "broker-3"}
        other = restart(rolling, "--brokers", "3")
        assert other.code == 4, str(other)
        assert "an unfinished rolling restart" in other.err
    finally:
        config.write_text(good)
    value = restarted(rolling)
    assert (value["outcome"], value["resumed"]) == ("done", True)
    assert changed(before, pids(rolling)) == {"broker-2"}


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
    assert "broker 1 was" in err or "broker 2 was" in err
    assert "not restarted: " in err
    assert "run the same command again to resume" in err
    forgotten = json.loads(rolling.ok(*RESTART, "--abandon", "-o", "json").out)
    assert (forgotten["cluster"], forgotten["result"]) == (NAME, "forgotten")
    assert not unfinished(rolling)


def test_a_playbook_restarts_by_hooks_and_goes_on(rolling: Kctl, tmp_path: Path) -> None:
    """For any cluster: here the commands are kctl's own. The start fails at first, in the shipped playbook as well;
    resumed, it goes on there."""
    hooks, book = tmp_path / "hooks.yaml", tmp_path / "restart.yaml"
    stop = f'stop: [{SCRIPT}, cluster, stop, {NAME}, --node, "{{id}}", --yes]\n'
    hooks.write_text(f'{stop}start: ["false"]\n')
    book.write_text(
        "playbook: 1\nname: restart\ndescription: One broker.\nsteps:\n  - name: Restart\n    cluster.restart:\n"
        f"      rolling: true\n      hooks: {hooks}\n      brokers: ['3']\n      stable_checks: 2\n"
        "      stable_interval: 200ms\n"
    )
    before = pids(rolling)
    checked = rolling.json("playbook", "run", str(book), "--context", NAME, "--check", timeout=_SECONDS)
    assert [step["state"] for step in checked["steps"]] == ["would change"]
    failed = rolling("playbook", "run", str(book), "--context", NAME, "--yes", timeout=_SECONDS)
    assert failed.code == 5, str(failed)
    assert "(false) failed with exit code 1" in failed.err
    assert pids(rolling).keys() == {"broker-1", "broker-2"}
    again = rolling(
        "playbook", "run", "rolling-restart", "-p", f"hooks={hooks}", "-p", "brokers=3", "--context", NAME, "--yes",
        timeout=_SECONDS,
    )  # fmt: skip
    assert again.code == 5, str(again)  # the shipped one comes to the restart, though a broker is down
    assert "(false) failed with exit code 1" in again.err
    hooks.write_text(f'{stop}start: [{SCRIPT}, cluster, start, {NAME}, --node, "broker-{{id}}"]\ntimeout: 3m\n')
    value = rolling.json("playbook", "resume", "--yes", timeout=_SECONDS)  # the newest run
    assert (value["playbook"], value["status"]) == ("rolling-restart", "changed")
    assert [step["state"] for step in value["steps"] if step["step"] == "restart"] == ["changed"]
    assert changed(before, pids(rolling)) == {"broker-3"}
    assert not unfinished(rolling)
