"""One process's work on a rolling restart: with what it acts, within which limits, who hears of it."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from kctl.base.journal import Journal
from kctl.errors import OperationFailed
from kctl.restart.control import BrokerControl
from kctl.restart.look import Cluster
from kctl.restart.steps import Phase, RestartState, Step, follow

POLL_S = 0.25
DEFAULT_TIMEOUT_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Options:
    """broker_timeout_s: for each wait of one broker: gate, stop, start, in sync. timeout_s: no broker is taken down
    after it; one that is down is brought back first."""

    max_unavailable: int = 1
    stable_checks: int = 3
    stable_interval_s: float = 2.0
    broker_timeout_s: float = 600.0
    timeout_s: float = DEFAULT_TIMEOUT_S
    elect: bool = True


class Clock(Protocol):
    """Time as the run takes it, so that tests need none."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Told(Protocol):
    """Who hears of it."""

    def note(self, line: str) -> None: ...

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


class Silent:
    """Nobody."""

    def note(self, line: str) -> None:
        pass

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        pass


class NotFinished(OperationFailed):
    """A rolling restart has begun and stands still: its journal says where."""

    code = "not_finished"


@dataclass
class Run:
    """One process's work on a run. state: follows the journal."""

    cluster: Cluster
    control: BrokerControl
    journal: Journal
    state: RestartState
    options: Options
    told: Told
    clock: Clock
    elected_left: Sequence[str] = ()
    elected_count: int | None = None

    def entry(self, step: Step, **fields: object) -> None:
        """Write it down, then take it for true."""
        self.journal.append(step.value, **fields)
        follow(self.state, step, self.journal.entries[-1])


def ids(nodes: Collection[int]) -> str:
    return ", ".join(map(str, nodes))


def ms(run: Run, began: float) -> int:
    return round((run.clock.now() - began) * 1000)


def share(run: Run) -> tuple[float, float]:
    done = sum(row.phase is Phase.DONE for row in run.state.brokers.values())
    return done, len(run.state.brokers)
