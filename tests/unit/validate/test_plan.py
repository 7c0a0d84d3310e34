"""What a validation is going to do, whether it can, and the order in which each scenario breaks and mends: pure rules,
and scenarios over a stage that notes what is done on it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kctl.deploy.layout import ClusterSpec
from kctl.errors import KctlError, NotSupported, OperationFailed, Refused, TimedOut, UsageError
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
from kctl.validate.scenarios import SCENARIOS, find
from kctl.validate.stage import Stage, scenario_failed


def injection(acts: Collection[str] = ACTS, zookeepers: int = 1) -> FaultInjection:
    made = mock.Mock(acts=acts)
    keepers = mock.Mock(names=("zk1:2181",)) if zookeepers else "hooks.yaml has no ZooKeeper commands"
    return FaultInjection(made, None, "by hand", keepers)


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
        plan_module._plan_all([find(name) for name in chosen], around, injection(), options)


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


# --- the scenarios --------------------------------------------------------------------------------------------------


@dataclass
class Noted:
    """A stage whose cluster does what the scenario waits for; notes the acts and the waits that matter."""

    leaders: dict[int, int]
    replicas: tuple[int, ...]
    controls: int = 1
    done: list[str] = field(default_factory=list)
    roles: dict[int, str] = field(default_factory=dict)
    breaker: Any = None
    wait_s: float = 1.0
    doubts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.breaker = mock.Mock()
        for act in ("kill", "pause", "unpause"):
            getattr(self.breaker, act).side_effect = lambda broker, act=act: self.act(act, broker)
        self.breaker.kill_zookeepers.side_effect = lambda: self.done.append("kill zookeepers")
        self.breaker.start_zookeepers.side_effect = lambda _: self.done.append("start zookeepers")
        self.breaker.serving_zookeepers.return_value = []
        self.away: set[int] = set()

    def act(self, act: str, broker: int) -> None:
        self.done.append(f"{act} {broker}")
        (self.away.discard if act in ("unpause", "start") else self.away.add)(broker)

    def start(self, broker: int) -> None:
        self.act("start", broker)

    def partitions(self) -> list[PartitionState]:
        there = tuple(broker for broker in self.replicas if broker not in self.away)
        return [
            PartitionState("t", number, leader if leader in there else there[0] if there else -1, 0, self.replicas,
                           there)
            for number, leader in self.leaders.items()
        ]  # fmt: skip

    def controller(self) -> int:
        return self.controls

    def wait_until(self, met: Callable[[Collection[PartitionState]], bool], what: str) -> None:
        assert met(self.partitions()), what

    def wait_for_writes(self, _: str = "") -> None:
        self.done.append("writes")

    def wait_for_recovery(self) -> None:
        assert not self.away
        self.done.append("full")

    def fault(self, name: str) -> None:
        self.done.append(f"«{name}»")

    def doubt(self, why: str) -> None:
        self.doubts.append(why)

    def elect_preferred(self) -> None:
        self.done.append("elect")

    def keep_writing(self, _seconds: float, _what: str) -> None:
        self.done.append("later")

    def progress(self, _: str) -> None:
        pass


@pytest.mark.parametrize(
    ("scenario", "stage", "expected"),
    [
        (
            "leader-election", Noted({0: 1, 1: 2, 2: 3}, (1, 2, 3)),
            ["writes", "kill 2", "writes", "start 2", "full", "«election of the preferred leaders»", "elect", "writes"],
        ),
        (
            "controller-election", Noted({0: 1, 1: 2, 2: 3}, (1, 2, 3), controls=3),
            ["writes", "kill 3", "writes", "start 3", "full", "writes"],
        ),
        (
            "broker-loss", Noted({0: 1, 1: 2, 2: 3}, (1, 2, 3), controls=3),
            ["writes", "kill 2", "later", "writes", "start 2", "full", "writes"],
        ),
        (
            "unclean-election", Noted({0: 2}, (2, 3)),
            ["writes", "pause 3", "later", "kill 2", "unpause 3", "later", "start 2", "full", "writes"],
        ),
        (
            "zookeeper-loss", Noted({0: 1}, (1,)),
            ["writes", "«kill -9 of ZooKeeper»", "kill zookeepers", "later", "writes", "«start of ZooKeeper»",
             "start zookeepers", "full", "writes"],
        ),
    ],
)  # fmt: skip
def test_the_order_of_a_scenario(
    scenario: str, stage: Noted, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    find(scenario).run(stage)  # type: ignore[arg-type]
    assert stage.done == expected


def test_zookeepers_that_serve_on_are_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    stage = Noted({0: 1}, (1,))
    stage.breaker.serving_zookeepers.return_value = ["zk1:2181"]
    find("zookeeper-loss").run(stage)  # type: ignore[arg-type]
    assert stage.doubts == ["'kill -9 of ZooKeeper' had no effect: zk1:2181 responded before the restart"]


def test_a_leader_election_needs_a_leader_besides_the_controller() -> None:
    with pytest.raises(Refused, match="only the controller leads"):
        find("leader-election").run(Noted({0: 1}, (1, 2)))  # type: ignore[arg-type]


# --- the stage ------------------------------------------------------------------------------------------------------


def stage(tmp_path: Path, wait_s: float = 0.05) -> Stage:
    experiment = mock.Mock()
    experiment.settings.topic = "t"
    return Stage(mock.Mock(), mock.Mock(), [experiment], tmp_path, 5, lambda _: None, wait_s)


def test_a_wait_has_an_end(tmp_path: Path) -> None:
    made = stage(tmp_path)
    made.client.metadata.return_value = state(partition())  # type: ignore[attr-defined]
    with pytest.raises(TimedOut, match=r"timed out after 0\.05 s waiting until it rains"):
        made.wait_until(lambda _: False, "it rains")


def test_a_producer_that_ends_by_itself_ends_the_wait(tmp_path: Path) -> None:
    made = stage(tmp_path, wait_s=60)
    made.experiments[0].producer.check.side_effect = OperationFailed("gone")  # type: ignore[attr-defined]
    with pytest.raises(OperationFailed, match="gone"):
        made.wait_until(lambda _: False, "it rains")
    with pytest.raises(OperationFailed, match="gone"):
        made.keep_writing(60, "later")


def test_a_fault_names_the_broker_and_what_it_is(tmp_path: Path) -> None:
    made = stage(tmp_path)
    made.roles[2] = "the controller"
    made.breaker.on_fault("kill", 2)  # type: ignore[misc]
    made.breaker.on_fault("pause", 1)  # type: ignore[misc]
    assert made.experiments[0].fault.mock_calls == [  # type: ignore[attr-defined]
        mock.call("kill -9 of broker 2, the controller", 2), mock.call("pause of broker 1", 1),
    ]  # fmt: skip


def test_what_ends_a_run_that_has_begun_is_exit_code_5() -> None:
    failed: KctlError = scenario_failed("broker-loss", Refused("no", hint="do this"))
    assert (failed.exit_code, failed.message, failed.hint) == (
        5, "broker-loss did not complete: no", "do this",
    )  # fmt: skip
