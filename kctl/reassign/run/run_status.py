"""The journal of the last run, and the state of the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base import journal
from kctl.base.units import format_size
from kctl.cluster.log_dirs import fetch_log_dirs
from kctl.configs.dynamic import Resource, Values
from kctl.errors import InvalidFile, NotFound
from kctl.model import TopicPartition
from kctl.protocol.partition_requests import numbers_by_topic
from kctl.reassign.plan_file.read import PlanFile
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run import journals
from kctl.reassign.run.compare import ReplicaPlace, ReplicaPlaces, named_brokers, places_of
from kctl.reassign.run.live_state import LiveState, read_live
from kctl.reassign.run.outcome import judge, throttles_left
from kctl.reassign.run.reached import PlanPositions
from kctl.reassign.run.run_plan import RunPlan
from kctl.reassign.run.run_state import WAYS_OUT, throttle_phrase
from kctl.reassign.run.settings import ThrottleSetting, active_settings, read_settings
from kctl.reassign.run.steps import Mode, ReassignmentPhase, RunState, RunStep, ThrottlePhase, replay
from kctl.reassign.run.throttle import LOG_DIR_RATE, Throttle
from kctl.reassign.run.throttle_changes import is_off, tampering

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_NO_RUN_HINT = (
    "name the plan file; to cancel moves that were started elsewhere, run `kctl topic reassign cancel --plan FILE`"
)


@dataclass(frozen=True, slots=True)
class LastRun:
    """A run, from its journal. last_throttle: the last throttle that the run has set, restored or not."""

    path: Path
    state: RunState
    last_throttle: Throttle | None = None

    @property
    def plan(self) -> RunPlan:
        return self.state.plan

    @property
    def file(self) -> PlanFile:
        """Return the run's plan as a plan file."""
        plan = self.plan
        return PlanFile(
            reassignments=plan.reassignments,
            batches=None,
            cluster_id=plan.cluster_id,
            remove_brokers=plan.remove_brokers,
            complete=True,
            digest=plan.digest,
        )


def read_run(path: Path) -> LastRun:
    """Read the run of a journal. Raises InvalidFile."""
    entries = journal.read(path)
    throttles = [
        entry["throttle"] for entry in entries if entry["step"] == RunStep.THROTTLE_SET and "throttle" in entry
    ]
    return LastRun(path, replay(entries, name=str(path)), Throttle.from_json(throttles[-1]) if throttles else None)


def last_run(cluster_id: str) -> LastRun:
    """Return the unfinished run, else the run that was started last. Raises NotFound."""
    path = journals.newest(cluster_id)
    if path is None:
        raise NotFound("no reassignment of this cluster was started on this machine", hint=_NO_RUN_HINT)
    return read_run(path)


def with_throttle_left(plan: RunPlan) -> RunPlan:
    """Return the plan with the throttles that the previous run left on brokers that were down."""
    try:
        last = last_run(plan.cluster_id)
    except (NotFound, InvalidFile):  # the journal of an ended run may be damaged
        return plan
    return replace(plan, throttle_left=last.state.throttle_left)


@dataclass(frozen=True, slots=True)
class MovingPartition:
    """A partition that is moving now. replicas: after the move. ours: it belongs to kctl's last run.

    copied_bytes: in all new replicas, of size_bytes; None if no broker reported it. broker, log_dir: the broker and
    target of a copy between log dirs; else None.
    """

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]
    ours: bool
    copied_bytes: int | None
    size_bytes: int | None
    broker: int | None = None
    log_dir: str | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run's journal, and the positions of its partitions. alive: a process is running it.

    throttle_changes: changes that others made to the throttle, one line each. throttles_left: brokers that were down at
    the end and keep throttles of the run.
    """

    kind: str
    state: ReassignmentPhase
    alive: bool
    pid: int | None
    journal: str
    source: str
    began_at: str
    last_at: str
    batches: int
    batches_done: int
    partition_count: int
    reached: int
    in_flight: int
    as_before: int
    elsewhere: int
    throttle_bytes: int | None
    throttle: str
    throttle_changes: list[str]
    throttles_left: list[str]


@dataclass(frozen=True, slots=True)
class ReassignmentStatus:
    """The last run, and all moves of the cluster.

    run: None if no run was started on this machine. todo: the next command; None if there is nothing to do. throttles:
    all in the cluster, from any source; throttles_unread: unreadable resource → reason. down: receivers of
    replicas that are down.
    """

    cluster: str
    cluster_id: str | None
    run: RunSummary | None
    moving: list[MovingPartition]
    todo: str | None
    throttles: list[ThrottleSetting]
    throttles_unread: dict[str, str]
    down: list[int]


def read_status(client: ClusterClient) -> ReassignmentStatus:
    """Return the last run and all moves of the cluster. Raises the errors of reading, InvalidFile for a journal."""
    live = read_live(client, None, log_dirs_of=())
    path = journals.newest(live.cluster_id) if live.cluster_id else None
    last = None if path is None else read_run(path)
    rows = last.plan.reassignments if last else ()
    current, unread = read_settings(client, live.brokers, live.topics)
    _read_log_dirs(client, live, rows, current)
    overview = None if last is None else _overview(last, judge(rows, live), current)
    run_partitions = {r.tp for r in rows} if last and last.state.outcome is None else set()
    moving = [*_moving(live, run_partitions, _sizes(client, live)), *between_log_dirs(live, run_partitions)]
    receiving = {node for row in moving for node in row.adding}
    return ReassignmentStatus(
        client.target.name,
        live.cluster_id,
        overview,
        moving,
        _todo(last, overview),
        active_settings(current),
        {str(resource): error.message for resource, error in sorted(unread.items())},
        sorted(receiving - live.brokers.keys()),
    )


def _read_log_dirs(
    client: ClusterClient, live: LiveState, rows: Sequence[Reassignment], current: Mapping[Resource, Values]
) -> None:
    """Read the log dirs in the last run's plan, and all log dirs of brokers with a log dir throttle.

    Reading all replicas of all brokers each time would take too long.
    """
    planned = named_brokers(rows) & live.brokers.keys()
    if planned:
        partitions = numbers_by_topic(r.tp for r in rows if r.log_dirs)
        live.log_dirs = fetch_log_dirs(client, planned, topics=partitions)
    throttled = {int(r.name) for r, values in current.items() if values.get(LOG_DIR_RATE) is not None}
    if throttled:
        live.log_dirs |= fetch_log_dirs(client, throttled)


def _todo(last: LastRun | None, overview: RunSummary | None) -> str | None:
    if last is None or overview is None or overview.alive:
        return None
    if last.state.outcome is None:
        is_canceling = overview.state is ReassignmentPhase.CANCELLING
        return "to finish canceling: `kctl topic reassign cancel`" if is_canceling else WAYS_OUT
    if overview.throttles_left:
        names = ", ".join(overview.throttles_left)
        return f"the run left its throttles on {names}: once up, restore them with `kctl topic reassign resume`"
    return None


def _overview(last: LastRun, positions: PlanPositions, current: Mapping[Resource, Values]) -> RunSummary:
    throttle, changes = _throttle_now(last.state, current)
    state, alive = last.state, journal.is_locked(last.path)
    return RunSummary(
        kind=state.plan.kind,
        state=_phase(state, alive),
        alive=alive,
        pid=state.pid if alive else None,
        journal=str(last.path),
        source=state.plan.source,
        began_at=state.began_at,
        last_at=state.last_at,
        batches=len(state.plan.batches),
        batches_done=state.batches_done,
        partition_count=positions.partition_count,
        reached=positions.reached,
        in_flight=positions.in_flight,
        as_before=positions.as_before,
        elsewhere=positions.elsewhere,
        throttle_bytes=state.throttle_rate if state.throttled else None,
        throttle=throttle,
        throttle_changes=changes,
        throttles_left=throttles_left(state),
    )


def _throttle_now(state: RunState, current: Mapping[Resource, Values]) -> tuple[str, list[str]]:
    """Return a phrase about the run's throttle in the cluster, and its changes by others."""
    phrase = throttle_phrase(state)
    if state.throttle_phase is not ThrottlePhase.ON or state.throttle is None:
        return phrase, []
    throttle = Throttle.from_json(state.throttle)
    changed = tampering(throttle, current)
    if changed:
        rate = f"the throttle of {format_size(state.throttle_rate or 0)}/s"
        phrase = (
            f"{rate} is off: someone else removed it" if is_off(throttle, changed) else f"{rate} is not on everywhere"
        )
    return phrase, [each.line for each in changed.values()]


def _phase(state: RunState, alive: bool) -> ReassignmentPhase:
    if state.outcome is not None:
        return ReassignmentPhase(state.outcome.value)
    if state.mode is Mode.CANCELLED:
        return ReassignmentPhase.CANCELLING
    if state.mode is Mode.PAUSED:
        return ReassignmentPhase.PAUSING if alive else ReassignmentPhase.PAUSED
    return ReassignmentPhase.RUNNING if alive else ReassignmentPhase.STOPPED


def _sizes(client: ClusterClient, live: LiveState) -> ReplicaPlaces:
    """Return the replicas of moving partitions on the brokers that lead or receive them."""
    nodes: set[int] = set()
    for tp, moving in live.moving.items():
        partition = live.partition(tp)
        nodes.update(moving.adding)
        if partition is not None:
            nodes.add(partition.leader)
    live_nodes = nodes & live.brokers.keys()
    if not live_nodes:
        return {}
    return places_of(fetch_log_dirs(client, live_nodes, topics=numbers_by_topic(sorted(live.moving))))


def _moving(live: LiveState, run_partitions: set[TopicPartition], places: ReplicaPlaces) -> list[MovingPartition]:
    rows = []
    for tp, moving in sorted(live.moving.items()):
        partition = live.partition(tp)
        leader = -1 if partition is None else partition.leader
        source = places.get((leader, tp))
        copies: list[ReplicaPlace | None] = [places.get((node, tp)) for node in moving.adding]
        rows.append(
            MovingPartition(
                topic=tp.topic,
                partition=tp.partition,
                replicas=list(live.target(tp) or ()),
                adding=list(moving.adding),
                removing=list(moving.removing),
                ours=tp in run_partitions,
                copied_bytes=sum(place.size_bytes for place in copies if place) if any(copies) else None,
                size_bytes=None if source is None else source.size_bytes * len(moving.adding),
            )
        )
    return rows


def between_log_dirs(live: LiveState, run_partitions: set[TopicPartition]) -> list[MovingPartition]:
    """Return the copies between log dirs on the brokers that were read."""
    rows = []
    for (node, tp), place in sorted(places_of(live.log_dirs).items(), key=lambda row: (row[0][1], row[0][0])):
        if place.future_path is not None:
            replicas = list(live.target(tp) or ())
            sizes = place.future_bytes, place.size_bytes
            rows.append(
                MovingPartition(
                    tp.topic,
                    tp.partition,
                    replicas,
                    [],
                    [],
                    tp in run_partitions,
                    *sizes,
                    broker=node,
                    log_dir=place.future_path,
                )
            )
    return rows
