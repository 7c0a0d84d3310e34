"""kill -9 of kctl at each step that it writes to its journal, then `resume`: always the same end.

The steps come from the code, so that a new one is killed at as well.
"""

from __future__ import annotations

import signal
from typing import Any

import pytest

from kctl.reassign.run.steps import RunStep
from kctl_testing import Result
from reassign_testing import Arena

pytestmark = pytest.mark.long

BEFORE = [[1, 2], [2, 3], [3, 1]]
AFTER = [[4, 2], [2, 4], [3, 2]]
# What leads to a step when `apply` alone does not. Each begins after an apply that was killed while its batch moved.
AFTER_AN_APPLY = {
    "cancel_start": ["cancel"],
    "cancel_done": ["cancel"],
    "pause": ["pause", "--now"],
    "batch_cancel": ["pause", "--now"],
    "batch_cancelled": ["pause", "--now"],
    "resume": ["resume", "--throttle", "20MB/s"],
}


def _prepare(arena: Arena, *, size: int = 0) -> tuple[str, str, dict[str, Any]]:
    """A topic, a plan of two batches for it, and an operator's own throttles on both."""
    topic = arena.make_topic("orders", BEFORE, size=size)
    arena.set_configs("topics", topic, follower_replication_throttled_replicas="0:1,1:3")
    arena.set_configs("brokers", "2", follower_replication_throttled_rate="77000000")
    plan = arena.write_plan({(topic, number): ids for number, ids in enumerate(AFTER)})
    return topic, plan, arena.configs()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", [step.value for step in RunStep])
def test_killed_and_resumed(arena: Arena, step: str, moment: str) -> None:
    command = AFTER_AN_APPLY.get(step)
    topic, plan, configs = _prepare(arena, size=600_000 if command else 0)
    apply = [plan, "--max-concurrent-moves", "2", "--throttle"]
    if command:
        arena.abandoned(*apply, "50kB/s")
    died = arena.killed(moment, step, *(command or ["apply", *apply, "10MB/s"]))
    assert died.code == -signal.SIGKILL, f"the step {step} was not reached\n{died}"

    cancelled = command == ["cancel"] and (step, moment) != ("cancel_start", "before")
    done = arena.reassign("resume", *([] if cancelled else ["--throttle", "20MB/s"]))
    if (step, moment) == ("begin", "before"):
        _nothing_to_resume(done)
        assert arena.configs() == configs
        done = arena.reassign("apply", *apply, "10MB/s")
    if (step, moment) == ("end", "after"):
        _nothing_to_resume(done)
    else:
        assert done.code == 0, f"{died}\n{done}"
    assert arena.moving() == {}
    expected = BEFORE if cancelled else AFTER
    assert arena.replicas(topic) == {number: tuple(ids) for number, ids in enumerate(expected)}, f"{died}\n{done}"
    assert arena.leaders(topic) == {number: ids[0] for number, ids in enumerate(expected)}
    assert arena.configs() == configs
    _nothing_to_resume(arena.reassign("resume"))


def _nothing_to_resume(result: Result) -> None:
    assert result.code == 4, str(result)
    assert "Traceback" not in result.err


def test_killed_twice_then_resumed(arena: Arena) -> None:
    """Also the run that resumes may be killed."""
    topic, plan, configs = _prepare(arena)
    apply = ["apply", plan, "--throttle", "10MB/s", "--max-concurrent-moves", "1"]
    assert arena.killed("after", "throttle_set", *apply).code == -signal.SIGKILL
    assert arena.killed("after", "batch_start", "resume").code == -signal.SIGKILL
    assert arena.killed("before", "throttle_restored", "resume").code == -signal.SIGKILL
    done = arena.reassign("resume")
    assert done.code == 0, str(done)
    assert arena.replicas(topic) == {number: tuple(ids) for number, ids in enumerate(AFTER)}
    assert arena.configs() == configs


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(arena: Arena, number: signal.Signals) -> None:
    """Ctrl-C in a batch says what goes on and how to go on; the brokers finish, and `resume` ends it."""
    topic = arena.make_topic("orders", [[1, 2]], size=1_500_000)
    configs = arena.configs()
    plan = arena.write_plan({(topic, 0): [1, 4]})
    with arena.running("apply", plan, "--throttle", "400kB/s") as process:
        arena.wait_moving(topic)
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "kctl topic reassign resume" in err
    assert "kctl topic reassign cancel" in err
    assert arena.moving(), "the brokers go on"
    done = arena.reassign("resume", "--throttle", "50MB/s")
    assert done.code == 0, str(done)
    assert arena.replicas(topic) == {0: (1, 4)}
    assert arena.configs() == configs
