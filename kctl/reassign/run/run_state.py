"""One run in this process: journal, state, listener, waits and retries."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kctl.base.journal import Journal
from kctl.base.units import format_duration, format_size
from kctl.errors import ConnectionFailed, KctlError, NotHealthy, OperationFailed, OutcomeUnknown, TimedOut
from kctl.protocol.error_meanings import LOOK_UP_AGAIN
from kctl.reassign.planner.batches import receivers_of
from kctl.reassign.run import journals
from kctl.reassign.run.journals import RunRequest
from kctl.reassign.run.progress import Meter, RunProgress
from kctl.reassign.run.run_plan import copy_bytes
from kctl.reassign.run.steps import Mode, RunState, RunStep, ThrottlePhase, advance, replay

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.reassign.run.reached import BrokerLeft, PlanPositions
    from kctl.reassign.run.throttle_changes import Tampering, ThrottleKey


WAYS_OUT = "resume with `kctl topic reassign resume`, or cancel the moves in flight with `kctl topic reassign cancel`"

CANCEL_ONLY = "end this run and its moves in flight with `kctl topic reassign cancel`, then make a new plan"


_TAKEN_OVER = {
    RunRequest.CANCEL: "canceled by `kctl topic reassign cancel`",
    RunRequest.PAUSE_NOW: "paused by `kctl topic reassign pause --now`",
}


_RETRY_S = 1.0

_T = TypeVar("_T")


class RunListener(Protocol):
    """A receiver of the progress, notes and warnings of a run."""

    def phase(self, text: str) -> None: ...

    def progress(self, progress: RunProgress) -> None: ...

    def note(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...


class Yielded(NotHealthy):
    """Another kctl takes over the run, and reports the outcome."""

    code = "yielded"
    label = ""


class Paused(NotHealthy):
    """The run paused after its batch, as another kctl requested."""

    label = ""


class Stopped(OperationFailed):
    """The run cannot continue now; its journal stays open."""

    code = "stopped"


@dataclass
class Run:
    """One run in this process. in_flight: partitions of the batch that were moving at the last read; None: unknown.

    read_back: the positions at the end. ways_out: the commands to offer if the run stops. tampering: changes that
    others made to the throttle.
    """

    client: ClusterClient
    journal: Journal
    state: RunState
    listener: RunListener
    in_flight: int | None = None
    read_back: tuple[PlanPositions, list[BrokerLeft]] | None = None
    ways_out: str = WAYS_OUT
    tampering: dict[ThrottleKey, Tampering] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan = self.state.plan
        todo = [plan.reassignments[position] for batch in plan.batches for position in batch]
        self.total_bytes = sum(map(copy_bytes, todo))
        self.total_partitions = len(todo)
        self.done_bytes = self.done_copies = self.done_partitions = 0
        for number in range(self.state.batches_done):
            self.count_batch(number)
        self.meter = Meter()

    def count_batch(self, number: int) -> None:
        """Add a completed batch to the totals; its copies are not observed again."""
        self.done_bytes += self.state.plan.bytes_of(number)
        self.done_partitions += len(self.state.plan.batches[number])
        self.done_copies += sum(len(receivers_of(r)) for r in self.state.plan.batch(number))

    def write(self, step: RunStep, **fields: Any) -> None:
        """Append an entry to the journal, synced to disk, and advance `state`."""
        self.journal.append(step.value, **fields)
        advance(self.state, self.journal.entries[-1])

    @property
    def limit_s(self) -> float:
        """Return the time to tolerate a cluster that does not respond or makes no progress."""
        return self.state.plan.stall_after_ms / 1000

    def handle_requests(self) -> None:
        """Pause if another kctl requests a pause. Raises Yielded if another kctl takes the run over."""
        request = journals.read_request(self.journal.path)
        if request is None:
            return
        if request is not RunRequest.PAUSE:
            journals.withdraw_request(self.journal.path)
            raise Yielded(_TAKEN_OVER[request], hint="that command takes over the run, and reports its outcome")
        if self.state.mode is Mode.RUNNING:
            self.write(RunStep.PAUSE, now=False, pid=self.state.pid)
            when = "after this batch" if self.state.batch_open else "now"
            self.listener.note(f"pause requested: {when}")
        journals.withdraw_request(self.journal.path)

    def wait(self, seconds: float) -> None:
        """Handle requests, then sleep."""
        self.handle_requests()
        time.sleep(seconds)

    def retry_transient(self, act: Callable[[], _T], what: str) -> _T:
        """Call `act` until it succeeds, while brokers or the controller are unavailable. `act` must be idempotent."""
        since: float | None = None
        while True:
            try:
                return act()
            except KctlError as exc:
                if not transient(exc):
                    raise
                if since is None:
                    since = time.monotonic()
                    self.listener.warn(f"{what}: {exc.message}; retrying for {_duration(self.limit_s)}")
                elif time.monotonic() - since > self.limit_s:
                    raise
            self.wait(_RETRY_S)

    def stopped(self, why: str, hint: str | None = None, **details: object) -> Stopped:
        """Return the error that ends the run in this process: reason, state of the cluster, next commands."""
        state = {"journal": str(self.journal.path), "in_flight": self.in_flight, "throttled": self.state.throttled}
        return Stopped(
            f"{why}; {self.situation()}",
            hint="; ".join(filter(None, [hint, self.ways_out])),
            details={**state, **details},
        )

    def situation(self) -> str:
        """Describe the moves in flight and the active throttle, as far as this process knows."""
        return situation(self.state, self.in_flight)


def situation(state: RunState, in_flight: int | None) -> str:
    """Describe the moves in flight and the throttle in one phrase. in_flight None: unknown."""
    batch = f"batch {state.batches_done + 1} of {len(state.plan.batches)}"
    if in_flight is None and state.batch_open:
        moving = f"{batch} may be in flight"
    elif in_flight and state.batch_open:
        what = "1 partition is" if in_flight == 1 else f"{in_flight:,} partitions are"
        moving = f"{what} in flight ({batch}), and the brokers continue to copy"
    else:
        moving = "nothing is in flight"
    return f"{moving}; {throttle_phrase(state)}"


def throttle_phrase(state: RunState) -> str:
    """Describe the active throttle of the run."""
    if state.throttle_phase is ThrottlePhase.ON and state.throttle_rate is not None:
        return f"the throttle of {format_size(state.throttle_rate)}/s is on"
    if state.throttle_phase is ThrottlePhase.OFF:
        return (
            "no throttle of the run is on"
            if state.throttle_left is None
            else "brokers that were down keep the throttle of the run"
        )
    return "the throttle may be on at some brokers"


def transient(exc: KctlError) -> bool:
    """Return True if a retry of the request may succeed."""
    if isinstance(exc, (ConnectionFailed, OutcomeUnknown, TimedOut)):
        return True
    return exc.details.get("kafka_error_code") in LOOK_UP_AGAIN


def open_run(client: ClusterClient, journal: Journal, listener: RunListener) -> Run:
    """Return the run of a locked journal. Raises InvalidFile."""
    state = replay(journal.entries, name=str(journal.path))
    del journal.entries[:]  # the state has all of it; a plan of 100,000 partitions need not be in memory twice
    return Run(client, journal, state, listener)


def _duration(seconds: float) -> str:
    return format_duration(round(seconds * 1000))
