"""The order in which each scenario breaks and mends, over a stage that notes what is done on it; and the stage."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kctl.base.outcomes import ItemResult
from kctl.errors import KctlError, OperationFailed, OutcomeUnknown, Refused, TimedOut
from kctl.model import ClusterState, PartitionState
from kctl.topics.create import CreatedTopic
from kctl.topics.new_topic import NewTopic
from kctl.validate.scenarios import find
from kctl.validate.stage import Stage, TopicAttempt, scenario_failed

# --- the scenarios --------------------------------------------------------------------------------------------------


@dataclass
class Noted:
    """A stage whose cluster does what the scenario waits for; notes the acts and the waits that matter."""

    leaders: dict[int, int]
    replicas: tuple[int, ...]
    controls: int = 1
    servers: tuple[str, ...] = ("zk1",)
    done: list[str] = field(default_factory=list)
    roles: dict[int, str] = field(default_factory=dict)
    breaker: Any = None
    wait_s: float = 1.0
    doubts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.breaker = mock.Mock()
        for act in ("kill", "pause", "unpause"):
            getattr(self.breaker, act).side_effect = lambda broker, act=act: self.act(act, broker)
        self.breaker.injection.servers.return_value.names = self.servers
        self.breaker.kill_servers.side_effect = lambda names: self.done.append(f"kill {', '.join(names)}")
        self.breaker.start_servers.side_effect = lambda names, _: self.done.append(f"start {', '.join(names)}")
        self.breaker.running_servers.return_value = []
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

    def plan_topic(self) -> str:
        return "t-later"

    def try_topic(self, attempt: str) -> None:
        self.done.append(f"create {attempt}")

    def check_topic(self, attempt: str) -> None:
        self.done.append(f"check {attempt}")

    def fault(self, name: str, *_brokers: int) -> None:
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
            ["writes", "«kill -9 of ZooKeeper»", "kill zk1", "later", "writes", "«start of ZooKeeper»",
             "start zk1", "full", "writes"],
        ),
        (
            "controller-loss", Noted({0: 1}, (1,), controls=102, servers=("controller-101", "controller-102")),
            ["writes", "«kill -9 of the active controller 102»", "kill controller-102", "later", "writes",
             "«start of controller 102»", "start controller-102", "full", "writes"],
        ),
        (
            "quorum-loss", Noted({0: 1}, (1,), servers=("c1", "c2", "c3")),
            ["writes", "«kill -9 of c1, c2»", "kill c1, c2", "create t-later", "later", "writes", "«start of c1, c2»",
             "start c1, c2", "full", "check t-later", "writes"],
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
    stage.breaker.running_servers.return_value = ["zk1:2181"]
    find("zookeeper-loss").run(stage)  # type: ignore[arg-type]
    assert stage.doubts == ["'kill -9 of ZooKeeper' had no effect: zk1:2181 kept running until the restart"]


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
    made.client.metadata.return_value = ClusterState("cluster-id-1", 1, {}, {})  # type: ignore[attr-defined]
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


# --- a topic that is created while there is no controller -----------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "partitions_after", "error"),
    [
        (OutcomeUnknown("no response"), None, None),
        (OutcomeUnknown("no response"), 2, None),
        (TimedOut("no response"), 1, "has 1 of 2 partitions"),
        (Refused("no controller"), None, None),
        (Refused("no controller"), 2, "was refused, and the topic exists"),
        (ItemResult.CREATED, 2, None),
        (ItemResult.CREATED, None, "was reported as created, and does not exist"),
        (ItemResult.FAILED, 2, None),
    ],
)
def test_a_topic_created_without_a_controller_exists_completely_or_not_at_all(
    tmp_path: Path,
    outcome: KctlError | ItemResult,
    partitions_after: int | None,
    error: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempt = TopicAttempt(NewTopic("t-later", assignment=((1, 2), (2, 1))), [])
    row = CreatedTopic("t-later", outcome if isinstance(outcome, ItemResult) else ItemResult.FAILED, 2, 2, {})
    answer = outcome if isinstance(outcome, KctlError) else None
    created = mock.Mock(side_effect=[answer] if answer else [[row]])
    monkeypatch.setattr("kctl.validate.stage.create_topics", created)
    made = stage(tmp_path)
    made.try_topic(attempt)
    made.breaker.record_topic.assert_called_once_with("t-later")  # type: ignore[attr-defined]
    topics = {} if partitions_after is None else {"t-later": mock.Mock(partitions=[None] * partitions_after)}
    made.client.metadata.return_value = mock.Mock(topics=topics)  # type: ignore[attr-defined]
    with nullcontext() if error is None else pytest.raises(OperationFailed, match=error):
        made.check_topic(attempt)
