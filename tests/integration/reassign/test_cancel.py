"""Cancel: the original replicas again, in whatever way the run ended, and an operator's own throttles as they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reassign_testing import Arena

pytestmark = pytest.mark.long

SIZE = 1_500_000
SLOW = ("--throttle", "200kB/s")


def _operators_throttles(arena: Arena, *topics: str) -> dict[str, Any]:
    """A rate on one broker, a list of replicas on the first topic, "*" on the last. All configs then."""
    arena.set_configs("brokers", "2", leader_replication_throttled_rate="66000000")
    arena.set_configs(
        "brokers", "4", follower_replication_throttled_rate="77000000",
        replica_alter_log_dirs_io_max_bytes_per_second="88000000",
    )  # fmt: skip
    arena.set_configs("topics", topics[0], leader_replication_throttled_replicas="0:1,0:3")
    arena.set_configs(
        "topics", topics[-1], leader_replication_throttled_replicas="*", follower_replication_throttled_replicas="*"
    )
    return arena.configs()


def _cancel_while_it_runs(arena: Arena, plan: str, *topics: str) -> None:
    with arena.running("apply", plan, *SLOW) as process:
        arena.wait_moving(*topics)
        done = arena.reassign("cancel")
        out, err = process.communicate(timeout=30)
    assert done.code == 0, str(done)
    assert process.returncode == 1, f"{out}\n{err}"
    assert "cancel" in err


def _cancel_after_a_crash(arena: Arena, plan: str) -> None:
    arena.abandoned(plan, *SLOW)
    done = arena.reassign("cancel")
    assert done.code == 0, str(done)


@pytest.mark.parametrize(
    ("targets", "crashed"),
    [
        ({0: [1, 2, 4], 1: [2, 3, 4]}, False),
        ({0: [1, 4], 1: [4, 3]}, True),
        ({0: [3, 4], 1: [4, 1]}, False),
        ({0: [4], 1: [4]}, True),
    ],
    ids=["factor up", "one replica moves, crashed", "all replicas move", "one replica is left, crashed"],
)
def test_cancelled(arena: Arena, targets: Mapping[int, list[int]], crashed: bool) -> None:
    first = arena.make_topic("first", [[1, 2], [2, 3]], size=SIZE)
    last = arena.make_topic("last", [[1, 2], [2, 3]], size=SIZE)
    configs = _operators_throttles(arena, first, last)
    before = {topic: arena.replicas(topic) for topic in (first, last)}
    known = arena.checksums(first)
    plan = arena.write_plan({(topic, number): ids for topic in (first, last) for number, ids in targets.items()})
    if crashed:
        _cancel_after_a_crash(arena, plan)
    else:
        _cancel_while_it_runs(arena, plan, first, last)
    assert arena.moving() == {}
    assert {topic: arena.replicas(topic) for topic in (first, last)} == before
    assert arena.leaders(first) == {0: 1, 1: 2}
    assert arena.configs() == configs
    assert arena.checksums(first) == known
    assert arena.reassign("resume").code == 4, "there is nothing to go on with"


def test_log_dir_move_cancelled(arena: Arena) -> None:
    topic = arena.make_topic("orders", [[1, 2], [2, 4]], size=SIZE)
    configs = _operators_throttles(arena, topic)
    before = arena.log_dirs(topic)
    (at,) = before[2, 0]
    (other,) = {*arena.broker_log_dirs(2)} - {at}
    row = {"topic": topic, "partition": 0, "replicas": [1, 2], "log_dirs": ["any", other]}
    plan = arena.write_plan({(topic, 0): [1, 2]}, partitions=[row])
    with arena.running("apply", plan, *SLOW) as process:
        arena.wait_until(lambda: len(arena.log_dirs(topic)[2, 0]) == 2, what="the replica is copied to the other dir")
        done = arena.reassign("cancel")
        out, err = process.communicate(timeout=30)
    assert done.code == 0, str(done)
    assert process.returncode == 1, f"{out}\n{err}"
    arena.wait_until(lambda: arena.log_dirs(topic) == before, what="it is in its old log dir alone")
    assert arena.configs() == configs


def test_paused_and_resumed(arena: Arena) -> None:
    """`pause` lets the batch end, takes the throttles back and stops there; `--now` sends back what is in flight."""
    topic = arena.make_topic("orders", [[1, 2], [1, 2]], size=600_000)
    configs = _operators_throttles(arena, topic)
    plan = arena.write_plan({(topic, 0): [1, 3], (topic, 1): [1, 3]})
    with arena.running("apply", plan, *SLOW, "--max-concurrent-moves", "1") as process:
        arena.wait_moving(topic)
        paused = arena.reassign("pause")
        _, err = process.communicate(timeout=30)
    assert paused.code == 0, str(paused)
    assert process.returncode == 1, err
    assert "paused by `kctl topic reassign pause`" in err
    assert "1 replica copied" in paused.out, str(paused)
    assert arena.moving() == {}
    assert sorted(arena.replicas(topic).values()) == [(1, 2), (1, 3)], "one batch is done, the other not begun"
    assert arena.configs() == configs

    with arena.running("resume", "--throttle", "40kB/s") as process:  # it is still under way when "pause" has started
        arena.wait_moving(topic)
        paused = arena.reassign("pause", "--now")
        _, err = process.communicate(timeout=30)
    assert (paused.code, process.returncode) == (0, 1), f"{paused}\n{err}"
    assert "paused by `kctl topic reassign pause --now`" in err
    assert "1 partition returned to the original replicas" in paused.out, str(paused)
    assert arena.moving() == {}
    assert sorted(arena.replicas(topic).values()) == [(1, 2), (1, 3)]
    assert arena.configs() == configs
    done = arena.reassign("resume", "--throttle", "50MB/s")
    assert done.code == 0, str(done)
    assert arena.replicas(topic) == {0: (1, 3), 1: (1, 3)}
    assert arena.configs() == configs


def test_rolled_back(arena: Arena) -> None:
    """What was finished is taken back by `rollback`, and what was cancelled half-way as well."""
    topic = arena.make_topic("orders", [[1, 2], [1, 2]], size=1_000_000)
    configs = _operators_throttles(arena, topic)
    before = arena.replicas(topic)
    plan = arena.write_plan({(topic, 0): [1, 3], (topic, 1): [3, 1]})
    with arena.running("apply", plan, *SLOW, "--max-concurrent-moves", "1") as process:
        arena.wait_until(lambda: (1, 3) in arena.replicas(topic).values(), what="the first batch has ended")
        arena.wait_moving(topic)
        cancelled = arena.reassign("cancel")
        process.communicate(timeout=30)
    assert cancelled.code == 0, str(cancelled)
    assert arena.replicas(topic) == {0: (1, 3), 1: (1, 2)}
    assert "rollback" in cancelled.err + cancelled.out, "what earlier batches finished stays, and is told"
    done = arena.reassign("rollback")
    assert done.code == 0, str(done)
    assert arena.replicas(topic) == before
    assert arena.configs() == configs
