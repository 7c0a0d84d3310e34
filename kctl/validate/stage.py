"""The actions of a scenario: on the test topic under load, and on the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.base.outcomes import ItemResult
from kctl.cluster.controller import read_controller
from kctl.errors import ConnectionFailed, KctlError, OperationFailed, OutcomeUnknown, Reason, Refused, TimedOut
from kctl.model import PartitionState
from kctl.restart.control import Act
from kctl.topics.create import CreatedTopic, create_topics, plan_create
from kctl.topics.new_topic import NewTopic
from kctl.validate.experiment import Experiment
from kctl.validate.fault_injection import Breaker

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

ProgressLine = Callable[[str], None]
_POLL_S = 0.1
_ATTEMPT_S = 5.0  # to create a topic without a controller
_NAMES = {"kill": "kill -9", "stop": "stop", "pause": "pause"}


@dataclass
class TopicAttempt:
    """A topic that a scenario tries to create. created, refused: what the brokers reported; neither if unknown."""

    topic: NewTopic
    plan: Sequence[CreatedTopic]
    created: bool = False
    refused: bool = False


@dataclass
class Stage:
    """The environment of a scenario.

    experiments: one, or several under the same faults. more: records per partition that a wait for writes requires.
    wait_s: maximum duration of a single wait. roles: broker → role, for names of faults.
    """

    client: ClusterClient
    breaker: Breaker
    experiments: Sequence[Experiment]
    folder: Path
    more: int
    progress: ProgressLine
    wait_s: float
    roles: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.breaker.on_fault = self._record_fault

    def _record_fault(self, act: Act, broker: int) -> None:
        role = f", {self.roles[broker]}" if broker in self.roles else ""
        self.fault(f"{_NAMES[act]} of broker {broker}{role}", broker)

    def fault(self, name: str, *brokers: int) -> None:
        """Record a fault immediately before it is injected."""
        self.progress(name)
        for experiment in self.experiments:
            experiment.fault(name, *brokers)

    def doubt(self, why: str) -> None:
        """Add a reason why the run proves less than it should."""
        for experiment in self.experiments:
            experiment.doubts.append(why)

    # --- actions; each records its fault --------------------------------------------------------------------------

    def start(self, broker: int) -> None:
        self.progress(f"starting broker {broker}")
        self.breaker.start(broker, timeout_s=self.wait_s)

    def elect_preferred(self) -> None:
        """Elect the preferred leaders of the test topics. Raises OperationFailed if one is not elected."""
        from kctl.leader.election import carry_out, choose, plan_preferred

        state, selected = choose(self.client, self.topics)
        rows = carry_out(self.client, plan_preferred(state, selected))
        for row in rows:
            if row.result is not ItemResult.ELECTED:
                raise OperationFailed(f"preferred leader of {row.tp} was not elected: {row.reason}")

    def plan_topic(self) -> TopicAttempt:
        """Plan a topic of the run, placed like the first test topic, to create while there is no controller."""
        first = [p for p in self.partitions() if p.topic == self.topics[0]]
        topic = NewTopic(f"{self.topics[0]}-later", assignment=tuple(tuple(p.replicas) for p in first))
        return TopicAttempt(topic, plan_create(self.client, [topic]))

    def try_topic(self, attempt: TopicAttempt) -> None:
        """Try to create the topic. A failure is expected; whether it may have been created is recorded."""
        self.progress(f"trying to create topic {attempt.topic.name}")
        self.breaker.record_topic(attempt.topic.name)
        try:
            rows = create_topics(self.client, [attempt.topic], attempt.plan, timeout_s=_ATTEMPT_S)
        except (OutcomeUnknown, ConnectionFailed, TimedOut):
            return
        except KctlError:
            attempt.refused = True
            return
        attempt.created = rows[0].result is ItemResult.CREATED

    def check_topic(self, attempt: TopicAttempt) -> None:
        """Check the topic after the controllers are back. Raises OperationFailed if it exists in part, or wrongly."""
        name, expected = attempt.topic.name, len(attempt.topic.assignment or ())
        topic = self.client.metadata([name]).topics.get(name)
        if topic is None:
            if attempt.created:
                raise OperationFailed(f"topic {name} was reported as created, and does not exist")
        elif attempt.refused:
            raise OperationFailed(f"the creation of topic {name} was refused, and the topic exists")
        elif len(topic.partitions) != expected:
            raise OperationFailed(f"topic {name} has {len(topic.partitions)} of {expected} partitions")

    # --- reads ----------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> list[str]:
        return [experiment.settings.topic for experiment in self.experiments]

    def partitions(self) -> list[PartitionState]:
        """Return the current partitions of all test topics."""
        state = self.client.metadata(self.topics)
        return [p for name in self.topics if name in state.topics for p in state.topics[name].partitions]

    def controller(self) -> int:
        """Return the id of the controller. Raises Refused if there is none."""
        controller = read_controller(self.client).controller_id
        if controller is None:
            raise Refused("the cluster has no controller", hint="check with `kctl controller`", reason=Reason.NOT_READY)
        return controller

    # --- waits ----------------------------------------------------------------------------------------------------

    def wait_for_writes(self, what: str = "writing") -> None:
        """Wait until every partition accepts writes for a while."""
        self.progress(what)
        for experiment in self.experiments:
            experiment.wait_writes(self.more, self.wait_s)

    def wait_for_recovery(self) -> None:
        """Wait until all partitions have a leader and a full ISR."""
        self.progress("waiting until all replicas are in sync")
        for experiment in self.experiments:
            experiment.wait_recovered(self.wait_s)

    def keep_writing(self, seconds: float, what: str) -> None:
        """Let time pass while the producers write. Raises like `check_workers`."""
        self.progress(what)
        deadline = Deadline(seconds)
        while not deadline.expired:
            self.check_workers()
            time.sleep(_POLL_S)

    def check_workers(self) -> None:
        """Raise OperationFailed if a producer or consumer has exited."""
        for experiment in self.experiments:
            experiment.producer.check()
            experiment.consumer.check()

    def wait_until(self, holds: Callable[[Collection[PartitionState]], bool], what: str) -> None:
        """Wait until the partitions of the test topics satisfy a condition. Raises TimedOut."""
        self.progress(f"waiting until {what}")
        deadline = Deadline(self.wait_s)
        while True:
            self.check_workers()
            with suppress(ConnectionFailed, TimedOut):
                if holds(self.partitions()):
                    return
            if deadline.expired:
                raise TimedOut(f"timed out after {self.wait_s:g} s waiting until {what}")
            time.sleep(_POLL_S)


def scenario_failed(name: str, exc: KctlError) -> OperationFailed:
    """Return the error of a scenario that has started, with exit code 5."""
    return OperationFailed(f"{name} did not complete: {exc.message}", hint=exc.hint, details=exc.details)
