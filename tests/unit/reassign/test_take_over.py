"""Plans whose journal is not here: what throttles them, and that nothing else is taken away. No broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.base import journal, paths
from kctl.cluster.reassignments import Moving
from kctl.configs.dynamic import Resource
from kctl.model import Broker, PartitionState, TopicPartition, TopicState
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.live_state import LiveState
from kctl.reassign.run.run_plan import RunPlan
from kctl.reassign.run.settings import (
    ThrottleSetting,
    active_settings,
    affected_brokers,
    rate_of,
    summarize_settings,
    throttle_of,
)
from kctl.reassign.run.steps import RunStep, next_step, replay
from kctl.reassign.run.take_over import PlanInFlight, begin, with_before
from kctl.reassign.run.throttle import (
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    Throttle,
    restoration,
)

T, B1, B10, B2 = Resource.topic("t"), Resource.broker(1), Resource.broker(10), Resource.broker(2)
MOVE = Reassignment("t", 0, after=(3, 2), before=(1, 2))


def test_only_the_plans_own_entries_leave_a_list() -> None:
    current: dict[Resource, dict[str, str | None]] = {
        T: {LEADER_REPLICAS: "0:1,0:2,7:1", FOLLOWER_REPLICAS: "0:3"},
        B1: {LEADER_RATE: "1000", LOG_DIR_RATE: None},
        B2: {LEADER_RATE: None, LOG_DIR_RATE: "2000"},
    }
    throttle = throttle_of([MOVE], current)
    assert throttle.before == {
        T: {LEADER_REPLICAS: "7:1", FOLLOWER_REPLICAS: None},
        B1: {LEADER_RATE: None},
        B2: {LOG_DIR_RATE: None},
    }
    assert rate_of(throttle) == 2000
    assert restoration(throttle, current) == (throttle.before, [])


@pytest.mark.parametrize(("value", "rest"), [("*", None), ("7:1", "untouched"), ("", "untouched")])
def test_lists_of_everything_and_of_others(value: str, rest: str | None) -> None:
    throttle = throttle_of([MOVE], {T: {LEADER_REPLICAS: value}})
    assert throttle.before == ({} if rest == "untouched" else {T: {LEADER_REPLICAS: None}})
    assert rate_of(throttle) is None


@pytest.mark.parametrize(
    ("moving", "replicas", "before"), [(Moving((3,), (1,)), (3, 2, 1), (2, 1)), (None, (1, 2), (1, 2))]
)
def test_a_file_that_does_not_tell_the_replicas_of_before(
    moving: Moving | None, replicas: tuple[int, ...], before: tuple[int, ...]
) -> None:
    topics = {"t": TopicState("t", False, None, (PartitionState("t", 0, 1, 0, replicas, (1, 2)),))}
    found = {} if moving is None else {TopicPartition("t", 0): moving}
    live = LiveState({1: Broker(1, "h", 1)}, 1, "c", topics, found)
    assert with_before(Reassignment("t", 0, after=(3, 2)), live).before == before
    assert with_before(MOVE, live) is MOVE


@pytest.mark.parametrize("in_flight", [True, False])
def test_the_journal_is_one_of_a_run_in_work(in_flight: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after it was begun: going on ends the batch or nothing, and takes the throttle away."""
    monkeypatch.setattr(paths, "state_dir", lambda: tmp_path)
    throttle = throttle_of([MOVE], {B1: {LEADER_RATE: "1000"}})
    plan = RunPlan("apply", "p.json", "d", "c", "prod", (MOVE,), ((0,),) if in_flight else (), throttle_bytes=1000)
    with begin(PlanInFlight(plan, ["t-0"], [], throttle, active_settings(throttle.set), {})) as held:
        path = held.path
    state = replay(journal.read(path))
    assert (state.batch_open, state.throttled, state.outcome) == (in_flight, True, None)
    assert state.throttle is not None
    assert Throttle.from_json(state.throttle) == throttle
    assert next_step(state) is (RunStep.BATCH_START if in_flight else RunStep.THROTTLE_RESTORE)


def test_whose_rates_are_looked_at() -> None:
    assert affected_brokers([MOVE], {1, 2, 3, 4}) == {1, 2, 3}
    assert affected_brokers([MOVE, Reassignment("t", 1, after=(2,))], {1, 4}) == {1, 2, 3, 4}


def test_settings_in_short() -> None:
    found = active_settings(
        {B10: {LEADER_RATE: "5"}, B2: {LEADER_RATE: "5", LOG_DIR_RATE: None}, T: {LEADER_REPLICAS: "*"}}
    )
    assert found[0] == ThrottleSetting("broker", "2", LEADER_RATE, "5")
    assert summarize_settings(found) == "rates on brokers 2, 10 and lists on 1 topic"
    assert summarize_settings(found[:1]) == "rates on broker 2"
    assert active_settings({}) == []
