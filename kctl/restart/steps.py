"""The steps of a rolling restart, and what a journal of them adds up to. Pure.

Every act has an entry before it (the intent) and one after it. A broker between `stop` and `in_sync` is one that this
run took down, or may have: the next run brings it back before it does anything else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kctl.errors import InvalidFile
from kctl.model import Broker


class Step(str, Enum):
    """The `step` of every entry, in the order in which a run meets them."""

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


class Phase(str, Enum):
    """Where a broker is; the value is how people are told.

    STOPPING, STARTING: begun, and perhaps not finished. STARTED: it answers, and its replicas are not known in sync.
    """

    PENDING = "not restarted"
    STOPPING = "in its stop"
    STOPPED = "stopped"
    STARTING = "in its start"
    STARTED = "started, not in sync yet"
    DONE = "restarted"


_NEXT = {
    Step.STOP: Phase.STOPPING,
    Step.STOPPED: Phase.STOPPED,
    Step.START: Phase.STARTING,
    Step.STARTED: Phase.STARTED,
    Step.IN_SYNC: Phase.DONE,
}


@dataclass
class BrokerState:
    """One broker of the run. ms: how long each act took, None while it is not known (another kctl did it, or died)."""

    broker: Broker
    phase: Phase = Phase.PENDING
    stop_ms: int | None = None
    start_ms: int | None = None
    in_sync_ms: int | None = None
    longest_under_replicated_ms: int | None = None

    @property
    def open(self) -> bool:
        """This run took it down, or may have, and has not seen it in sync again."""
        return self.phase not in {Phase.PENDING, Phase.DONE}


@dataclass
class RestartState:
    """Where a run is. cluster: the target's name, cluster_id: the cluster's own. outcome: «done», «abandoned», None."""

    cluster: str
    cluster_id: str
    began_at: str
    brokers: dict[int, BrokerState] = field(default_factory=dict)
    resumed: int = 0
    outcome: str | None = None

    @property
    def open(self) -> list[int]:
        """Brokers that have to be brought back."""
        return [node for node, row in self.brokers.items() if row.open]

    @property
    def pending(self) -> list[int]:
        """Brokers whose turn has not come."""
        return [node for node, row in self.brokers.items() if row.phase is Phase.PENDING]


def begin_entry(cluster: str, cluster_id: str, brokers: Sequence[Broker]) -> dict[str, Any]:
    """What BEGIN says."""
    rows = [{"broker": b.id, "host": b.host, "port": b.port, "rack": b.rack} for b in brokers]
    return {"cluster": cluster, "cluster_id": cluster_id, "brokers": rows}


def replay(entries: Iterable[Mapping[str, Any]], *, name: str) -> RestartState:
    """Raises InvalidFile when the journal is none of a rolling restart. name: for the message."""
    state: RestartState | None = None
    try:
        for entry in entries:
            step = Step(entry["step"])
            if step is Step.BEGIN:
                state = _begun(entry)
            elif state is None:
                raise ValueError("it does not begin with begin")
            else:
                follow(state, step, entry)
    except (ValueError, KeyError, TypeError) as exc:
        raise InvalidFile(
            f"{name} is no journal of a rolling restart: {exc}", hint="move it away if its run is of no interest"
        ) from exc
    if state is None:
        raise InvalidFile(f"{name} is empty")
    return state


def follow(state: RestartState, step: Step, entry: Mapping[str, Any]) -> None:
    """What an entry changes."""
    if step is Step.RESUME:
        state.resumed += 1
    elif step in _NEXT:
        row = state.brokers[entry["broker"]]
        row.phase = _NEXT[step]
        for key in ("stop_ms", "start_ms", "in_sync_ms", "longest_under_replicated_ms"):
            if key in entry:
                setattr(row, key, entry[key])
    elif step is Step.END:
        state.outcome = str(entry["outcome"])


def situation(state: RestartState, there: Collection[int] | None = None) -> str:
    """Which broker is in which state, in one line. there: the brokers that are up now, where that is known."""
    rows = []
    for node, row in state.brokers.items():
        if row.open:
            now = "" if there is None else ", and up now" if node in there else ", and down now"
            rows.append(f"broker {node} is {row.phase.value}{now}")
    done = [node for node, row in state.brokers.items() if row.phase is Phase.DONE]
    if done:
        rows.append(f"restarted: {', '.join(map(str, done))}")
    if state.pending:
        rows.append(f"not restarted: {', '.join(map(str, state.pending))}")
    return "; ".join(rows)


def _begun(entry: Mapping[str, Any]) -> RestartState:
    brokers = [Broker(int(b["broker"]), str(b["host"]), int(b["port"]), b["rack"]) for b in entry["brokers"]]
    return RestartState(
        cluster=str(entry["cluster"]),
        cluster_id=str(entry["cluster_id"]),
        began_at=str(entry.get("at", "")),
        brokers={b.id: BrokerState(b) for b in brokers},
    )
