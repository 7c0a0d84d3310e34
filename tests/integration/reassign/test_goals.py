"""Each goal of a plan, carried out while records are written and read: reached, with no move too many, nothing lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from kctl_testing import eventually
from reassign_testing import Arena

MB = 1_000_000


def _carry_out(arena: Arena, live: str, still: str, *goal: str, apply: Sequence[str] = ()) -> dict[str, object]:
    """Plan and apply, with traffic on `live` and known data in `still`. The plan; all that every goal must keep."""
    known, configs = arena.checksums(still), arena.configs()
    plan, path = arena.plan(*goal)
    assert plan["moves"] == plan["lower_bound"], "a smaller plan would do"
    assert plan["leader_changes"] >= plan["leader_lower_bound"]
    traffic = arena.traffic(live)
    done = arena.reassign("apply", path, *apply)
    traffic.stop()
    assert done.code == 0, str(done)
    assert arena.moving() == {}
    for row in plan["partitions"]:
        assert arena.replicas(row["topic"])[row["partition"]] == tuple(row["replicas"])
    assert arena.checksums(still) == known
    assert arena.configs() == configs, "throttles are left behind"
    verified = arena.reassign("verify", path)
    assert verified.code == 0, str(verified)
    _java_agrees(arena, path, len(plan["partitions"]))
    return dict(plan)


def _java_agrees(arena: Arena, path: str, partitions: int) -> None:
    said = arena.java_verify(path)
    assert said.count("is completed.") >= partitions, said
    assert "in progress" not in said, said


@pytest.mark.long
def test_decommission(arena: Arena) -> None:
    # Of 12 replicas two are on broker 4; the other brokers hold 3, 3 and 4, so that these two moves make all even.
    layout = [[1, 2], [2, 3], [3, 1], [4, 2], [3, 4], [1, 3]]
    still, live = (arena.make_topic(name, layout, size=MB) for name in ("still", "live"))
    plan = _carry_out(arena, live, still, "--remove-broker", "4", apply=["--throttle", "2MB/s"])
    assert plan["moves"] == 4
    assert arena.brokers_holding(4) == []
    eventually(lambda: not any(b == 4 for b, _ in arena.log_dirs(still)), seconds=90, what="its disk is empty")
    counts = [len(arena.brokers_holding(broker)) for broker in (1, 2, 3)]
    assert counts == [8, 8, 8]


@pytest.mark.long
def test_decommission_is_not_finished_while_a_new_topic_is_there(arena: Arena) -> None:
    """A topic that was made meanwhile and landed on the broker: named, and exit 1."""
    topic = arena.make_topic("orders", [[1, 4]], size=600_000)
    _, path = arena.plan("--remove-broker", "4")
    with arena.running("apply", path, "--throttle", "200kB/s") as process:
        arena.wait_moving(topic)
        late = arena.make_topic("late", [[4, 2]])
        _, err = process.communicate(timeout=40)
    assert process.returncode == 1, err
    assert f"{late}-0" in err
    assert arena.brokers_holding(4) == [f"{late}-0"]
    verified = arena.reassign("verify", path)
    assert verified.code == 1, str(verified)
    assert f"{late}-0" in verified.err + verified.out


@pytest.mark.long
def test_add_broker(arena: Arena) -> None:
    layout = [[1, 2], [2, 3], [3, 1], [1, 2], [2, 3], [3, 1]]
    still, live = (arena.make_topic(name, layout, size=MB) for name in ("still", "live"))
    plan = _carry_out(arena, live, still, "--add-broker", "4", apply=["--throttle", "2MB/s"])
    assert plan["moves"] == 6  # 24 replicas over four brokers
    assert [len(arena.brokers_holding(broker)) for broker in (1, 2, 3, 4)] == [6, 6, 6, 6]
    for topic in (still, live):
        assert not any({1, 4} <= set(ids) for ids in arena.replicas(topic).values()), "two replicas in one rack"


@pytest.mark.long
def test_replication_factor_up_and_down(arena: Arena) -> None:
    layout = [[1, 2], [2, 3], [3, 4], [4, 2]]
    still, live = (arena.make_topic(name, layout, size=MB) for name in ("still", "live"))
    plan = _carry_out(arena, live, still, "--replication-factor", "3", apply=["--throttle", "2MB/s"])
    assert plan["moves"] == 8
    for topic in (still, live):
        assert {len(set(ids)) for ids in arena.replicas(topic).values()} == {3}
        eventually(lambda t=topic: arena.in_sync(t), what="all replicas are in sync")  # type: ignore[misc]

    plan = _carry_out(arena, live, still, "--replication-factor", "2")
    assert (plan["moves"], plan["bytes"]) == (0, 0)
    assert {len(set(ids)) for ids in arena.replicas(still).values()} == {2}


@pytest.mark.long
def test_fix_racks(arena: Arena) -> None:
    layout = [[1, 4], [4, 1], [2, 3], [1, 4]]  # 1 and 4 are in one rack
    still, live = (arena.make_topic(name, layout, size=MB) for name in ("still", "live"))
    plan = _carry_out(arena, live, still, "--fix-racks", "--topic", still, "--topic", live)
    assert plan["moves"] == 6
    for topic in (still, live):
        assert not any({1, 4} <= set(ids) for ids in arena.replicas(topic).values())


@pytest.mark.long
def test_leaders_only(arena: Arena) -> None:
    layout = [[1, 2], [1, 3], [1, 2], [1, 3], [2, 3], [1, 2]]
    still, live = (arena.make_topic(name, layout, size=MB) for name in ("still", "live"))
    plan = _carry_out(arena, live, still, "--leaders-only")
    assert (plan["moves"], plan["bytes"]) == (0, 0)
    assert plan["leader_changes"] == plan["leader_lower_bound"] == 6  # 10 of 12 on broker 1, and brokers 1–3 hold all
    led = [*arena.leaders(still).values(), *arena.leaders(live).values()]
    assert sorted(led.count(broker) for broker in (1, 2, 3)) == [4, 4, 4]
    for topic in (still, live):
        assert [set(ids) for ids in arena.replicas(topic).values()] == [set(ids) for ids in layout]


@pytest.mark.long
def test_no_elect_leaves_leaders(arena: Arena) -> None:
    topic = arena.make_topic("orders", [[1, 2], [1, 3]])
    plan = arena.write_plan({(topic, 0): [2, 1], (topic, 1): [3, 1]})
    done = arena.reassign("apply", plan, "--no-elect")
    assert done.code == 0, str(done)
    assert arena.replicas(topic) == {0: (2, 1), 1: (3, 1)}
    assert arena.leaders(topic) == {0: 1, 1: 1}


@pytest.mark.long
def test_log_dirs(arena: Arena) -> None:
    still, live = (arena.make_topic(name, [[1, 2], [1, 2]], size=2 * MB) for name in ("still", "live"))
    dirs = {broker: arena.broker_log_dirs(broker) for broker in (1, 2)}
    for broker in (1, 2):
        arena.place({(broker, topic, number): dirs[broker][0] for topic in (still, live) for number in (0, 1)})
    plan = _carry_out(arena, live, still, "--log-dirs", apply=["--throttle", "4MB/s"])
    assert plan["partitions"]
    for broker in (1, 2):
        held = [arena.log_dirs(topic)[broker, number] for topic in (still, live) for number in (0, 1)]
        assert sorted(held) == sorted([[dirs[broker][0]], [dirs[broker][0]], [dirs[broker][1]], [dirs[broker][1]]])


@pytest.mark.long
def test_plan_of_the_java_tool(arena: Arena) -> None:
    """A plan that Kafka's own tool generated, log dirs named by hand, is carried out; theirs takes ours."""
    topic = arena.make_topic("orders", [[1, 2], [2, 3]], size=MB)
    path = _java_plan(arena, topic)
    rows = json.loads(Path(path).read_text())["partitions"]
    target = rows[0]["replicas"][0]
    chosen = arena.broker_log_dirs(target)[1]
    rows[0]["log_dirs"] = [chosen, *["any"] * (len(rows[0]["replicas"]) - 1)]
    Path(path).write_text(json.dumps({"version": 1, "partitions": rows}))
    done = arena.reassign("apply", path)
    assert done.code == 0, str(done)
    assert arena.replicas(topic) == {row["partition"]: tuple(row["replicas"]) for row in rows}
    assert arena.log_dirs(topic)[target, rows[0]["partition"]] == [chosen]
    _java_agrees(arena, path, 2)

    _, ours = arena.plan("--topic", topic, "--replication-factor", "1")
    executed = arena.java_tool("--reassignment-json-file", ours, "--execute")
    assert executed.code == 0, str(executed)
    arena.wait_still(topic)
    assert {len(ids) for ids in arena.replicas(topic).values()} == {1}
    assert arena.reassign("verify", ours).code == 0


def _java_plan(arena: Arena, topic: str) -> str:
    asked = arena.work / "topics.json"
    asked.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    done = arena.java_tool("--topics-to-move-json-file", str(asked), "--broker-list", "2,3,4", "--generate")
    proposal = done.out.partition("Proposed partition reassignment configuration\n")[2].splitlines()[0]
    path = arena.work / "java.json"
    path.write_text(proposal)
    return str(path)


def test_small_cluster(small_arena: Arena) -> None:
    """Up, and back by the reverse plan, on the cluster that other tests use."""
    arena = small_arena
    topic = arena.make_topic("orders", [[1], [2]], size=200_000)
    known, configs = arena.checksums(topic), arena.configs()
    plan, path = arena.plan("--topic", topic, "--replication-factor", "2")
    assert (plan["moves"], plan["lower_bound"]) == (2, 2)
    done = arena.reassign("apply", path, "--throttle", "10MB/s")
    assert done.code == 0, str(done)
    assert {len(ids) for ids in arena.replicas(topic).values()} == {2}
    again = arena.reassign("apply", path)
    assert again.code == 0, "applying it twice is harmless"
    back = arena.reassign("rollback", path)
    assert back.code == 0, str(back)
    assert arena.replicas(topic) == {0: (1,), 1: (2,)}
    assert (arena.checksums(topic), arena.configs()) == (known, configs)
