"""The steps of a rolling restart, and the state that its journal yields. Pure.

Every action has an entry before it (the intent) and one after it. Between `stop` and `in_sync`, the run may have
stopped a broker: the next run brings that broker back first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kctl.errors import InvalidFile
from kctl.model import Broker

ROLLING_RESTART = "rolling restart"  # the purpose of a run of `kctl cluster restart --rolling`


class RestartStep(str, Enum):
    """The `step` of each entry, in the order of a run."""

    BEGIN = "begin"
    RESUME = "resume"
    STOP = "stop"
    STOPPED = "stopped"
    START = "start"
    STARTED = "started"
    IN_SYNC = "in_sync"
    ELECT = "elect"
    ELECTED = "elected"
    END = "end"


class BrokerPhase(str, Enum):
    """The phase of a broker; the value is displayed.

    STOPPING, STARTING: the action has started and may not have finished. STARTED: the broker responds; its replicas may
    not be in sync.
    """

    PENDING = "not restarted"
    STOPPING = "being stopped"
    STOPPED = "stopped"
    STARTING = "being started"
    STARTED = "started, not in sync yet"
    DONE = "restarted"


_NEXT = {
    RestartStep.STOP: BrokerPhase.STOPPING,
    RestartStep.STOPPED: BrokerPhase.STOPPED,
    RestartStep.START: BrokerPhase.STARTING,
    RestartStep.STARTED: BrokerPhase.STARTED,
    RestartStep.IN_SYNC: BrokerPhase.DONE,
}
_PAST = {  # of an open broker, when the run ended
    BrokerPhase.STOPPING: "was being stopped",
    BrokerPhase.STOPPED: "was stopped",
    BrokerPhase.STARTING: "was being started",
    BrokerPhase.STARTED: "was started but not in sync",
}


@dataclass
class BrokerState:
    """One broker of the run. *_ms: duration of each action; None if unknown (by another kctl, or it was killed)."""

    broker: Broker
    phase: BrokerPhase = BrokerPhase.PENDING
    stop_ms: int | None = None
    start_ms: int | None = None
    in_sync_ms: int | None = None
    longest_under_replicated_ms: int | None = None

    @property
    def open(self) -> bool:
        """Return True if this run stopped the broker, or may have, and it is not known to be in sync again."""
        return self.phase not in {BrokerPhase.PENDING, BrokerPhase.DONE}


@dataclass
class RestartState:
    """The state of a run.

    cluster: the target's name; cluster_id: the cluster's id. outcome: "done", "abandoned" or None. purpose: the
    operation that restarts the brokers.
    """

    cluster: str
    cluster_id: str
    began_at: str
    purpose: str = ROLLING_RESTART
    brokers: dict[int, BrokerState] = field(default_factory=dict)
    resumed: int = 0
    outcome: str | None = None

    @property
    def open(self) -> list[int]:
        """Return the brokers to bring back."""
        return [node for node, row in self.brokers.items() if row.open]

    @property
    def pending(self) -> list[int]:
        """Return the brokers that are not restarted yet."""
        return [node for node, row in self.brokers.items() if row.phase is BrokerPhase.PENDING]


def begin_entry(
    cluster: str, cluster_id: str, brokers: Sequence[Broker], purpose: str = ROLLING_RESTART
) -> dict[str, Any]:
    """Return the fields of a BEGIN entry."""
    rows = [{"broker": b.id, "host": b.host, "port": b.port, "rack": b.rack} for b in brokers]
    return {"cluster": cluster, "cluster_id": cluster_id, "brokers": rows, "purpose": purpose}


def replay(entries: Iterable[Mapping[str, Any]], *, name: str) -> RestartState:
    """Return the state after all entries. Raises InvalidFile for another kind of journal. name: for the message."""
    state: RestartState | None = None
    try:
        for entry in entries:
            step = RestartStep(entry["step"])
            if step is RestartStep.BEGIN:
                state = _initial_state(entry)
            elif state is None:
                raise ValueError("its first entry is not `begin`")
            else:
                follow(state, step, entry)
    except (ValueError, KeyError, TypeError) as exc:
        raise InvalidFile(
            f"{name} is not the journal of a rolling restart: {exc}", hint="move the file away if you do not need it"
        ) from exc
    if state is None:
        raise InvalidFile(f"{name} is empty")
    return state


def follow(state: RestartState, step: RestartStep, entry: Mapping[str, Any]) -> None:
    """Apply an entry to the state."""
    if step is RestartStep.RESUME:
        state.resumed += 1
    elif step in _NEXT:
        row = state.brokers[entry["broker"]]
        row.phase = _NEXT[step]
        for key in ("stop_ms", "start_ms", "in_sync_ms", "longest_under_replicated_ms"):
            if key in entry:
                setattr(row, key, entry[key])
    elif step is RestartStep.END:
        state.outcome = str(entry["outcome"])


def situation(state: RestartState, live_nodes: Collection[int] | None = None) -> str:
    """Return the state of each broker in one line. live_nodes: those that are up now; None: unknown."""
    rows = []
    for node, row in state.brokers.items():
        if row.open:
            now = "" if live_nodes is None else " and is up now" if node in live_nodes else " and is down now"
            rows.append(f"broker {node} {_PAST[row.phase]}{now}")
    done = [node for node, row in state.brokers.items() if row.phase is BrokerPhase.DONE]
    if done:
        rows.append(f"restarted: {', '.join(map(str, done))}")
    if state.pending:
        rows.append(f"not restarted: {', '.join(map(str, state.pending))}")
    return "; ".join(rows)


def _initial_state(entry: Mapping[str, Any]) -> RestartState:
    brokers = [Broker(int(b["broker"]), str(b["host"]), int(b["port"]), b["rack"]) for b in entry["brokers"]]
    return RestartState(
        cluster=str(entry["cluster"]),
        cluster_id=str(entry["cluster_id"]),
        began_at=str(entry.get("at", "")),
        purpose=str(entry.get("purpose", ROLLING_RESTART)),
        brokers={b.id: BrokerState(b) for b in brokers},
    )
