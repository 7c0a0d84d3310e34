"""What holds of every playbook that comes with kctl: described, no problem, with a runbook and a run in tests."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kctl.errors import NotFound, OperationFailed
from kctl.playbook.load import load_playbook
from kctl.playbook.model import Playbook
from kctl.playbook.operations import OperationResult
from kctl.playbook.parameters import collect
from kctl.playbook.run.selection import selection
from kctl.playbook.shipped import shipped
from playbook_runs import World, messages, run

ROOT = Path(__file__).resolve().parents[3]
NAMES = [found.path.stem for found in shipped()]
RUNS = (ROOT / "tests" / "integration" / "playbook" / "shipped" / "test_shipped.py").read_text()
HEADINGS = ("Before", "What it does", "When it fails", "Go back")


def _playbook(name: str) -> Playbook:
    return load_playbook(name)  # raises for what lint would say


def _runbook(name: str) -> str:
    return (ROOT / "docs" / "runbooks" / f"{name}.md").read_text()


def test_there_are_all_that_were_promised() -> None:
    assert NAMES == [
        "change-retention", "consumer-lag-gate", "decommission-broker", "expand-cluster", "nightly-health-report",
        "preferred-leader-rebalance", "reliability-validation", "reset-group-by-time", "rolling-restart",
        "set-up-cluster", "topic-audit",
    ]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_is(name: str) -> None:
    playbook = _playbook(name)
    assert playbook.name == name
    assert len(playbook.description) > 80
    assert [each.name for each in playbook.parameters if not each.description.endswith(".")] == []
    assert [each.id for each in playbook.all_steps() if each.name == each.kind] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_is_run_by_a_test(name: str) -> None:
    assert f'"{name}"' in RUNS


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_runbook(name: str) -> None:
    text = _runbook(name)
    assert [heading for heading in HEADINGS if f"\n## {heading}\n" not in text] == []
    pages = (ROOT / "docs" / "playbooks.md").read_text()
    assert f"(runbooks/{name}.md)" in pages


@pytest.mark.parametrize("name", NAMES)
def test_the_steps_of_a_runbook_are_those_of_its_playbook(name: str) -> None:
    known = {each.id for each in _playbook(name).all_steps()}
    table = _runbook(name).partition("## When it fails")[2].partition("## Go back")[0]
    cells = re.findall(r"^\| (`[^|]*`) \| \d", table, re.MULTILINE)
    assert {step for cell in cells for step in re.findall(r"`([^`]+)`", cell)} <= known


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_of_a_runbook_fit_the_playbook(name: str) -> None:
    """Parameters that it has, with values that they can have; every required one is given."""
    commands = [line for line in _runbook(name).splitlines() if line.startswith("kctl playbook run ")]
    assert commands
    for line in commands:
        words = shlex.split(line)
        playbook = _playbook(words[3])
        given = [words[at + 1] for at, word in enumerate(words) if word == "-p"]
        collect(playbook, given, environment={})
        selection(playbook, None, [])


def test_a_rolling_restart_that_failed_is_reached_again_with_a_broker_down() -> None:
    """`cluster.restart` starts what is down, and gates by itself: nothing before it may want a healthy cluster."""
    steps = _playbook("rolling-restart").steps
    before = steps[: [step.id for step in steps].index("restart")]
    assert [step.kind for step in before] == ["assert", "cluster.restart", "assert", "leader.status"]
    assert before[1].dry_run


def test_the_lag_gate_waits_for_a_broker_that_is_silent_for_a_moment() -> None:
    row = {"group": "g", "state": "Stable", "lag": 0, "lost": 0, "not_committed": 0, "unknown": 0}
    away = OperationResult(5, None, OperationFailed("no offsets of orders-2"))
    world = World(answers={"lag.check": [away, away, OperationResult(0, [row])]})
    ending = run((ROOT / "playbooks" / "consumer-lag-gate.yaml").read_text(), world, "groups=g")
    assert (ending.exit_code, world.slept) == (0, [10])
    assert messages(ending)["summary"] == "g (Stable): lag was ?, now 0"
    world = World(answers={"lag.check": OperationResult(4, None, NotFound("unknown group g"))})
    assert run((ROOT / "playbooks" / "consumer-lag-gate.yaml").read_text(), world, "groups=g").exit_code == 4
    assert world.slept == []
