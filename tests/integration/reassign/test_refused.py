"""Plans that must not be carried out: refused with the reason for each entry, and nothing has changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kctl_testing import Result, eventually
from reassign_testing import Arena

REFUSED, USAGE = 4, 2


def _refused(arena: Arena, plan: str, code: int, *said: str, args: Sequence[str] = ()) -> Result:
    """`apply` refuses, says all of `said`, leaves no journal to go on with and the cluster as it was."""
    before = arena.snapshot()
    done = arena.reassign("apply", plan, *args)
    assert done.code == code, str(done)
    assert arena.snapshot() == before
    for text in said:
        assert text in done.err, f"not said: {text}\n{done}"
    assert "Traceback" not in done.err
    assert arena.journals() == [], "there would be something to go on with"
    return done


@pytest.mark.long
def test_stale_plan(arena: Arena) -> None:
    topic = arena.make_topic("orders", [[1, 2], [2, 3]])
    plan = arena.write_plan({(topic, 0): [1, 3], (topic, 1): [2, 4]})
    arena.alter({(topic, 1): [2, 1]})
    arena.wait_until(lambda: arena.replicas(topic)[1] == (2, 1) and not arena.moving(), what="it was moved")
    _refused(arena, plan, REFUSED, f"{topic}-1")


@pytest.mark.long
@pytest.mark.parametrize("inside", [True, False], ids=["of the plan", "of another topic"])
def test_foreign_reassignment(arena: Arena, inside: bool) -> None:
    topic = arena.make_topic("orders", [[1, 2], [2, 3]], size=600_000)
    other = arena.make_topic("other", [[1, 2]], size=600_000)
    plan = arena.write_plan({(topic, 0): [1, 3]})
    moved = topic if inside else other
    arena.throttle(moved, 20_000, giver=1, receiver=3)
    arena.alter({(moved, 0): [1, 3]})
    arena.wait_moving(moved)
    _refused(arena, plan, REFUSED, f"{moved}-0: it is already being moved")


@pytest.mark.long
def test_topics_that_changed(arena: Arena) -> None:
    """Deleted; made again under the same name; with more partitions than the plan was made for."""
    gone, again, grown = (arena.make_topic(name, [[1, 2], [2, 3]]) for name in ("gone", "again", "grown"))
    kept = arena.make_topic("kept", [[1, 2]])
    _, plan = arena.plan("--remove-broker", "2")
    arena.delete_topic(gone)
    arena.delete_topic(again)
    arena.make_topic("", [[1, 2], [2, 3]], named=again)
    arena.add_partitions(grown, 3)
    done = _refused(arena, plan, REFUSED, gone, again, grown)
    assert f"{kept}-0" not in done.err, "nothing is wrong with it"


@pytest.mark.long
def test_broker_down(arena: Arena) -> None:
    """A dead broker can receive nothing, and what has it as a replica is under-replicated."""
    (dead,) = sorted({1, 2, 3} - {arena.controller()})[:1]
    one, two = sorted({1, 2, 3} - {dead})
    target = arena.make_topic("target", [[one, two]])
    source = arena.make_topic("source", [[one, dead], [two, one]])
    plans = [
        (arena.write_plan({(target, 0): [one, dead]}), [f"{target}-0", f"broker {dead}"]),
        (arena.write_plan({(source, 0): [4, dead], (source, 1): [two, 4]}), [f"{source}-0"]),
    ]
    arena.kill(str(dead))
    arena.wait_until(lambda: dead not in arena.registered(), what="its session has expired")
    arena.wait_until(lambda: dead not in arena.state(source, 0)["isr"], what="it is out of sync")
    for plan, said in plans:
        _refused(arena, plan, REFUSED, *said)
    # A replica that leaves the dead broker is what a plan is there for.
    done = arena.reassign("apply", arena.write_plan({(source, 0): [one, 4]}))
    assert done.code == 0, str(done)
    assert arena.replicas(source)[0] == (one, 4)


@pytest.mark.long
def test_disk_too_full(arena: Arena) -> None:
    """The free space is doctored (kctl_full_disks): no disk can be filled on demand."""
    topic = arena.make_topic("orders", [[1, 2], [2, 3]], size=600_000)
    plan = arena.write_plan({(topic, 0): [1, 4], (topic, 1): [2, 1]})
    before = arena.snapshot()
    done = arena.with_full_disks("apply", plan)
    assert done.code == REFUSED, str(done)
    for broker in (1, 4):
        assert f"broker {broker}: " in done.err, str(done)
    assert "free" in done.err
    assert (arena.snapshot(), arena.journals()) == (before, [])
    shrinking = arena.with_full_disks("apply", arena.write_plan({(topic, 0): [2]}))
    assert shrinking.code == 0, f"what copies nothing needs no room\n{shrinking}"


def _table(topic: str) -> dict[str, tuple[str | bytes, int, list[str]]]:
    """Plans that are wrong in themselves: text, exit code, what is said."""
    good = {"topic": topic, "partition": 0, "replicas": [1, 2]}

    def plan(*rows: object, **more: object) -> str:
        return json.dumps({"version": 1, "partitions": list(rows), **more})

    def row(**changes: object) -> dict[str, object]:
        return {**good, **changes}

    return {
        "broken JSON": ('{"version": 1, "partitions": [', USAGE, ["JSON"]),
        "no JSON": (b"\x00\xff\xfe\x80", USAGE, ["JSON"]),
        "empty file": ("", USAGE, ["JSON"]),
        "another version": (json.dumps({"version": 7, "partitions": [good]}), USAGE, ["version"]),
        "no partitions": ('{"version": 1}', USAGE, ["partitions"]),
        "a list": ("[]", USAGE, ["plan"]),
        "deep": ("[" * 100_000, USAGE, ["plan.json"]),
        "key twice": ('{"version":1,"version":1,"partitions":[]}', USAGE, ["version"]),
        "two replicas on a broker": (plan(row(replicas=[1, 1])), USAGE, [f"{topic}-0"]),
        "no replicas": (plan(row(replicas=[])), USAGE, [f"{topic}-0", "empty"]),
        "negative broker": (plan(row(replicas=[-1])), USAGE, [f"{topic}-0", "-1"]),
        "partition twice": (plan(good, good), USAGE, [f"{topic}-0", "twice"]),
        "log dirs of another length": (plan(row(log_dirs=["any"])), USAGE, [f"{topic}-0", "log_dirs"]),
        "unknown broker": (plan(row(replicas=[1, 99])), REFUSED, [f"{topic}-0", "99"]),
        "unknown partition": (plan(row(partition=9)), REFUSED, [f"{topic}-9"]),
        "unknown topic": (plan(row(topic="no-such-topic")), REFUSED, ["no-such-topic"]),
        "impossible topic": (plan(row(topic="../etc")), USAGE, ["../etc"]),
        "terminal control": (plan(row(topic="\x1b[2J")), USAGE, ["u001b"]),
        "unknown log dir": (plan(row(log_dirs=["/nowhere", "any"])), REFUSED, [f"{topic}-0", "/nowhere"]),
        "another cluster's": (plan(good, cluster_id="AAAAAAAAAAAAAAAAAAAAAA"), REFUSED, ["cluster"]),
    }  # fmt: skip


@pytest.mark.long
def test_bad_plans(arena: Arena, subtests: pytest.Subtests) -> None:
    topic = arena.make_topic("orders", [[1, 3]])
    path = arena.work / "plan.json"
    for case, (content, code, said) in _table(topic).items():
        with subtests.test(case):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            _refused(arena, str(path), code, *said)


@pytest.mark.long
def test_four_bad_entries_of_five(arena: Arena) -> None:
    topic = arena.make_topic("orders", [[1, 3]] * 3)
    rows = [
        {"topic": topic, "partition": 0, "replicas": [1, 2]},
        {"topic": topic, "partition": 1, "replicas": [1, 99]},
        {"topic": topic, "partition": 7, "replicas": [1, 2]},
        {"topic": "no-such-topic", "partition": 0, "replicas": [1, 2]},
        {"topic": topic, "partition": 2, "replicas": [98, 1]},
    ]
    path = arena.work / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    done = _refused(arena, str(path), REFUSED, args=["-o", "json"])
    body = json.loads(done.err)
    problems: list[Any] = body["details"]["problems"] if "details" in body else body["problems"]
    texts = [json.dumps(problem) for problem in problems]
    assert len(texts) == 4
    for wanted in (f"{topic}-1", f"{topic}-7", "topic no-such-topic", f"{topic}-2"):
        assert sum(wanted in text for text in texts) == 1, texts


@pytest.mark.long
def test_changed_between_the_check_and_the_batch(arena: Arena) -> None:
    """A later batch is compared again before it is submitted: what changed meanwhile stops the run, and it says so."""
    topic = arena.make_topic("orders", [[1, 2], [1, 2]], size=600_000)
    configs = arena.configs()
    plan = arena.write_plan({(topic, 0): [1, 3], (topic, 1): [1, 3]})
    with arena.running("apply", plan, "--throttle", "200kB/s", "--max-concurrent-moves", "1") as process:
        arena.wait_moving(topic)
        arena.alter({(topic, 1): [1, 4]})
        arena.wait_until(lambda: arena.replicas(topic)[1] == (1, 4), what="somebody else's move has ended")
        _, err = process.communicate(timeout=30)
    assert process.returncode == 5, err
    assert f"{topic}-1" in err
    assert "kctl topic reassign cancel" in err
    assert arena.replicas(topic) == {0: (1, 3), 1: (1, 4)}
    done = arena.reassign("cancel")
    assert done.code == 0, str(done)
    assert arena.replicas(topic) == {0: (1, 3), 1: (1, 4)}, "cancel touches nothing of somebody else's"
    assert arena.configs() == configs


@pytest.mark.long
def test_not_confirmed_and_dry_run(arena: Arena) -> None:
    topic = arena.make_topic("orders", [[1, 2]])
    plan = arena.write_plan({(topic, 0): [1, 3]})
    before = arena.snapshot()
    assert arena.kctl("topic", "reassign", "apply", plan).code == 4
    shown = arena.kctl("topic", "reassign", "apply", plan, "--dry-run")
    assert shown.code == 0, str(shown)
    assert arena.snapshot() == before
    assert arena.journals() == []


@pytest.mark.long
def test_nothing_to_do(arena: Arena) -> None:
    topic = arena.make_topic("orders", [[1, 2]])
    plan = arena.write_plan({(topic, 0): [1, 2]})
    before = arena.snapshot()
    done = arena.reassign("apply", plan, "--throttle", "1MB/s")
    assert done.code == 0, str(done)
    assert "nothing" in done.err + done.out
    assert arena.snapshot() == before


def test_small_cluster_refuses(small_arena: Arena) -> None:
    """Several kinds of bad entries at once, each named, on the cluster that other tests use."""
    arena = small_arena
    topic = arena.make_topic("orders", [[1, 3], [2, 1]])
    rows = [
        {"topic": topic, "partition": 0, "replicas": [1, 2]},
        {"topic": topic, "partition": 1, "replicas": [2, 99]},
        {"topic": topic, "partition": 5, "replicas": [1, 2]},
    ]
    path = Path(arena.work) / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    before = arena.snapshot(topic)
    done = arena.reassign("apply", str(path))
    assert done.code == REFUSED, str(done)
    assert f"{topic}-1" in done.err
    assert "99" in done.err
    assert f"{topic}-5" in done.err
    eventually(lambda: arena.snapshot(topic) == before, seconds=1, what="nothing has changed")
