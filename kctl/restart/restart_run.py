"""The parts of a rolling restart that one process carries out: control, options, clock, reporter."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from kctl.base.journal import Journal
from kctl.errors import OperationFailed
from kctl.restart.control import BrokerControl
from kctl.restart.live_cluster import Cluster
from kctl.restart.steps import BrokerPhase, RestartState, RestartStep, follow

POLL_S = 0.25
DEFAULT_TIMEOUT_S = 24 * 3600.0
HOW_TO_RESUME = "run the same command again to resume, or add --abandon to discard the run"


@dataclass(frozen=True, slots=True)
class RestartOptions:
    """The options of a rolling restart.

    broker_timeout_s: limit of each wait (gate, stop, start, in sync). timeout_s: after it, no broker is stopped, but
    brokers that are down are still brought back.
    """

    max_unavailable: int = 1
    stable_checks: int = 3
    stable_interval_s: float = 2.0
    broker_timeout_s: float = 600.0
    timeout_s: float = DEFAULT_TIMEOUT_S
    elect: bool = True


class RestartClock(Protocol):
    """The clock of a run, replaceable in tests."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class RestartReporter(Protocol):
    """A receiver of the progress of a run."""

    def note(self, line: str) -> None: ...

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


class NoReporter:
    """A reporter that shows nothing."""

    def note(self, line: str) -> None:
        pass

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        pass


class NotFinished(OperationFailed):
    """A rolling restart that started and is unfinished; its journal has the details."""

    code = "not_finished"


@dataclass
class RestartRun:
    """One process's work on a run. state: updated with each journal entry. controllers: the dedicated controllers.

    how_to_resume: the next step after an interruption, as text.
    """

    cluster: Cluster
    control: BrokerControl
    journal: Journal
    state: RestartState
    options: RestartOptions
    reporter: RestartReporter
    clock: RestartClock
    elected_left: Sequence[str] = ()
    elected_count: int | None = None
    controllers: frozenset[int] = frozenset()
    how_to_resume: str = HOW_TO_RESUME

    def entry(self, step: RestartStep, **fields: object) -> None:
        """Write an entry to the journal, then apply it to the state."""
        self.journal.append(step.value, **fields)
        follow(self.state, step, self.journal.entries[-1])


def named(run: RestartRun, nodes: Collection[int]) -> str:
    """Return nodes as text, e.g. "broker 1, 2"."""
    kind = "controller" if nodes and run.controllers.issuperset(nodes) else "broker"
    return f"{kind} {', '.join(map(str, nodes))}"


def ms(run: RestartRun, began: float) -> int:
    return round((run.clock.now() - began) * 1000)


def done_and_total(run: RestartRun) -> tuple[float, float]:
    done = sum(row.phase is BrokerPhase.DONE for row in run.state.brokers.values())
    return done, len(run.state.brokers)
