"""What a validation is going to do, whether it can, and the order in which each scenario breaks and mends: pure rules,
and scenarios over a stage that notes what is done on it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kctl.deploy.layout import ClusterSpec
from kctl.errors import NotSupported, Refused, UsageError
from kctl.model import Broker, ClusterState, PartitionState, TopicState
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.restart.hooks import ACTS
from kctl.restart.snapshot import GateSnapshot
from kctl.validate import fault_injection as means_module
from kctl.validate import leftovers
from kctl.validate import plan as plan_module
from kctl.validate.fault_injection import FaultInjection, find_fault_injection
from kctl.validate.other_topics import OtherTopics
from kctl.validate.plan import ValidationOptions, make_plan, plan_scenario, spread
from kctl.validate.report.verdict import Budgets
from kctl.validate.scenarios import SCENARIOS, find, scenarios_for


def injection(acts: Collection[str] = ACTS, zookeepers: int = 1, controllers: int = 0) -> FaultInjection:
    made = mock.Mock(acts=acts)
    keepers = mock.Mock(names=("zk1:2181",)) if zookeepers else "hooks.yaml has no ZooKeeper commands"
    if not controllers:
        return FaultInjection(made, None, "by hand", keepers)
    return FaultInjection(made, None, "by hand", keepers, mock.Mock(names=tuple(map(str, range(controllers)))))


@pytest.mark.parametrize(
    ("brokers", "expected"),
    [
        ((1,), ((1,),)),
        ((1, 2), ((1, 2), (2, 1))),
        ((1, 2, 3), ((1, 2, 3), (2, 3, 1), (3, 1, 2))),
        ((1, 2, 4, 7), ((1, 2, 4), (2, 4, 7), (4, 7, 1), (7, 1, 2))),
    ],
)
def test_every_broker_leads_a_partition(brokers: tuple[int, ...], expected: tuple[tuple[int, ...], ...]) -> None:
    assert spread(brokers) == expected


def test_a_hundred_brokers_do_not_get_a_hundred_partitions() -> None:
    assert len(spread(range(100))) == 64


@pytest.mark.parametrize(
    ("scenario", "brokers", "given", "options", "why"),
    [
        ("leader-election", (1, 2, 3), injection(), ValidationOptions(), None),
        ("leader-election", (1, 2), injection(), ValidationOptions(), None),
        ("leader-election", (1,), injection(), ValidationOptions(), "a single broker has no other broker"),
        ("unclean-election", (1,), injection(), ValidationOptions(), "a single broker has no other broker"),
        ("zookeeper-loss", (1,), injection(), ValidationOptions(), None),
        ("quorum-loss", (1,), injection(controllers=1), ValidationOptions(), None),
        ("quorum-loss", (1, 2), injection(), ValidationOptions(), "kctl did not set the controllers up"),
        ("controller-loss", (1,), injection(controllers=3), ValidationOptions(), None),
        ("controller-loss", (1,), injection(controllers=1), ValidationOptions(), "a single controller has no other"),
        (
            "zookeeper-loss",
            (1, 2, 3),
            injection(zookeepers=0),
            ValidationOptions(),
            "hooks.yaml has no ZooKeeper commands",
        ),
        (
            "broker-loss",
            (1, 2, 3),
            injection(["stop", "start"]),
            ValidationOptions(),
            "the hooks have no command to kill each broker",
        ),
        (
            "unclean-election",
            (1, 2, 3),
            injection(["stop"]),
            ValidationOptions(),
            "to pause or unpause or kill or start",
        ),
        ("rolling-restart", (1, 2, 3), injection(["stop", "start"]), ValidationOptions(), None),
        ("leader-election", (1, 2, 3), injection(), ValidationOptions(min_insync=4), "rejects all writes"),
        ("leader-election", (1, 2, 3), injection(), ValidationOptions(min_insync=3), "rejects writes without a broker"),
        ("leader-election", (1, 2), injection(), ValidationOptions(min_insync=2), "rejects writes without a broker"),
        (
            "unclean-election",
            (1, 2),
            injection(),
            ValidationOptions(min_insync=2),
            None,
        ),  # it is what keeps the records
    ],
)
def test_what_cannot_be_done_is_said(
    scenario: str, brokers: tuple[int, ...], given: FaultInjection, options: ValidationOptions, why: str | None
) -> None:
    row = plan_scenario(find(scenario), OtherTopics(brokers, brokers[0]), given, options)
    if why is None:
        assert row.impossible is None
    else:
        assert why in (row.impossible or "")


def test_min_insync_replicas_is_2_where_it_can_be() -> None:
    chosen = {
        (each.name, count): plan_scenario(
            each, OtherTopics(tuple(range(count)), 0), injection(), ValidationOptions()
        ).min_insync_replicas
        for each in SCENARIOS
        for count in (2, 3)
    }
    assert {key for key, least in chosen.items() if least == 1} == {
        (each.name, 2) for each in SCENARIOS if not each.unclean
    }


def test_a_controller_that_is_no_broker_cannot_be_killed() -> None:
    row = plan_scenario(find("controller-election"), OtherTopics((1, 2, 3), 3000), injection(), ValidationOptions())
    assert row.impossible == "the controller is not a broker"


def test_idempotence_needs_acks_all() -> None:
    with pytest.raises(UsageError, match="needs acks=all"):
        ValidationOptions(acks="1")
    assert not ValidationOptions(acks="1", idempotent=False).idempotent


def test_brokers_that_cannot_elect() -> None:
    around = OtherTopics((1, 2, 3), 1, no_election="brokers before 2.2 elect no leaders on request")
    impossible = {
        each.name
        for each in SCENARIOS
        if plan_scenario(each, around, injection(), ValidationOptions()).impossible == around.no_election
    }
    assert impossible == {"leader-election"}, "the others elect nothing, or can do without"


# --- before anything begins -----------------------------------------------------------------------------------------


def partition(number: int = 0, leader: int = 1, isr: tuple[int, ...] = (1, 2, 3)) -> PartitionState:
    return PartitionState("t", number, leader, 0, (1, 2, 3), isr)


def state(*partitions: PartitionState, brokers: int = 3, name: str = "t") -> ClusterState:
    topic = TopicState(name, False, None, tuple(replace(each, topic=name) for each in partitions))
    there = {n: Broker(n, "127.0.0.1", 9000 + n, None) for n in range(1, brokers + 1)}
    return ClusterState("cluster-id-1", 1, there, {name: topic})


def test_a_cluster_that_is_not_healthy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "_HEALTHY_S", 0.0)
    client = mock.Mock()
    client.target.zookeeper = None
    client.metadata.return_value = state(partition(), partition(1, isr=(1, 2)))
    with pytest.raises(Refused, match=r"1 partition not fully replicated \(t-1\)") as caught:
        make_plan(client, injection(), SCENARIOS, ValidationOptions(), controller=1)
    assert "kctl cluster health" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("looks", "refused"),
    [
        ([GateSnapshot(state(), {}, None)], None),
        ([GateSnapshot(state(), {}, None, silent={3: "no"}), GateSnapshot(state(), {}, None)], None),  # it was slow
        ([GateSnapshot(state(), {}, None, silent={2: "no", 3: "no"})] * 9, "broker 2, 3 do not respond"),
        (
            [GateSnapshot(state(), {}, None, silent={3: "no"}), *[GateSnapshot(state(brokers=2), {}, None)] * 9],
            "broker 3 does not",
        ),
    ],
)
def test_a_dead_broker_is_known_until_its_session_ends(
    looks: list[GateSnapshot], refused: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    live = mock.MagicMock()
    live.return_value.__enter__.return_value.snapshot.side_effect = looks
    monkeypatch.setattr(plan_module, "LiveCluster", live)
    made = mock.Mock()  # expired at the second look
    type(made).expired = mock.PropertyMock(side_effect=[False, True])
    monkeypatch.setattr(plan_module, "Deadline", lambda _: made)
    with nullcontext() if refused is None else pytest.raises(Refused, match=refused):
        assert plan_module._take_snapshot(mock.Mock(), state()) == looks[-1]


def test_a_validation_of_others_is_not_joined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its journal is on another machine, or another user's; that of a topic of one's own is here."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(plan_module, "_DELETED_S", 0.0)
    client = mock.Mock()
    client.target.zookeeper = None
    client.metadata.return_value = state(partition(), name=f"{leftovers.PREFIX}87654321-broker-loss")
    with pytest.raises(Refused, match="another machine or user runs a validation of this cluster") as caught:
        make_plan(client, injection(), SCENARIOS, ValidationOptions(), controller=1)
    assert "kctl topic delete kctl-validate-87654321-broker-loss" in (caught.value.hint or "")
    with leftovers.begin("prod", "cluster-id-1", "87654321", tmp_path) as held:
        held.append(leftovers.TOPIC, topic=f"{leftovers.PREFIX}87654321-broker-loss")
    plan_module.refuse_others(client, "cluster-id-1")
    with pytest.raises(Refused, match="another machine or user runs a validation"):
        plan_module.refuse_others(client, "another")


def test_a_topic_that_was_just_deleted_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda _: None)
    client = mock.Mock()
    gone = state(partition(), name=f"{leftovers.PREFIX}87654321-broker-loss")
    client.metadata.side_effect = [gone, gone, state(partition())]
    plan_module.refuse_others(client, "cluster-id-1")
    assert client.metadata.call_count == 3


def test_all_that_is_not_the_runs_own_has_to_be_in_sync() -> None:
    client = mock.Mock()
    client.metadata.return_value = state(partition(isr=(1, 2)))
    with pytest.raises(Refused, match="not healthy: 1 partition not fully replicated"):
        plan_module.wait_healthy(client, 0.0, ignore="kctl-validate-1-")
    client.metadata.return_value = state(partition(isr=(1, 2)), name="kctl-validate-1-x")
    plan_module.wait_healthy(client, 0.0, ignore="kctl-validate-1-")


def test_nothing_that_can_be_done_is_refused_with_the_reasons() -> None:
    client = mock.Mock()
    client.target.zookeeper = None
    client.metadata.return_value = state(brokers=1)
    with pytest.raises(NotSupported, match="leader-election cannot run on this cluster: a single broker"):
        make_plan(client, injection(), [find("leader-election")], ValidationOptions(), controller=1)
    with pytest.raises(Refused, match="a single broker has no other broker to take over; hooks"):
        make_plan(client, injection(zookeepers=0), SCENARIOS, ValidationOptions(), controller=1)


@pytest.mark.parametrize(
    ("chosen", "controller", "budgets", "refused"),
    [
        (["leader-election"], 1, Budgets(max_leader_ms=1), None),
        (["leader-election"], 1, Budgets(max_controller_ms=1), "--max-controller-time: leader-election cannot measure"),
        (["leader-election", "controller-election"], 1, Budgets(max_controller_ms=1), None),
        (["rolling-restart"], 3000, Budgets(max_controller_ms=1), "--max-controller-time"),  # KRaft's own controllers
        (["zookeeper-loss"], 1, Budgets(1, 1), None),
        (["controller-loss"], 3000, Budgets(max_controller_ms=1), None),
        (["quorum-loss"], 3000, Budgets(max_controller_ms=1), "--max-controller-time: quorum-loss cannot measure"),
        (["zookeeper-loss"], 1, Budgets(max_leader_ms=1), "--max-leader-time"),
        (["unclean-election"], 1, Budgets(max_gap_ms=1), "--max-gap: unclean-election cannot measure"),
        (["unclean-election", "broker-loss"], 1, Budgets(1, 1, 1), None),
    ],
)
def test_a_budget_that_nothing_can_break_is_refused(
    chosen: list[str], controller: int, budgets: Budgets, refused: str | None
) -> None:
    around, options = OtherTopics((1, 2, 3), controller), ValidationOptions(budgets=budgets)
    with nullcontext() if refused is None else pytest.raises(Refused, match=refused):
        plan_module._plan_all([find(name) for name in chosen], around, injection(controllers=3), options)


def test_a_zookeeper_that_does_not_answer_is_refused() -> None:
    client = mock.Mock()
    client.target.zookeeper = "127.0.0.1:1"
    client.target.zookeeper_security = Security()
    with pytest.raises(Refused, match="ZooKeeper does not respond"):
        make_plan(client, injection(), SCENARIOS, ValidationOptions(), controller=1)


def own(brokers: int, zookeepers: int = 1) -> Any:
    nodes = [mock.Mock(id=n, port=9000 + n) for n in range(1, brokers + 1)]
    for n, node in enumerate(nodes, 1):
        node.name = f"broker-{n}"
    keepers = [mock.Mock() for _ in range(zookeepers)]
    for n, keeper in enumerate(keepers, 1):
        keeper.name = f"zookeeper-{n}"
    spec = mock.Mock(spec=ClusterSpec, brokers=nodes, zookeepers=keepers, nodes=[*keepers, *nodes])
    spec.name = "proof"
    return spec


@pytest.mark.parametrize(
    ("running", "registered", "told"),
    [
        (["zookeeper-1", "broker-1", "broker-2"], 3, "broker-3 of cluster proof is down"),
        (["broker-1", "broker-2", "broker-3"], 3, "zookeeper-1 of cluster proof is down"),
        (["zookeeper-1", "broker-1", "broker-2", "broker-3"], 2, "broker-3 of cluster proof is down"),
        (["zookeeper-1", "broker-1"], 1, "broker-2, broker-3 of cluster proof are down"),
        ([], 3, "kctl did not set this cluster up"),  # another one has its ports
    ],
)
def test_a_node_that_is_down_is_named(
    running: list[str], registered: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session may not have expired yet: then brokers still tell of it."""
    stored = mock.Mock()
    stored.spec = own(3)
    monkeypatch.setattr(means_module, "list_clusters", lambda _: [stored])
    monkeypatch.setattr("kctl.deploy.lifecycle.running_nodes", lambda _: running)
    there = {n: Broker(n, "127.0.0.1", 9000 + n, None) for n in range(1, registered + 1)}
    with pytest.raises(Refused, match=told):
        find_fault_injection(there, None, Target("prod", ("h:1",)))


@pytest.mark.parametrize(
    ("uses_kraft", "left_out"),
    [
        (None, {"controller-loss", "quorum-loss"}),
        (False, {"controller-loss", "quorum-loss"}),
        (True, {"zookeeper-loss"}),
    ],
)
def test_all_has_no_scenario_for_servers_of_another_kind_of_cluster(
    uses_kraft: bool | None, left_out: set[str]
) -> None:
    spec = None if uses_kraft is None else mock.Mock(uses_kraft=uses_kraft)
    every = {each.name for each in SCENARIOS}
    assert every - {each.name for each in scenarios_for(replace(injection(), spec=spec))} == left_out
