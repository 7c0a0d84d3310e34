"""Topics of others while two brokers are down: which pair an unclean election takes, and what is told before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from kctl.cluster.topic_configs import ConfigEntry
from kctl.errors import KctlError, OperationFailed, Refused
from kctl.model import Broker, ClusterState, PartitionState, TopicState
from kctl.restart.gate import UnprotectedTopic
from kctl.restart.snapshot import GateSnapshot
from kctl.validate import other_topics
from kctl.validate import plan as plan_module
from kctl.validate import run as run_module
from kctl.validate.fault_injection import FaultInjection
from kctl.validate.leftovers import BEGIN, PREFIX, TOPIC
from kctl.validate.other_topics import OtherTopics, elects_unclean, on_two, risks, without_two
from kctl.validate.plan import PlannedScenario, ValidationOptions, ValidationPlan, make_plan, plan_scenario
from kctl.validate.run import ValidationRun
from kctl.validate.scenarios import SCENARIOS, find

MEANS = FaultInjection(mock.Mock(acts=["kill", "start", "pause", "unpause", "stop"]), None, "by hand", "none")


OWN = f"{PREFIX}x-y"


def state(brokers: int = 3, /, own: Any = (), **topics: tuple[tuple[int, ...], ...]) -> ClusterState:
    """topics: the replicas of each partition, all in sync. own: those of a validation's topic."""
    topics |= {OWN: own} if own else {}
    made = {
        name: TopicState(
            name, False, None, tuple(PartitionState(name, n, each[0], 0, each, each) for n, each in enumerate(rows))
        )
        for name, rows in topics.items()
    }
    return ClusterState("cluster-id-1", 1, {n: Broker(n, f"h{n}", 9092) for n in range(1, brokers + 1)}, made)


@pytest.mark.parametrize(
    ("brokers", "controller", "at_risk", "expected"),
    [
        ((1, 2, 3), 1, (), (2, 3)),
        ((1, 2, 3), None, (), (1, 2)),
        ((1, 2), 2, (), (1, 2)),  # too few to spare the controller
        ((1,), 1, (), None),
        ((1, 2, 3, 4), 1, [(2, 3)], (2, 4)),
        ((1, 2, 3), 1, [(2, 3)], (1, 2)),  # better the controller than records of others
        ((1, 2, 3), 1, [(2, 3), (1, 2), (1, 3)], None),
    ],
)
def test_the_pair_of_an_unclean_election(
    brokers: tuple[int, ...], controller: int | None, at_risk: Any, expected: tuple[int, int] | None
) -> None:
    around = OtherTopics(brokers, controller, {frozenset(pair): ["orders"] for pair in at_risk})
    assert around.pair() == expected
    assert around.assignment() == (() if expected is None else (expected,))


def test_topics_with_all_replicas_on_two_brokers() -> None:
    found = state(two=((2, 3), (3, 2), (1, 2)), three=((1, 2, 3),), one=((2,),), own=((2, 3),))
    assert on_two(found) == {frozenset((2, 3)): ["two"], frozenset((1, 2)): ["two"]}
    assert risks(found, {"two"}) == on_two(found)
    assert risks(found, {"three"}) == {}


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ([], False),
        ([ConfigEntry(other_topics.UNCLEAN, "true", mock.Mock())], True),
        ([ConfigEntry(other_topics.UNCLEAN, "false", mock.Mock())], False),
        ([ConfigEntry(other_topics.UNCLEAN, None, mock.Mock())], True),
        ([ConfigEntry("other", "true", mock.Mock())], False),
        (Refused("may not"), True),
        (None, True),
    ],
)
def test_what_nobody_tells_may_be_unclean(configs: list[ConfigEntry] | KctlError | None, expected: bool) -> None:
    assert elects_unclean(configs) == expected


def test_who_suffers_while_two_are_away() -> None:
    found = state(
        rf3_min2=((1, 2, 3), (2, 3, 1)), rf3_min1=((1, 2, 3),), rf3_min3=((1, 2, 3),), rf2_min1=((2, 3), (1, 2)),
        rf2_min2=((2, 3),), rf1=((2,),), unknown=((1, 2, 3),), own=((2, 3),),
    )  # fmt: skip
    least: dict[str, int | KctlError] = {name: int(name[-1]) for name in found.topics if "min" in name}
    least |= {"rf1": 1, "unknown": Refused("may not"), OWN: 1}
    refused = "acks=all writes rejected while brokers 2 and 3 are down"
    gone = "unavailable while brokers 2 and 3 are down"
    rows = [
        UnprotectedTopic("rf2_min1", 1, 2, 1, gone),
        UnprotectedTopic("rf2_min2", 1, 2, 2, gone),
        UnprotectedTopic("rf3_min2", 2, 3, 2, refused),
    ]  # rf3_min3 cannot do without one either, and is told by that
    assert without_two(found, least, (3, 2)) == rows
    any_two = without_two(found, least, None)
    assert [(row.topic, row.partition_count) for row in any_two] == [("rf2_min1", 2), ("rf2_min2", 1), ("rf3_min2", 2)]
    assert {row.consequence.partition(" while ")[2] for row in any_two} == {"two brokers are down"}


def planned(
    monkeypatch: pytest.MonkeyPatch, now: ClusterState, unclean: Mapping[str, str], *names: str
) -> ValidationPlan:
    """unclean: by topic, what its config is; "?": nobody tells."""
    client = mock.Mock()
    client.target.zookeeper = None
    client.metadata.return_value = now
    cluster = mock.MagicMock()
    cluster.__enter__.return_value.snapshot.return_value = GateSnapshot(now, dict.fromkeys(now.topics, 1), {})
    monkeypatch.setattr(plan_module, "LiveCluster", mock.Mock(return_value=cluster))
    monkeypatch.setattr(other_topics, "fetch_topic_configs", configs_of(unclean))
    chosen = [find(name) for name in names] or SCENARIOS
    return make_plan(client, MEANS, chosen, ValidationOptions(), controller=1)


def configs_of(unclean: Mapping[str, str]) -> Any:
    def fetch(_client: object, topics: set[str], _brokers: object, *, names: list[str]) -> dict[str, Any]:
        assert names == [other_topics.UNCLEAN]
        told = {topic: unclean.get(topic, "false") for topic in topics}
        return {
            topic: Refused("may not") if value == "?" else [ConfigEntry(other_topics.UNCLEAN, value, mock.Mock())]
            for topic, value in told.items()
        }

    return fetch


def test_a_plan_spares_records_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    now = state(4, orders=((2, 3),), safe=((2, 4),), wide=((2, 3, 4),))
    plan = planned(monkeypatch, now, {"orders": "true", "wide": "true"}, "unclean-election")
    assert [row.assignment for row in plan.scenarios] == [((2, 4),)]
    assert [(row.topic, row.consequence) for row in plan.unprotected] == [
        ("safe", "unavailable while brokers 2 and 4 are down")
    ]
    plan = planned(monkeypatch, now, {}, "unclean-election", "controller-election")  # the pair may change until then
    assert [row.topic for row in plan.unprotected] == ["orders", "safe"]
    assert planned(monkeypatch, now, {}, "leader-election").unprotected == ()


@pytest.mark.parametrize("value", ["true", "?"])
def test_where_every_pair_has_a_topic_at_risk_it_is_not_done(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = state(orders=((2, 3), (1, 2), (3, 1)))
    with pytest.raises(Refused, match=r"unclean-election cannot run on this cluster: every pair .*\(orders\)"):
        planned(monkeypatch, now, {"orders": value}, "unclean-election")
    plan = planned(monkeypatch, now, {"orders": value})
    impossible = {row.scenario for row in plan.scenarios if row.impossible}
    assert impossible == {"unclean-election", "zookeeper-loss", "controller-loss", "quorum-loss"}


BEGUN = [{"step": BEGIN}, {"step": TOPIC, "topic": OWN}]


def run_now(monkeypatch: pytest.MonkeyPatch, controller: int, now: ClusterState, **unclean: str) -> ValidationRun:
    monkeypatch.setattr(other_topics, "fetch_topic_configs", configs_of(unclean))
    monkeypatch.setattr(run_module, "read_controller", lambda _: SimpleNamespace(controller_id=controller))
    client = mock.Mock()
    client.metadata.return_value = now
    return ValidationRun(
        "12345678", mock.Mock(), client, MEANS, mock.Mock(), ValidationOptions(wait_s=0),
        mock.Mock(entries=list(BEGUN)), Path(), lambda _: None,
    )  # fmt: skip


def test_the_pair_is_that_of_the_moment_when_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenarios before it have moved the controller."""
    row = plan_scenario(find("unclean-election"), OtherTopics((1, 2, 3), 1), MEANS, ValidationOptions())
    assert row.assignment == ((2, 3),)
    assert run_now(monkeypatch, 1, state()).place(row) == row
    assert run_now(monkeypatch, 2, state()).place(row).assignment == ((1, 3),)
    assert run_now(monkeypatch, 2, state(new=((1, 3),)), new="true").place(row).assignment == ((1, 2),)
    other = PlannedScenario("broker-loss", "", "", ((1, 2, 3),), 2)
    assert run_now(monkeypatch, 2, state()).place(other) is other


def test_a_topic_at_risk_that_came_later_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    row = plan_scenario(find("unclean-election"), OtherTopics((1, 2), 1), MEANS, ValidationOptions())
    run = run_now(monkeypatch, 1, state(2, new=((1, 2),)), new="true")
    with pytest.raises(OperationFailed, match="unclean-election did not complete: no two brokers can be stopped"):
        run.place(row)
    run.journal.entries[1:] = []  # it is the first, and nothing was changed yet
    with pytest.raises(Refused, match=r"^no two brokers can be stopped: every pair") as refused:
        run.place(row)
    assert refused.value.exit_code == 4


@pytest.mark.parametrize("matrix", [False, True])
def test_each_way_to_an_unclean_election_asks_for_the_pair(matrix: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from kctl.validate.matrix import run_matrix

    row = plan_scenario(find("unclean-election"), OtherTopics((1, 2, 3), 1), MEANS, ValidationOptions())
    run = run_now(monkeypatch, 3, state())
    made: list[Any] = []

    def trials(given: Any, *_: object) -> Any:
        made.extend(given)
        raise OperationFailed("enough")

    monkeypatch.setattr(run, "trials", trials)
    with pytest.raises(OperationFailed, match="enough"):
        run_matrix(run, row) if matrix else run.scenario(row)
    assert {each.assignment for each in made} == {((1, 2),)}
