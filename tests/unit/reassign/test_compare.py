"""Where partitions stand, and what is read back at the end: tables of clusters. No broker."""

from __future__ import annotations

import pytest

from kctl.cluster.log_dirs import LogDir, LogDirReplica
from kctl.cluster.reassignments import Moving
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.compare import (
    PlanPosition,
    PlanView,
    ReplicaPlace,
    is_back,
    misplaced,
    places_of,
    position_of,
    reason,
)
from kctl.reassign.run.live_state import LiveState
from kctl.reassign.run.observe import copies_of
from kctl.reassign.run.outcome import brokers_holding, judge

TP = TopicPartition("t", 0)
MOVE = Reassignment("t", 0, after=(4, 2), before=(1, 2), topic_id="id", size_bytes=100)
REORDER = Reassignment("t", 0, after=(2, 1), before=(1, 2))
DIRS = Reassignment("t", 0, after=(1, 2), before=(1, 2), log_dirs=(None, "/d2"), log_dirs_before=(None, "/d1"))


def _live(
    replicas: tuple[int, ...] | None,
    moving: Moving | None = None,
    *,
    topic_id: str = "id",
    leader: int = 1,
    isr: tuple[int, ...] = (1, 2),
    log_dirs: dict[int, list[LogDir]] | None = None,
) -> LiveState:
    brokers = {node: Broker(node, "h", 1) for node in (1, 2, 3, 4)}
    topics = {}
    if replicas is not None:
        topics["t"] = TopicState("t", False, topic_id, (PartitionState("t", 0, leader, 5, replicas, isr),))
    return LiveState(brokers, 1, "c", topics, {} if moving is None else {TP: moving}, dict(log_dirs or {}))


def _dir(path: str, size: int, *, future: bool = False) -> LogDir:
    return LogDir(path, None, None, [LogDirReplica("t", 0, size, 0, future)])


IN_D1 = {2: [_dir("/d1", 10), LogDir("/d2", None, None, [])]}
TO_D2 = {2: [_dir("/d1", 10), _dir("/d2", 4, future=True)]}
IN_D2 = {2: [LogDir("/d1", None, None, []), _dir("/d2", 10)]}


@pytest.mark.parametrize(
    ("r", "live", "wanted", "said"),
    [
        (MOVE, _live((4, 2)), PlanPosition.REACHED, ""),
        (MOVE, _live((1, 2)), PlanPosition.BEFORE, "unchanged: 1,2"),
        (MOVE, _live((4, 2, 1), Moving((4,), (1,))), PlanPosition.MOVING, "still being moved"),
        (
            MOVE,
            _live((1, 2), Moving((4,), (1,))),
            PlanPosition.MOVING,
            "still being moved",
        ),  # metadata is a moment late
        (MOVE, _live((3, 2, 1), Moving((3,), (1,))), PlanPosition.FOREIGN, "another reassignment moves it to 3,2"),
        (MOVE, _live((4, 2, 1), Moving((4,), ())), PlanPosition.FOREIGN, "to 4,2,1"),
        (MOVE, _live((2, 4)), PlanPosition.ORDER, "2,4, neither 1,2 nor 4,2"),
        (MOVE, _live((1, 3)), PlanPosition.CHANGED, "1,3, neither 1,2 nor 4,2"),
        (MOVE, _live((2, 1)), PlanPosition.CHANGED, "2,1"),
        (MOVE, _live(None), PlanPosition.GONE, "the topic no longer exists"),
        (MOVE, _live((1, 2), topic_id="other"), PlanPosition.ANEW, "created again"),
        (REORDER, _live((1, 2)), PlanPosition.BEFORE, "unchanged"),
        (REORDER, _live((2, 1)), PlanPosition.REACHED, ""),
        (DIRS, _live((1, 2), log_dirs=IN_D1), PlanPosition.LOG_DIRS, "it is not in /d2 of broker 2"),
        (DIRS, _live((1, 2), log_dirs=TO_D2), PlanPosition.LOG_DIRS, "still being copied to /d2 of broker 2"),
        (DIRS, _live((1, 2)), PlanPosition.LOG_DIRS, "it is not in /d2 of broker 2"),  # nobody told
        (DIRS, _live((1, 2), log_dirs=IN_D2), PlanPosition.REACHED, ""),
    ],
)
def test_standing(r: Reassignment, live: LiveState, wanted: PlanPosition, said: str) -> None:
    view = PlanView(live, places_of(live.log_dirs))
    assert position_of(r, view) is wanted
    if wanted is not PlanPosition.REACHED:
        assert said in reason(r, view, wanted)
        (failure,) = judge([r], live).failures
        assert (failure.topic, failure.partition, failure.standing) == ("t", 0, wanted.value)


def test_a_partition_that_is_gone_from_its_topic() -> None:
    view = PlanView(_live((1, 2)))
    assert position_of(Reassignment("t", 9, after=(1,), before=(2,)), view) is PlanPosition.GONE


def test_places() -> None:
    assert places_of(TO_D2) == {(2, TP): ReplicaPlace("/d1", 10, "/d2", 4)}
    assert misplaced(DIRS, places_of(TO_D2)) == [(2, "/d2")]
    assert misplaced(DIRS, places_of(IN_D2)) == []


def test_counts() -> None:
    live = _live((4, 2))
    found = judge([MOVE, REORDER, DIRS], live)
    assert (found.partition_count, found.reached, found.in_flight, found.as_before, found.elsewhere) == (3, 1, 0, 0, 2)


@pytest.mark.parametrize(("told", "in_flight", "as_before"), [(IN_D1, 0, 1), (TO_D2, 1, 0), ({}, 1, 0)])
def test_log_dir_moves_that_are_under_way_or_went_back(
    told: dict[int, list[LogDir]], in_flight: int, as_before: int
) -> None:
    """What no broker tells of is taken for one that goes on."""
    live = _live((1, 2), log_dirs=told)
    found = judge([DIRS], live)
    assert (found.in_flight, found.as_before, found.elsewhere) == (in_flight, as_before, 0)
    assert is_back(DIRS, PlanView(live, places_of(told))) == bool(as_before)


def test_copies() -> None:
    dirs = {1: [_dir("/d1", 100)], 4: [_dir("/d1", 30)]}
    live = _live((4, 2, 1), Moving((4,), (1,)), log_dirs=dirs)
    view = PlanView(live, places_of(dirs))
    (copy,) = copies_of([MOVE], view, ())
    assert (copy.broker, copy.size_bytes, copy.copied_bytes, copy.done) == (4, 100, 30, False)
    (copy,) = copies_of([MOVE], view, {TP})
    assert (copy.copied_bytes, copy.done) == (100, True)
    assert copies_of([REORDER], view, ()) == []
    for told, copied, done in ((IN_D1, 0, False), (TO_D2, 4, False), (IN_D2, 10, True)):
        (copy,) = copies_of([DIRS], PlanView(_live((1, 2)), places_of(told)), ())
        assert (copy.broker, copy.size_bytes, copy.copied_bytes, copy.done) == (2, 10, copied, done)


def test_brokers_that_were_to_be_emptied() -> None:
    """Also replicas that are only on their way, and of topics that no plan knew."""
    topics = {
        "new": TopicState("new", False, None, (PartitionState("new", 0, 4, 0, (4, 1), (4, 1)),)),
        "t": TopicState("t", False, None, (PartitionState("t", 0, 1, 0, (1, 2, 4), (1, 2)),)),
    }
    state = ClusterState("c", 1, {}, topics)
    (left,) = brokers_holding(state, {4, 9})
    assert (left.broker, left.replica_count, left.partitions) == (4, 2, ["new-0", "t-0"])
    assert brokers_holding(state, {9}) == []
