"""kctl topic reassign on the cluster that other tests use: cheap moves there and back, and what the commands say."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from kctl.reassign.run.steps import RunStep
from reassign_testing import Arena

RESULT = [
    "outcome", "kind", "cluster", "partition_count", "reached", "in_flight", "as_before", "elsewhere", "taken_back",
    "moves", "bytes", "failures", "not_elected", "brokers_left", "throttles_left", "remarks", "began_at", "ended_at",
    "journal",
]  # fmt: skip
PREVIEW = [
    "kind", "cluster", "partition_count", "reached", "moves", "bytes", "unknown_sizes", "reorders",
    "removed_replicas", "batches", "throttle_bytes", "duration_ms", "remove_brokers",
]  # fmt: skip
RUN = [
    "kind", "state", "alive", "pid", "journal", "source", "began_at", "last_at", "batches", "batches_done",
    "partition_count", "reached", "in_flight", "as_before", "elsewhere", "throttle_bytes", "throttle",
    "throttle_changes", "throttles_left",
]  # fmt: skip
VERIFICATION = [
    "complete", "partition_count", "reached", "in_flight", "as_before", "elsewhere", "failures", "throttles_left",
    "brokers_left",
]  # fmt: skip


def test_there_and_back(small_arena: Arena) -> None:
    throttle = ["--throttle", "50MB/s"]
    arena, kctl = small_arena, small_arena.kctl
    topic = arena.make_topic("orders", [[1], [2]], size=100_000)
    plan = arena.write_plan({(topic, 0): [1, 2], (topic, 1): [3]})
    before = arena.snapshot(topic)
    known = arena.checksums(topic)

    shown = kctl.json("topic", "reassign", "apply", plan, "--dry-run", *throttle)
    assert list(shown) == PREVIEW
    assert (shown["partition_count"], shown["moves"], shown["reorders"], shown["batches"]) == (2, 2, 0, 1)
    assert shown["bytes"] > 200_000
    assert arena.snapshot(topic) == before

    done = kctl.json("topic", "reassign", "apply", plan, "--yes", "--max-concurrent-moves", "1", *throttle)
    assert list(done) == RESULT
    assert (done["outcome"], done["kind"], done["reached"], done["moves"]) == ("completed", "apply", 2, 2)
    assert (done["failures"], done["not_elected"], done["brokers_left"], done["remarks"]) == ([], {}, [], [])
    assert arena.replicas(topic) == {0: (1, 2), 1: (3,)}
    assert arena.leaders(topic) == {0: 1, 1: 3}
    assert arena.configs() == before["configs"]
    steps = [json.loads(line)["step"] for line in Path(done["journal"]).read_text().splitlines()]
    assert steps == [
        RunStep.BEGIN, RunStep.THROTTLE_SET, RunStep.THROTTLE_DONE,
        RunStep.BATCH_START, RunStep.BATCH_DONE, RunStep.BATCH_START,
        RunStep.BATCH_DONE, RunStep.THROTTLE_RESTORE, RunStep.THROTTLE_RESTORED,
        RunStep.ELECT_START, RunStep.ELECT_DONE, RunStep.END,
    ]  # fmt: skip

    assert list(kctl.json("topic", "reassign", "verify", plan)) == VERIFICATION
    status = kctl.json("topic", "reassign", "status")
    assert list(status) == [
        "cluster", "cluster_id", "run", "moving", "todo", "throttles", "throttles_unread", "down",
    ]  # fmt: skip
    assert (status["throttles_unread"], status["down"]) == ({}, [])
    assert list(status["run"]) == RUN
    assert (status["run"]["state"], status["run"]["alive"], status["moving"]) == ("completed", False, [])
    again = kctl.ok("topic", "reassign", "apply", plan, "--yes")
    assert "nothing to do" in again.err

    back = kctl.json("topic", "reassign", "rollback", "--yes", *throttle)
    assert (back["outcome"], back["kind"], back["reached"], back["moves"]) == ("completed", "rollback", 2, 1)
    assert arena.snapshot(topic) == before
    twice = arena.reassign("rollback")
    assert twice.code == 4, str(twice)
    assert "the last run was itself a rollback" in twice.err
    assert arena.checksums(topic) == known
    kctl.ok("topic", "reassign", "verify")
    assert kctl("topic", "reassign", "verify", plan).code == 1


def test_leaders_only(small_arena: Arena) -> None:
    """Another order copies nothing, and moves the leaders; `--no-elect` leaves them."""
    arena = small_arena
    topic = arena.make_topic("orders", [[1, 2], [2, 3]])
    plan = arena.write_plan({(topic, 0): [2, 1], (topic, 1): [3, 2]})
    done = arena.kctl.json("topic", "reassign", "apply", plan, "--yes", "--no-elect")
    assert (done["outcome"], done["moves"], done["bytes"]) == ("completed", 0, 0)
    assert arena.replicas(topic) == {0: (2, 1), 1: (3, 2)}
    assert arena.leaders(topic) == {0: 1, 1: 2}
    arena.kctl.ok("topic", "reassign", "rollback", plan, "--yes", "--no-elect")
    arena.kctl.ok("topic", "reassign", "apply", plan, "--yes")
    assert arena.leaders(topic) == {0: 2, 1: 3}


def test_what_the_plan_warned_of_is_said_before_it_is_asked_for(small_arena: Arena) -> None:
    arena = small_arena
    topic = arena.make_topic("orders", [[1]])
    plan = arena.write_plan({(topic, 0): [2]}, warnings=["one of \x1b[31mthese"], unmet=["a limit"], complete=False)
    refused = arena.kctl("topic", "reassign", "apply", plan)
    assert refused.code == 4, str(refused)
    lines = refused.err.splitlines()
    for said in ("warning: plan: one of \\x1b[31mthese", "warning: plan: a limit"):
        assert said in lines, str(refused)
    assert arena.replicas(topic) == {0: (1,)}


def test_stopped_looked_at_and_cancelled(small_arena: Arena) -> None:
    """A move that is slow enough to be met in the middle: another apply, status, pause, cancel."""
    arena, kctl = small_arena, small_arena.kctl
    topic = arena.make_topic("orders", [[1]], size=6_000_000)
    before = arena.snapshot(topic)
    plan = arena.write_plan({(topic, 0): [3, 1]})
    with arena.running("apply", plan, "--throttle", "100kB/s") as process:
        arena.wait_moving(topic)
        refused = arena.reassign("apply", plan)
        assert refused.code == 4, str(refused)
        assert "is running (pid " in refused.err
        status = kctl.json("topic", "reassign", "status")
        assert (status["run"]["state"], status["run"]["pid"]) == ("running", process.pid)
        (row,) = status["moving"]
        assert (row["topic"], row["replicas"], row["adding"], row["ours"]) == (topic, [3, 1], [3], True)
        assert 0 <= row["copied_bytes"] < row["size_bytes"]
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "1 partition is in flight (batch 1 of 1), and the brokers continue to copy" in err
    assert "the throttle of 100 kB/s is on" in err
    status = kctl.json("topic", "reassign", "status")
    assert (status["run"]["state"], status["run"]["throttle_bytes"]) == ("stopped", 100_000)
    assert "resume" in status["todo"]
    assert kctl("topic", "reassign", "cancel").code == 4, "nobody said yes"
    told = kctl.ok("topic", "reassign", "cancel", "--dry-run").err
    assert "resume" in told
    assert "1 partition in flight returns, 0 that were moved stay" in told
    told = kctl.ok("topic", "reassign", "resume", "--throttle", "5MB/s", "--dry-run").err
    assert "1 replica (6 MB) in 1 of 1 batch left, at 5 MB/s per broker" in told
    assert arena.moving()

    paused = json.loads(arena.reassign("pause", "--now", "-o", "json").out)
    assert (paused["outcome"], paused["taken_back"], paused["as_before"]) == ("paused", 1, 1)
    assert arena.snapshot(topic) == before
    done = json.loads(arena.reassign("cancel", "-o", "json").out)
    assert (done["outcome"], done["as_before"], done["failures"]) == ("cancelled", 1, [])
    assert arena.snapshot(topic) == before
    assert arena.reassign("cancel").code == 4, "there is nothing to cancel any more"


def test_a_protected_cluster_asks_for_its_name(small_arena: Arena) -> None:
    arena = small_arena
    topic = arena.make_topic("orders", [[1]])
    plan = arena.write_plan({(topic, 0): [2]})
    arena.kctl.ok("context", "add", "guarded", "--bootstrap-server", arena.bootstrap, "--protected")
    try:
        refused = arena.kctl("topic", "reassign", "apply", plan, "--yes", "--context", "guarded")
        assert refused.code == 4, str(refused)
        arena.kctl.ok(
            "topic", "reassign", "apply", plan, "--context", "guarded", "--confirm-cluster", "guarded", "--yes"
        )
    finally:
        arena.kctl.ok("context", "remove", "guarded", "--yes")
    assert arena.replicas(topic) == {0: (2,)}


@pytest.mark.parametrize(
    "args",
    [
        ["apply", "none.json"],
        ["apply", "-", "--throttle", "fast"],
        ["apply", "-", "--throttle", "0"],
        ["apply", "-", "--stall-after", "soon"],
        ["resume", "--throttle", "slow"],
        ["resume"], ["pause"], ["cancel"], ["rollback"], ["verify"],
    ],
)  # fmt: skip
def test_nothing_there(small_arena: Arena, args: list[str]) -> None:
    """Options that cannot be right, and commands that find no run."""
    done = small_arena.reassign(*args)
    assert done.code in {2, 4}, str(done)
    assert done.err.startswith("error: ")
    assert small_arena.journals() == []
