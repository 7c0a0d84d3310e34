"""Checks of a plan: a table of what is wrong with the cluster or the plan, and the reason that is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kctl.cluster.log_dirs import LogDir, LogDirReplica
from kctl.cluster.reassignments import Moving
from kctl.errors import ConnectionTimedOut
from kctl.model import Broker, PartitionState, TopicPartition, TopicState
from kctl.reassign.plan_file.read import PlanFile
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.checks import PlanProblem, check, unchecked
from kctl.reassign.run.live_state import LiveState

T0 = TopicPartition("t", 0)
MOVE = Reassignment("t", 0, after=(3, 2), before=(1, 2), topic_id="id-t")


def plan(*moves: Reassignment, **fields: Any) -> PlanFile:
    whole: dict[str, Any] = {
        "batches": None, "cluster_id": "c", "remove_brokers": (), "complete": True, "digest": "", **fields,
    }  # fmt: skip
    return PlanFile(reassignments=moves or (MOVE,), **whole)


def partition(number: int, replicas: tuple[int, ...], isr: tuple[int, ...] | None = None, **fields: Any) -> Any:
    isr = replicas if isr is None else isr
    return PartitionState("t", number, fields.get("leader", isr[0] if isr else -1), 0, replicas, isr)


def live(*partitions: PartitionState, **fields: Any) -> LiveState:
    """Brokers 1–3 with one log dir of 1,000 free bytes each; t-0 on 1 and 2, 100 bytes."""
    whole: dict[str, Any] = {
        "brokers": {node: Broker(node, "h", 9092) for node in (1, 2, 3)},
        "controller_id": 1,
        "cluster_id": "c",
        "topics": {"t": TopicState("t", False, "id-t", partitions or (partition(0, (1, 2)),))},
        "moving": {},
        "log_dirs": {node: [log_dir("/d", node)] for node in (1, 2, 3)},
    }
    return LiveState(**(whole | fields))


def log_dir(path: str, node: int, *, free: int | None = 1000, error: str | None = None, size: int = 100) -> LogDir:
    held = [LogDirReplica("t", 0, size, 0, False)] if node in {1, 2} else []
    return LogDir(path, None if free is None else 5000 + node, free, held, error)


def test_a_plan_that_can_be_carried_out() -> None:
    assert check(plan(), live()) == []
    assert unchecked(plan(), live()) == []


@pytest.mark.parametrize(
    ("moves", "state", "problem"),
    [
        ([MOVE], live(topics={}), "topic t: it does not exist"),
        ([replace(MOVE, topic_id="old")], live(), "topic t: it was deleted and created again"),
        ([replace(MOVE, partition=7)], live(), "t-7: no such partition: the topic has 1"),
        ([MOVE], live(partition(0, (2, 1))), "t-0: its replicas are 2,1, but were 1,2 when the plan was made"),
        ([replace(MOVE, before=(1, 3))], live(), "t-0: its replicas are 1,2, but were 1,3"),
        ([replace(MOVE, after=(9, 2))], live(), "t-0: broker 9, the target of a replica, is down or not in"),
        ([MOVE], live(moving={T0: Moving((3,), (1,))}), "t-0: it is already being moved by someone else"),
        (
            [MOVE],
            live(moving={TopicPartition("other", 4): Moving((3,), (1,))}),
            "other-4: it is already being moved by someone else; it is not in the plan",
        ),
        ([MOVE], live(partition(0, (1, 2), (1,))), "t-0: its replica on broker 2 is not in sync"),
        ([MOVE], live(partition(0, (1, 2), (2,))), "t-0: its replica on broker 1 is not in sync, although"),
        ([MOVE], live(partition(0, (1, 2), (), leader=-1)), "t-0: it has no leader to copy from"),
        ([MOVE], live(controller_id=None), "the cluster: it has no active controller"),
        ([MOVE], live(cluster_id="other"), "the plan: it was made for cluster c, but this is other"),
        (
            [MOVE],
            live(log_dirs={1: [log_dir("/d", 1)], 2: [log_dir("/d", 2)], 3: [log_dir("/d", 3, free=99)]}),
            "broker 3: it will receive 100 B, but has 99 B free",
        ),
        (
            [replace(MOVE, log_dirs=("/e", None))],
            live(),
            "t-0: broker 3 has no log dir /e; it has /d",
        ),
        (
            [replace(MOVE, log_dirs=("/e", None))],
            live(log_dirs={3: [log_dir("/d", 3), log_dir("/e", 3, error="KAFKA_STORAGE_ERROR")]}),
            "t-0: log dir /e of broker 3 is offline",
        ),
        (
            [replace(MOVE, log_dirs=("/e", None))],
            live(log_dirs={3: ConnectionTimedOut("broker 3 did not answer")}),
            "t-0: cannot read log dir /e of broker 3: broker 3 did not answer",
        ),
        (
            [replace(MOVE, log_dirs=("/e", None))],
            live(
                log_dirs={
                    1: [log_dir("/d", 1)], 2: [log_dir("/d", 2)], 3: [log_dir("/d", 3), log_dir("/e", 3, free=50)],
                }
            ),
            "log dir /e of broker 3: it will receive 100 B, but has 50 B free",
        ),
        (
            [Reassignment("t", 0, (1, 2), (1, 2), log_dirs=("/e", None), log_dirs_before=("/d", None))],
            live(log_dirs={1: [log_dir("/d", 1), LogDir("/e", 1, 50, [])], 2: [log_dir("/d", 2)]}),
            "log dir /e of broker 1: it will receive 100 B, but has 50 B free",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(moves: list[Reassignment], state: LiveState, problem: str) -> None:
    found = check(plan(*moves), state)
    assert [str(p) for p in found if str(p).startswith(problem)], found
    assert len(found) == 1, found


def test_partitions_that_were_added() -> None:
    grown = live(partition(0, (1, 2)), partition(1, (1, 2)))
    assert check(plan(partition_counts={"t": 2}), grown) == []
    assert check(plan(partition_counts={"t": 1}), grown) == [
        PlanProblem("topic t", "it has 2 partitions, but had 1 when the plan was made")
    ]


def test_every_bad_entry_is_named() -> None:
    moves = [
        MOVE,
        replace(MOVE, partition=1, before=(2, 3)),
        replace(MOVE, partition=2, after=(8, 9)),
        replace(MOVE, partition=3),
        replace(MOVE, topic="gone"),
    ]
    state = live(partition(0, (1, 2)), partition(1, (1, 2)), partition(2, (1, 2)))
    assert [p.subject for p in check(plan(*moves), state)] == ["topic gone", "t-1", "t-2", "t-2", "t-3"]


@pytest.mark.parametrize(
    ("moves", "state"),
    [
        ([MOVE], live(partition(0, (3, 2)))),  # is at its target
        ([MOVE], live(partition(0, (3, 2), (2,)))),
        ([replace(MOVE, before=None, topic_id=None)], live(partition(0, (2, 1)))),  # Kafka's own: no "before"
        # what leaves a broker that is down may be out of sync
        (
            [MOVE],
            live(partition(0, (1, 2), (2,)), brokers={node: Broker(node, "h", 9092) for node in (2, 3)}),
        ),
        # another order copies nothing
        ([Reassignment("t", 0, (2, 1), (1, 2))], live(partition(0, (1, 2), (1,)))),
        ([MOVE], live(log_dirs={})),
    ],
)
def test_what_is_fine(moves: list[Reassignment], state: LiveState) -> None:
    assert check(plan(*moves), state) == []


@pytest.mark.parametrize(
    ("state", "problems"),
    [
        (live(partition(0, (3, 2, 1), (1, 2)), moving={T0: Moving((3,), (1,))}), []),
        (
            live(partition(0, (4, 2, 1), (1, 2)), moving={T0: Moving((4,), (1,))}),
            ["t-0: it is moving to 4,2, not to 3,2"],
        ),
        (live(partition(0, (3, 2))), []),
        (live(partition(0, (1, 2))), []),
    ],
)
def test_partitions_of_ours_in_flight(state: LiveState, problems: list[str]) -> None:
    assert [str(p) for p in check(plan(), state, run_partitions=frozenset({T0}))] == problems


def test_what_has_arrived_already_is_not_needed_again() -> None:
    in_flight = live(
        partition(0, (3, 2, 1), (1, 2)),
        moving={T0: Moving((3,), (1,))},
        log_dirs={
            1: [log_dir("/d", 1)], 2: [log_dir("/d", 2)],
            3: [LogDir("/d", 5000, 30, [LogDirReplica("t", 0, 80, 1, False)])],
        },
    )  # fmt: skip
    assert check(plan(), in_flight, run_partitions=frozenset({T0})) == []
    in_flight.log_dirs[3] = [LogDir("/d", 5000, 10, [LogDirReplica("t", 0, 80, 1, False)])]
    assert [str(p) for p in check(plan(), in_flight, run_partitions=frozenset({T0}))] == [
        "broker 3: it will receive 20 B, but has 10 B free"
    ]


@pytest.mark.parametrize(
    ("dirs", "enough"),
    [
        ([LogDir("/d", 5000, 60, []), LogDir("/e", 5000, 70, [])], True),
        ([LogDir("/d", 5000, 60, []), LogDir("/e", 5000, 60, [])], False),  # one file system
        ([LogDir("/d", 5000, 60, []), LogDir("/e", 6000, 60, [])], True),
        ([LogDir("/d", 5000, 60, []), LogDir("/e", 6000, 90, [], error="offline")], False),
    ],
)
def test_free_space_of_several_log_dirs(dirs: list[LogDir], enough: bool) -> None:
    state = live(log_dirs={1: [log_dir("/d", 1)], 2: [log_dir("/d", 2)], 3: dirs})
    assert (check(plan(), state) == []) is enough


def test_doubts() -> None:
    old = live(log_dirs={node: [log_dir("/d", node, free=None)] for node in (1, 2, 3)})
    assert [str(p) for p in unchecked(plan(), old)] == [
        "broker 3: its free disk space is unknown (brokers report it only since Kafka 3.3)"
    ]
    silent = live(log_dirs={1: ConnectionTimedOut("no answer"), 2: ConnectionTimedOut("no answer")})
    assert [str(p) for p in unchecked(plan(), silent)] == [
        "disk space: the size of 1 partition is unknown and was not counted"
    ]
    assert unchecked(plan(replace(MOVE, size_bytes=100)), replace(silent, log_dirs={3: [log_dir("/d", 3)]})) == []


def cordoned(path: str, node: int) -> LogDir:
    return replace(log_dir(path, node), cordoned=True)


@pytest.mark.parametrize(
    ("dirs", "move", "reason"),
    [
        ({3: [cordoned("/d", 3)]}, MOVE, "broker 3 would receive a replica, but is cordoned in all log dirs"),
        ({3: [cordoned("/d", 3), log_dir("/e", 3)]}, MOVE, None),
        ({2: [cordoned("/d", 2)]}, MOVE, None),  # it has its replica already
        (
            {3: [cordoned("/d", 3), log_dir("/e", 3)]},
            replace(MOVE, log_dirs=("/d", None)),
            "log dir /d of broker 3 is cordoned",
        ),
        ({2: [cordoned("/d", 2), log_dir("/e", 2)]}, replace(MOVE, log_dirs=(None, "/d")), None),
    ],
)
def test_cordoned_log_dirs(dirs: dict[int, list[LogDir]], move: Reassignment, reason: str | None) -> None:
    state = live()
    state.log_dirs.update(dirs)
    assert [problem.reason for problem in check(plan(move), state)] == ([] if reason is None else [reason])


def test_only_log_dirs_that_receive_something_count_as_free() -> None:
    state = live()
    state.log_dirs[3] = [cordoned("/d", 3), log_dir("/e", 3, free=50)]
    (problem,) = check(plan(), state)
    assert "it will receive 100 B, but has 50 B free" in problem.reason
