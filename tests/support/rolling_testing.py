"""A simulated cluster for rolling restarts: brokers, ISRs and a controller, with a clock that advances only in waits.
The journal is real. A mock, because no real cluster dies at the twentieth entry on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from health_testing import partition, state
from kctl.errors import ConnectionFailed, KctlError, OperationFailed, TimedOut
from kctl.model import Broker, ClusterState
from kctl.restart import journals
from kctl.restart.control import Act
from kctl.restart.live_cluster import RestartElection
from kctl.restart.plan import choose
from kctl.restart.restart_run import RestartOptions, RestartRun
from kctl.restart.run import carry_out
from kctl.restart.snapshot import GateSnapshot

BROKERS = {node: Broker(node, f"host{node}", 9092) for node in (1, 2, 3)}
QUICK = RestartOptions(stable_checks=3, stable_interval_s=2, broker_timeout_s=60)


@dataclass
class Simulated:
    """Three brokers, one topic; broker, control, clock and watcher in one.

    in_sync_after_s: time until a started broker is in sync. stays_down, hangs: brokers that do not start, do not stop.
    acted: the actions. least: the smallest ISR so far. later: number of a gate check → an event at that check.
    overlooked: brokers missing in the next response. topics_hidden, quorum: hidden from the user.
    """

    now_s: float = 0.0
    up: set[int] = field(default_factory=lambda: {1, 2, 3})
    replicas: str = "123"
    min_isr: int = 2
    who_controls: int | None = 3
    in_sync_after_s: float = 5.0
    stays_down: set[int] = field(default_factory=set)
    hangs: set[int] = field(default_factory=set)
    started_at: dict[int, float] = field(default_factory=dict)
    acted: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    least: int = 3
    elections: int = 0
    zookeeper: str | None = None
    gates: int = 0
    later: dict[int, Callable[[], object]] = field(default_factory=dict)
    overlooked: frozenset[int] = frozenset()
    topics_hidden: bool = False
    no_election: str | None = None
    quorum: KctlError | None = None
    acts: Collection[Act] = ("stop", "start")

    # --- the cluster

    def snapshot(self, brokers: Collection[int]) -> GateSnapshot:
        self.gates += bool(brokers)
        for moment, happens in list(self.later.items()):
            if self.gates >= moment:
                del self.later[moment]
                happens()
        return GateSnapshot(self._state(), {"t": self.min_isr}, {}, self.quorum, self.zookeeper)

    def hides_topics(self) -> bool:
        return self.topics_hidden

    def _state(self) -> ClusterState:
        if not self.up:
            raise ConnectionFailed("nobody answers")
        isr = "".join(node for node in self.replicas if self._in_sync(int(node)))
        cluster = state([partition(self.replicas, isr or self.replicas[0], leader=int(isr[0]) if isr else -1)],
                        alive="".join(map(str, sorted(self.up))))  # fmt: skip
        return ClusterState("cluster-id", self.who_controls, cluster.brokers, cluster.topics)

    def _in_sync(self, node: int) -> bool:
        return node in self.up and self.now_s >= self.started_at.get(node, -1e9) + self.in_sync_after_s

    def registered(self) -> frozenset[int]:
        self.overlooked, missing = frozenset(), self.overlooked
        return frozenset(self.up - missing)

    def answers(self, broker: int) -> bool:
        return broker in self.up

    def controller(self) -> int | None:
        return self.who_controls

    def why_no_election(self) -> str | None:
        return self.no_election

    def elect(self) -> RestartElection:
        self.elections += 1
        return RestartElection(2)

    def watch(self, brokers: Collection[int]) -> Simulated:
        return self

    def end(self) -> int | None:
        return 1234

    # --- what is done to it

    def stop(self, broker: int, *, timeout_s: float) -> None:
        self.acted.append(f"stop {broker}")
        if broker in self.hangs:
            self.sleep(timeout_s)
            raise TimedOut(f"broker {broker} did not stop")
        if broker not in self.up:
            return
        self.up.discard(broker)
        self.least = min(self.least, sum(self._in_sync(int(node)) for node in self.replicas))
        if broker == self.who_controls:
            self.who_controls = min(self.up, default=None)
        self.sleep(1)

    def start(self, broker: int, *, timeout_s: float) -> None:
        self.acted.append(f"start {broker}")
        if broker in self.stays_down:
            raise OperationFailed(f"broker {broker} did not start: it ended", hint="the end of its log:\nFATAL")
        if broker not in self.up:
            self.sleep(3)
            self.up.add(broker)
            self.started_at[broker] = self.now_s

    def kill(self, broker: int) -> None:
        raise AssertionError("no restart kills")

    pause = unpause = kill

    # --- clock and progress

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        self.told.append(message)

    def note(self, line: str) -> None:
        self.notes.append(line)


def open_run(simulated: Simulated, options: RestartOptions = QUICK, only: Collection[int] | None = None) -> RestartRun:
    """Start or resume a run like the command."""
    path = journals.find_unfinished("cluster-id")
    held, found = journals.begin_or_resume("dev", "cluster-id", list(choose(BROKERS, only).values()), path)
    return RestartRun(simulated, simulated, held, found, options, simulated, simulated)


def restart(simulated: Simulated, options: RestartOptions = QUICK, only: Collection[int] | None = None) -> RestartRun:
    run = open_run(simulated, options, only)
    with run.journal:
        carry_out(run)
    return run
