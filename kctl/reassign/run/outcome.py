"""The outcome of a run, read back from the cluster: targets, leaders, throttles, brokers to be emptied."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.model import ClusterState, TopicPartition
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import receivers_of
from kctl.reassign.run.compare import (
    PlanPosition,
    PlanView,
    log_dirs_as_before,
    named_brokers,
    places_of,
    position_of,
    reason,
)
from kctl.reassign.run.live_state import LiveState, read_live
from kctl.reassign.run.reached import BrokerLeft, NotReached, PlanPositions
from kctl.reassign.run.run_plan import RunPlan, copy_bytes
from kctl.reassign.run.run_state import Run
from kctl.reassign.run.steps import ReassignmentOutcome, RunState, RunStep
from kctl.reassign.run.throttle import Throttle
from kctl.topics.elect import elect_leaders

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


_SETTLE_S = 10.0
_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    taken_back: partitions whose move was canceled. not_elected: partition → why its preferred replica does not lead.
    throttles_left: brokers that are down and keep throttles of the run. remarks: on throttles changed by someone else.
    journal, began_at, ended_at: None if there was nothing to do, and so no run.
    """

    outcome: ReassignmentOutcome
    kind: str
    cluster: str
    partition_count: int
    reached: int
    in_flight: int
    as_before: int
    elsewhere: int
    taken_back: int
    moves: int
    bytes: int
    failures: list[NotReached]
    not_elected: dict[str, str]
    brokers_left: list[BrokerLeft]
    throttles_left: list[str]
    remarks: list[str]
    began_at: str | None
    ended_at: str | None
    journal: str | None

    @property
    def changed(self) -> bool:
        """Return True if there was a run; there is none if there was nothing to do."""
        return self.journal is not None

    @property
    def complete(self) -> bool:
        return self.outcome is ReassignmentOutcome.COMPLETED


# --- steps ----------------------------------------------------------------------------------------------------------


def elect(run: Run) -> None:
    """Elect the preferred leaders of the plan's partitions."""
    partitions = [r.tp for r in run.state.plan.reassignments]
    run.write(RunStep.ELECT_START)
    others = run.retry_transient(lambda: _not_preferred(run.client, partitions), "reading leaders")
    errors = run.retry_transient(lambda: elect_leaders(run.client, others), "electing leaders") if others else {}
    failed = {str(tp): error.message for tp, error in errors.items() if error is not None}
    waiting = run.retry_transient(lambda: _wait_for_leaders(run.client, others), "reading leaders") if others else []
    for tp in waiting:
        failed.setdefault(str(tp), "its preferred replica does not lead")
    names = {str(tp) for tp in waiting}
    run.write(RunStep.ELECT_DONE, failed={tp: why for tp, why in failed.items() if tp in names})


def _not_preferred(client: ClusterClient, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
    state = client.metadata({tp.topic for tp in partitions})
    leaders = {p.tp: p for topic in state.topics.values() for p in topic.partitions}
    return [tp for tp in partitions if tp in leaders and leaders[tp].leader != leaders[tp].preferred_leader]


def _wait_for_leaders(client: ClusterClient, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions that still have another leader after ten seconds."""
    deadline = time.monotonic() + _SETTLE_S
    waiting = list(partitions)
    while waiting:
        waiting = _not_preferred(client, waiting)
        if not waiting or time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    return waiting


def end(run: Run) -> None:
    """Read the result back from the cluster, and close the journal with it."""
    state, plan = run.state, run.state.plan
    if state.cancelled:
        outcome, brokers = ReassignmentOutcome.CANCELLED, []
        positions = run.retry_transient(lambda: read_back(run.client, plan.reassignments), "reading back")
    else:
        deadline = time.monotonic() + _SETTLE_S
        while True:
            positions = run.retry_transient(lambda: read_back(run.client, plan.reassignments), "reading back")
            brokers = run.retry_transient(lambda: brokers_left(run.client, plan.remove_brokers), "reading back")
            if (not positions.failures and not brokers) or time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)  # metadata is slightly late
        is_complete = not positions.failures and not brokers and not state.not_elected and state.throttle_left is None
        outcome = ReassignmentOutcome.COMPLETED if is_complete else ReassignmentOutcome.INCOMPLETE
    run.read_back = (positions, brokers)
    moves, size = _copied(run, positions)
    run.write(RunStep.END, outcome=outcome.value, result={**_entry(positions, brokers), "moves": moves, "bytes": size})


# Keys of a journal's last entry → fields of PlanPositions. Journals are a format: the keys stay.
_COUNTS = {
    "partitions": "partition_count",
    "reached": "reached",
    "in_flight": "in_flight",
    "as_before": "as_before",
    "elsewhere": "elsewhere",
}


def _entry(positions: PlanPositions, brokers: Sequence[BrokerLeft]) -> dict[str, object]:
    """Return the result for the journal; its size is limited for any number of failures."""
    counts = {key: getattr(positions, name) for key, name in _COUNTS.items()}
    failures = [[f.topic, f.partition, f.standing, f.reason[:500]] for f in positions.failures[:100]]
    waiting = [[b.broker, b.replica_count, b.partitions[:5], b.without_leader] for b in brokers[:20]]
    return {**counts, "failures": failures, "brokers_left": waiting}


# --- reading back -----------------------------------------------------------------------------------------------------


def read_back(client: ClusterClient, rows: Sequence[Reassignment]) -> PlanPositions:
    """Return the position of each partition now. Raises the errors of reading."""
    live = read_live(client, {r.topic for r in rows}, log_dirs_of=named_brokers(rows))
    return judge(rows, live)


def judge(rows: Sequence[Reassignment], live: LiveState) -> PlanPositions:
    """Return the position of each partition in a given state. Pure."""
    view = PlanView(live, places_of(live.log_dirs))
    counts = dict.fromkeys(PlanPosition, 0)
    back, failures = 0, []
    for r in rows:
        position = position_of(r, view)
        counts[position] += 1
        back += position is PlanPosition.LOG_DIRS and log_dirs_as_before(r, view.places)
        if position is not PlanPosition.REACHED:
            failures.append(NotReached(r.topic, r.partition, position.value, reason(r, view, position)))
    moving = counts[PlanPosition.MOVING] + counts[PlanPosition.LOG_DIRS] - back
    before = counts[PlanPosition.BEFORE] + back
    on_plan = counts[PlanPosition.REACHED] + moving + before
    return PlanPositions(
        partition_count=len(rows),
        reached=counts[PlanPosition.REACHED],
        in_flight=moving,
        as_before=before,
        elsewhere=len(rows) - on_plan,
        failures=failures,
    )


def brokers_left(client: ClusterClient, removed: Collection[int]) -> list[BrokerLeft]:
    """Return the brokers of `removed` that hold a replica of any topic, or will receive one."""
    if not removed:
        return []
    return brokers_holding(client.metadata(), removed)


def brokers_holding(state: ClusterState, removed: Collection[int]) -> list[BrokerLeft]:
    """Return the result of `brokers_left` for a given state. Pure. Replicas include moves in progress."""
    partitions: dict[int, list[str]] = {}
    without: Counter[int] = Counter()
    for name in sorted(state.topics):
        for partition in state.topics[name].partitions:
            for node in partition.replicas:
                if node in removed:
                    partitions.setdefault(node, []).append(str(partition.tp))
                    without[node] += partition.offline
    return [BrokerLeft(node, len(names), names, without[node]) for node, names in sorted(partitions.items())]


def result_of(run: Run) -> RunResult:
    """Return the result of a run that has ended or is paused."""
    state = run.state
    if run.read_back is not None:
        positions, brokers = run.read_back
    elif state.end is not None:
        positions, brokers = _from_entry(state)
    else:
        positions, brokers = read_back(run.client, state.plan.reassignments), []
    moves, size = _copied(run, positions)
    return RunResult(
        outcome=state.outcome or ReassignmentOutcome.PAUSED,
        kind=state.plan.kind,
        cluster=state.plan.cluster,
        partition_count=positions.partition_count,
        reached=positions.reached,
        in_flight=positions.in_flight,
        as_before=positions.as_before,
        elsewhere=positions.elsewhere,
        taken_back=state.taken_back,
        moves=moves,
        bytes=size,
        failures=positions.failures if state.outcome is ReassignmentOutcome.INCOMPLETE else [],
        not_elected=state.not_elected,
        brokers_left=brokers,
        throttles_left=throttles_left(state),
        remarks=state.remarks,
        began_at=state.began_at,
        ended_at=state.last_at,
        journal=str(run.journal.path),
    )


def _copied(run: Run, positions: PlanPositions) -> tuple[int, int]:
    """Return the number and bytes of copies: those of completed batches, and completed moves of a canceled batch."""
    result = (run.state.end or {}).get("result") or {}
    if "moves" in result and "bytes" in result:
        return int(result["moves"]), int(result["bytes"])
    moves, size = run.done_copies, run.done_bytes
    number = run.state.batch
    if number is not None:
        missing = {(f.topic, f.partition) for f in positions.failures}
        ended = [r for r in run.state.plan.batch(number) if (r.topic, r.partition) not in missing]
        moves += sum(len(receivers_of(r)) for r in ended)
        size += sum(copy_bytes(r) for r in ended)
    return moves, size


def throttles_left(state: RunState) -> list[str]:
    """Return the brokers, as "broker 4", that keep throttles of the run because they are down."""
    return [] if state.throttle_left is None else [str(r) for r in sorted(Throttle.from_json(state.throttle_left).set)]


def _from_entry(state: RunState) -> tuple[PlanPositions, list[BrokerLeft]]:
    result = (state.end or {}).get("result") or {}
    counts = {name: int(result.get(key, 0)) for key, name in _COUNTS.items()}
    failures = [NotReached(*row) for row in result.get("failures", ())]
    return PlanPositions(**counts, failures=failures), [BrokerLeft(*row) for row in result.get("brokers_left", ())]


def result_without_run(client: ClusterClient, plan: RunPlan) -> RunResult:
    """Return the result of a plan with nothing to do, read back from the cluster."""
    positions, brokers = read_back(client, plan.reassignments), brokers_left(client, plan.remove_brokers)
    return RunResult(
        outcome=ReassignmentOutcome.COMPLETED
        if not positions.failures and not brokers
        else ReassignmentOutcome.INCOMPLETE,
        kind=plan.kind,
        cluster=plan.cluster,
        partition_count=positions.partition_count,
        reached=positions.reached,
        in_flight=positions.in_flight,
        as_before=positions.as_before,
        elsewhere=positions.elsewhere,
        taken_back=0,
        moves=0,
        bytes=0,
        failures=positions.failures,
        not_elected={},
        brokers_left=brokers,
        throttles_left=[],
        remarks=[],
        began_at=None,
        ended_at=None,
        journal=None,
    )
