"""What a scenario acts on: its topic under load, and the cluster that it breaks."""

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
from kctl.errors import ConnectionFailed, KctlError, OperationFailed, Refused, TimedOut
from kctl.model import PartitionState
from kctl.restart.control import Act
from kctl.validate.experiment import Experiment
from kctl.validate.means import Breaker

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

Told = Callable[[str], None]
_POLL_S = 0.1
_NAMES = {"kill": "kill -9", "stop": "stop", "pause": "pause"}


@dataclass
class Stage:
    """experiments: one, or several that see the same faults. more: records of each partition that a wait for normal
    writes asks for. wait_s: the longest that each single wait may take. roles: by broker, what it is, for the names of
    faults."""

    client: ClusterClient
    breaker: Breaker
    experiments: Sequence[Experiment]
    folder: Path
    more: int
    told: Told
    wait_s: float
    roles: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.breaker.told = self._broken

    def _broken(self, act: Act, broker: int) -> None:
        role = f", {self.roles[broker]}" if broker in self.roles else ""
        self.fault(f"{_NAMES[act]} of broker {broker}{role}", broker)

    def fault(self, name: str, *brokers: int) -> None:
        """Right before something is done to the cluster."""
        self.told(name)
        for experiment in self.experiments:
            experiment.fault(name, *brokers)

    def doubt(self, why: str) -> None:
        """What was seen that makes the run prove less than it should."""
        for experiment in self.experiments:
            experiment.doubts.append(why)

    # --- acts; each notes the fault by itself ---------------------------------------------------------------------

    def start(self, broker: int) -> None:
        self.told(f"starting broker {broker}")
        self.breaker.start(broker, timeout_s=self.wait_s)

    def elect_preferred(self) -> None:
        """Of the own topics; raises OperationFailed when a partition does not get its preferred leader."""
        from kctl.leader.election import carry_out, choose, plan_preferred

        state, chosen = choose(self.client, self.topics)
        rows = carry_out(self.client, plan_preferred(state, chosen))
        for row in rows:
            if row.result is not ItemResult.ELECTED:
                raise OperationFailed(f"{row.tp} did not get its preferred leader: {row.reason}")

    # --- looks ----------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> list[str]:
        return [experiment.settings.topic for experiment in self.experiments]

    def partitions(self) -> list[PartitionState]:
        """Of all own topics, as a broker says now."""
        state = self.client.metadata(self.topics)
        return [p for name in self.topics if name in state.topics for p in state.topics[name].partitions]

    def controller(self) -> int:
        """Raises Refused when it is no broker that can be broken."""
        found = read_controller(self.client).controller_id
        if found is None:
            raise Refused("the cluster has no controller now", hint="kctl controller show")
        return found

    # --- waits ----------------------------------------------------------------------------------------------------

    def steady(self, what: str = "writing") -> None:
        """Until every partition takes writes for a while."""
        self.told(what)
        for experiment in self.experiments:
            experiment.wait_writes(self.more, self.wait_s)

    def recovered(self) -> None:
        """Until all partitions have their leaders and full ISRs."""
        self.told("waiting until all replicas are in sync")
        for experiment in self.experiments:
            experiment.wait_recovered(self.wait_s)

    def go_on(self, seconds: float, what: str) -> None:
        """Time passes, and the producers have to live."""
        self.told(what)
        deadline = Deadline(seconds)
        while not deadline.expired:
            self.alive()
            time.sleep(_POLL_S)

    def alive(self) -> None:
        """Raises OperationFailed when a process has ended by itself."""
        for experiment in self.experiments:
            experiment.producer.check()
            experiment.consumer.check()

    def until(self, met: Callable[[Collection[PartitionState]], bool], what: str) -> None:
        """Until the own partitions are so. Raises TimedOut."""
        self.told(f"waiting until {what}")
        deadline = Deadline(self.wait_s)
        while True:
            self.alive()
            with suppress(ConnectionFailed, TimedOut):
                if met(self.partitions()):
                    return
            if deadline.expired:
                raise TimedOut(f"after {self.wait_s:g} s still not: {what}")
            time.sleep(_POLL_S)


def began_and_failed(name: str, exc: KctlError) -> OperationFailed:
    """What ends a run that has begun, as exit code 5."""
    return OperationFailed(f"{name} did not come to its end: {exc.message}", hint=exc.hint, details=exc.details)
