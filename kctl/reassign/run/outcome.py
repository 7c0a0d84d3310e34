"""How a run ended, as read back from the cluster: targets, leaders, throttles, brokers that were to be emptied."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.model import ClusterState, TopicPartition
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import receivers_of
from kctl.reassign.run.compare import Standing, View, log_dirs_as_before, named_brokers, places_of, reason, standing
from kctl.reassign.run.live_state import LiveState, read_live
from kctl.reassign.run.reached import BrokerLeft, NotReached, Reached
from kctl.reassign.run.run_plan import RunPlan, copy_bytes
from kctl.reassign.run.run_state import Run
from kctl.reassign.run.steps import RunState, Step
from kctl.reassign.run.throttle import Throttle
from kctl.topics.elect import elect_leaders

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

COMPLETED, INCOMPLETE, CANCELLED, PAUSED = "completed", "incomplete", "cancelled", "paused"
_SETTLE_S = 10.0
_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class RunResult:
    """What became of a run. outcome: «completed», «incomplete», «cancelled» or «paused».

    taken_back: partitions whose move was cancelled. not_elected: partition → why its preferred replica does not
    lead. throttles_left: brokers that are down and keep throttles of the run. remarks: throttles that somebody else has
    changed meanwhile. journal, began_at, ended_at: None when there was nothing to do, and so no run.
    """

    outcome: str
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
        """Whether there was a run; without anything to do there is none."""
        return self.journal is not None

    @property
    def complete(self) -> bool:
        return self.outcome == COMPLETED


# --- acts -----------------------------------------------------------------------------------------------------------


def elect(run: Run) -> None:
    """Elect the preferred leaders of the plan's partitions that have another one."""
    wanted = [r.tp for r in run.state.plan.reassignments]
    run.write(Step.ELECT_START)
    others = run.retry_transient(lambda: _not_preferred(run.client, wanted), "looking at leaders")
    errors = run.retry_transient(lambda: elect_leaders(run.client, others), "electing leaders") if others else {}
    failed = {str(tp): error.message for tp, error in errors.items() if error is not None}
    left = run.retry_transient(lambda: _wait_for_leaders(run.client, others), "looking at leaders") if others else []
    for tp in left:
        failed.setdefault(str(tp), "its preferred replica does not lead")
    seen = {str(tp) for tp in left}
    run.write(Step.ELECT_DONE, failed={tp: why for tp, why in failed.items() if tp in seen})


def _not_preferred(client: ClusterClient, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
    state = client.metadata({tp.topic for tp in partitions})
    leaders = {p.tp: p for topic in state.topics.values() for p in topic.partitions}
    return [tp for tp in partitions if tp in leaders and leaders[tp].leader != leaders[tp].preferred_leader]


def _wait_for_leaders(client: ClusterClient, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
    """Those that some time after the election still have another leader."""
    until = time.monotonic() + _SETTLE_S
    left = list(partitions)
    while left:
        left = _not_preferred(client, left)
        if not left or time.monotonic() > until:
            break
        time.sleep(_POLL_S)
    return left


def end(run: Run) -> None:
    """Read everything back, and close the journal with what was found."""
    state, plan = run.state, run.state.plan
    if state.cancelled:
        outcome, brokers = CANCELLED, []
        found = run.retry_transient(lambda: read_back(run.client, plan.reassignments), "reading back")
    else:
        until = time.monotonic() + _SETTLE_S
        while True:
            found = run.retry_transient(lambda: read_back(run.client, plan.reassignments), "reading back")
            brokers = run.retry_transient(lambda: brokers_left(run.client, plan.remove_brokers), "reading back")
            if (not found.failures and not brokers) or time.monotonic() > until:
                break
            time.sleep(_POLL_S)  # metadata is a moment late
        good = not found.failures and not brokers and not state.not_elected and state.throttle_left is None
        outcome = COMPLETED if good else INCOMPLETE
    run.seen = (found, brokers)
    moves, size = _copied(run, found)
    run.write(Step.END, outcome=outcome, result={**_entry(found, brokers), "moves": moves, "bytes": size})


# Of a journal's last entry: its keys → fields of Reached. Journals are a format: their keys stay.
_COUNTS = {
    "partitions": "partition_count",
    "reached": "reached",
    "in_flight": "in_flight",
    "as_before": "as_before",
    "elsewhere": "elsewhere",
}


def _entry(found: Reached, brokers: Sequence[BrokerLeft]) -> dict[str, object]:
    """What the journal keeps of the result; short, however much failed."""
    counts = {key: getattr(found, name) for key, name in _COUNTS.items()}
    failures = [[f.topic, f.partition, f.standing, f.reason[:500]] for f in found.failures[:100]]
    left = [[b.broker, b.replica_count, b.partitions[:5], b.without_leader] for b in brokers[:20]]
    return {**counts, "failures": failures, "brokers_left": left}


# --- reading back -----------------------------------------------------------------------------------------------------


def read_back(client: ClusterClient, rows: Sequence[Reassignment]) -> Reached:
    """Where each partition stands now. Raises what reading raises."""
    live = read_live(client, {r.topic for r in rows}, log_dirs_of=named_brokers(rows))
    return judge(rows, live)


def judge(rows: Sequence[Reassignment], live: LiveState) -> Reached:
    """`read_back` of a state that was read. Pure."""
    view = View(live, places_of(live.log_dirs))
    counts = dict.fromkeys(Standing, 0)
    back, failures = 0, []
    for r in rows:
        found = standing(r, view)
        counts[found] += 1
        back += found is Standing.LOG_DIRS and log_dirs_as_before(r, view.places)
        if found is not Standing.REACHED:
            failures.append(NotReached(r.topic, r.partition, found.value, reason(r, view, found)))
    moving = counts[Standing.MOVING] + counts[Standing.LOG_DIRS] - back
    before = counts[Standing.BEFORE] + back
    known = counts[Standing.REACHED] + moving + before
    return Reached(
        partition_count=len(rows),
        reached=counts[Standing.REACHED],
        in_flight=moving,
        as_before=before,
        elsewhere=len(rows) - known,
        failures=failures,
    )


def brokers_left(client: ClusterClient, removed: Collection[int]) -> list[BrokerLeft]:
    """Which of `removed` hold a replica of any topic, or are about to get one."""
    if not removed:
        return []
    return brokers_holding(client.metadata(), removed)


def brokers_holding(state: ClusterState, removed: Collection[int]) -> list[BrokerLeft]:
    """`brokers_left` of a state that was read. Pure. A replica on its way is among a partition's replicas."""
    held: dict[int, list[str]] = {}
    without: Counter[int] = Counter()
    for name in sorted(state.topics):
        for partition in state.topics[name].partitions:
            for node in partition.replicas:
                if node in removed:
                    held.setdefault(node, []).append(str(partition.tp))
                    without[node] += partition.offline
    return [BrokerLeft(node, len(names), names, without[node]) for node, names in sorted(held.items())]


def result_of(run: Run) -> RunResult:
    """What became of a run that has ended or is paused, for people and programs."""
    state = run.state
    if run.seen is not None:
        found, brokers = run.seen
    elif state.end is not None:
        found, brokers = _from_entry(state)
    else:
        found, brokers = read_back(run.client, state.plan.reassignments), []
    moves, size = _copied(run, found)
    return RunResult(
        outcome=state.outcome or PAUSED,
        kind=state.plan.kind,
        cluster=state.plan.cluster,
        partition_count=found.partition_count,
        reached=found.reached,
        in_flight=found.in_flight,
        as_before=found.as_before,
        elsewhere=found.elsewhere,
        taken_back=state.taken_back,
        moves=moves,
        bytes=size,
        failures=found.failures if state.outcome == INCOMPLETE else [],
        not_elected=state.not_elected,
        brokers_left=brokers,
        throttles_left=throttles_left(state),
        remarks=state.remarks,
        began_at=state.began_at,
        ended_at=state.last_at,
        journal=str(run.journal.path),
    )


def _copied(run: Run, found: Reached) -> tuple[int, int]:
    """Copies that were made, and their bytes: of finished batches, and of one taken back what ended all the same."""
    said = (run.state.end or {}).get("result") or {}
    if "moves" in said and "bytes" in said:
        return int(said["moves"]), int(said["bytes"])
    moves, size = run.done_copies, run.done_bytes
    number = run.state.batch
    if number is not None:
        missing = {(f.topic, f.partition) for f in found.failures}
        ended = [r for r in run.state.plan.batch(number) if (r.topic, r.partition) not in missing]
        moves += sum(len(receivers_of(r)) for r in ended)
        size += sum(copy_bytes(r) for r in ended)
    return moves, size


def throttles_left(state: RunState) -> list[str]:
    """«broker 4», … that keep throttles of the run because they are down."""
    return [] if state.throttle_left is None else [str(r) for r in sorted(Throttle.from_json(state.throttle_left).set)]


def _from_entry(state: RunState) -> tuple[Reached, list[BrokerLeft]]:
    said = (state.end or {}).get("result") or {}
    counts = {name: int(said.get(key, 0)) for key, name in _COUNTS.items()}
    failures = [NotReached(*row) for row in said.get("failures", ())]
    return Reached(**counts, failures=failures), [BrokerLeft(*row) for row in said.get("brokers_left", ())]


def result_without_run(client: ClusterClient, plan: RunPlan) -> RunResult:
    """The result of a plan that has nothing to do: read back all the same."""
    found, brokers = read_back(client, plan.reassignments), brokers_left(client, plan.remove_brokers)
    return RunResult(
        outcome=COMPLETED if not found.failures and not brokers else INCOMPLETE,
        kind=plan.kind,
        cluster=plan.cluster,
        partition_count=found.partition_count,
        reached=found.reached,
        in_flight=found.in_flight,
        as_before=found.as_before,
        elsewhere=found.elsewhere,
        taken_back=0,
        moves=0,
        bytes=0,
        failures=found.failures,
        not_elected={},
        brokers_left=brokers,
        throttles_left=[],
        remarks=[],
        began_at=None,
        ended_at=None,
        journal=None,
    )
