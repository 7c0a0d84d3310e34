"""What a journal says and what the cluster does, side by side."""

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
from kctl.reassign.run.compare import Place, Places, named_brokers, places_of
from kctl.reassign.run.live_state import LiveState, read_live
from kctl.reassign.run.outcome import judge, throttles_left
from kctl.reassign.run.reached import Reached
from kctl.reassign.run.run_plan import RunPlan
from kctl.reassign.run.run_state import WAYS_OUT, throttle_phrase
from kctl.reassign.run.settings import ThrottleSetting, active_settings, read_settings
from kctl.reassign.run.steps import Mode, RunState, Step, ThrottlePhase, replay
from kctl.reassign.run.throttle import LOG_DIR_RATE, Throttle
from kctl.reassign.run.throttle_changes import is_off, tampering

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

ELSEWHERE = (
    "name the plan's file; where it was begun elsewhere, `kctl topic reassign cancel --plan FILE` takes it back without"
    " its journal"
)


@dataclass(frozen=True, slots=True)
class LastRun:
    """A run as its journal has it. last_throttle: the last one that it has set, whether it was restored or not."""

    path: Path
    state: RunState
    last_throttle: Throttle | None = None

    @property
    def plan(self) -> RunPlan:
        return self.state.plan

    @property
    def file(self) -> PlanFile:
        """Its plan as a plan file would say it."""
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
    """Raises InvalidFile."""
    entries = journal.read(path)
    throttles = [entry["throttle"] for entry in entries if entry["step"] == Step.THROTTLE_SET and "throttle" in entry]
    return LastRun(path, replay(entries, name=str(path)), Throttle.from_json(throttles[-1]) if throttles else None)


def last_run(cluster_id: str) -> LastRun:
    """The run that has not ended, else the one that was begun last. Raises NotFound."""
    found = journals.newest(cluster_id)
    if found is None:
        raise NotFound("no reassignment of this cluster was begun on this machine", hint=ELSEWHERE)
    return read_run(found)


def with_throttle_left(plan: RunPlan) -> RunPlan:
    """The plan with the throttles that the run before had to leave on brokers that were down."""
    try:
        last = last_run(plan.cluster_id)
    except (NotFound, InvalidFile):  # a damaged journal of a run that has ended tells nothing, and is in nobody's way
        return plan
    return replace(plan, throttle_left=last.state.throttle_left)


@dataclass(frozen=True, slots=True)
class MovingPartition:
    """A partition that is moved now. replicas: as they will be. ours: it belongs to the run.

    copied_bytes: in the new replicas together, of size_bytes; None when no broker told. broker, log_dir: of a copy
    between log dirs, where it is made and to which; else None.
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
class RunOverview:
    """A run's journal, and where its partitions stand. batches_done of batches; alive: a process carries it out.

    throttle_changes: what others have done to its throttle, a line each. throttles_left: brokers that were down when it
    ended and keep its throttles.
    """

    kind: str
    state: str
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
class Status:
    """run: None when nothing was begun on this machine. todo: what to type; None when there is nothing to do.

    throttles: all that are set in the cluster, by whomever; throttles_unread: what could not be read, and why.
    down: brokers that are to receive something and are not up.
    """

    cluster: str
    cluster_id: str | None
    run: RunOverview | None
    moving: list[MovingPartition]
    todo: str | None
    throttles: list[ThrottleSetting]
    throttles_unread: dict[str, str]
    down: list[int]


def read_status(client: ClusterClient) -> Status:
    """The last run of the cluster, and whatever moves in it. Raises what reading raises, InvalidFile for a journal."""
    live = read_live(client, None, log_dirs_of=())
    path = journals.newest(live.cluster_id) if live.cluster_id else None
    last = None if path is None else read_run(path)
    rows = last.plan.reassignments if last else ()
    current, unread = read_settings(client, live.brokers, live.topics)
    _read_log_dirs(client, live, rows, current)
    overview = None if last is None else _overview(last, judge(rows, live), current)
    ours = {r.tp for r in rows} if last and last.state.outcome is None else set()
    moving = [*_moving(live, ours, _sizes(client, live)), *between_log_dirs(live, ours)]
    receiving = {node for row in moving for node in row.adding}
    return Status(
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
    """What the last run's plan wants in other log dirs; everything where a throttle says that somebody copies there.

    To ask every broker for all its replicas each time would take long.
    """
    named = named_brokers(rows) & live.brokers.keys()
    if named:
        asked = numbers_by_topic(r.tp for r in rows if r.log_dirs)
        live.log_dirs = fetch_log_dirs(client, named, topics=asked)
    throttled = {int(r.name) for r, values in current.items() if values.get(LOG_DIR_RATE) is not None}
    if throttled:
        live.log_dirs |= fetch_log_dirs(client, throttled)


def _todo(last: LastRun | None, overview: RunOverview | None) -> str | None:
    if last is None or overview is None or overview.alive:
        return None
    if last.state.outcome is None:
        cancelling = overview.state == "cancelling"
        return "`kctl topic reassign cancel` goes on with cancelling" if cancelling else WAYS_OUT
    if overview.throttles_left:
        names = ", ".join(overview.throttles_left)
        return f"the run left its throttles on {names}: `kctl topic reassign resume` restores them once it is up"
    return None


def _overview(last: LastRun, found: Reached, current: Mapping[Resource, Values]) -> RunOverview:
    throttle, changes = _throttle_now(last.state, current)
    state, alive = last.state, journal.held(last.path)
    return RunOverview(
        kind=state.plan.kind,
        state=_word(state, alive),
        alive=alive,
        pid=state.pid if alive else None,
        journal=str(last.path),
        source=state.plan.source,
        began_at=state.began_at,
        last_at=state.last_at,
        batches=len(state.plan.batches),
        batches_done=state.batches_done,
        partition_count=found.partition_count,
        reached=found.reached,
        in_flight=found.in_flight,
        as_before=found.as_before,
        elsewhere=found.elsewhere,
        throttle_bytes=state.throttle_rate if state.throttled else None,
        throttle=throttle,
        throttle_changes=changes,
        throttles_left=throttles_left(state),
    )


def _throttle_now(state: RunState, current: Mapping[Resource, Values]) -> tuple[str, list[str]]:
    """Which throttle of the run is on, as the cluster has it; and what others have done to it."""
    phrase = throttle_phrase(state)
    if state.throttle_phase is not ThrottlePhase.ON or state.throttle is None:
        return phrase, []
    own = Throttle.from_json(state.throttle)
    found = tampering(own, current)
    if found:
        rate = f"its throttle of {format_size(state.throttle_rate or 0)}/s"
        phrase = f"{rate} is off: someone else removed it" if is_off(own, found) else f"{rate} is not on everywhere"
    return phrase, [each.line for each in found.values()]


def _word(state: RunState, alive: bool) -> str:
    if state.outcome is not None:
        return state.outcome
    if state.mode is Mode.CANCELLED:
        return "cancelling"
    if state.mode is Mode.PAUSED:
        return "pausing" if alive else "paused"
    return "running" if alive else "stopped"


def _sizes(client: ClusterClient, live: LiveState) -> Places:
    """Where the replicas of moving partitions are, on those that lead and those that receive."""
    nodes: set[int] = set()
    for tp, moving in live.moving.items():
        partition = live.partition(tp)
        nodes.update(moving.adding)
        if partition is not None:
            nodes.add(partition.leader)
    asked = nodes & live.brokers.keys()
    if not asked:
        return {}
    return places_of(fetch_log_dirs(client, asked, topics=numbers_by_topic(sorted(live.moving))))


def _moving(live: LiveState, ours: set[TopicPartition], places: Places) -> list[MovingPartition]:
    rows = []
    for tp, moving in sorted(live.moving.items()):
        partition = live.partition(tp)
        leader = -1 if partition is None else partition.leader
        source = places.get((leader, tp))
        copies: list[Place | None] = [places.get((node, tp)) for node in moving.adding]
        rows.append(
            MovingPartition(
                topic=tp.topic,
                partition=tp.partition,
                replicas=list(live.target(tp) or ()),
                adding=list(moving.adding),
                removing=list(moving.removing),
                ours=tp in ours,
                copied_bytes=sum(place.size_bytes for place in copies if place) if any(copies) else None,
                size_bytes=None if source is None else source.size_bytes * len(moving.adding),
            )
        )
    return rows


def between_log_dirs(live: LiveState, ours: set[TopicPartition]) -> list[MovingPartition]:
    """Copies between log dirs, of the brokers that were asked."""
    rows = []
    for (node, tp), place in sorted(places_of(live.log_dirs).items(), key=lambda row: (row[0][1], row[0][0])):
        if place.future_path is not None:
            replicas = list(live.target(tp) or ())
            sizes = place.future_bytes, place.size_bytes
            rows.append(
                MovingPartition(
                    tp.topic, tp.partition, replicas, [], [], tp in ours, *sizes, broker=node, log_dir=place.future_path
                )
            )
    return rows
