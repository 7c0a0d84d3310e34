"""From a plan's file to a run: checked against the cluster, completed by what the cluster knows, cut into batches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.errors import OperationFailed, Refused
from kctl.model import TopicPartition
from kctl.reassign.plan_file.read import PlanFile
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import default_concurrency, make_batches, receivers_of
from kctl.reassign.planner.execution import estimated_ms
from kctl.reassign.run.checks import Problem, check, doubts
from kctl.reassign.run.compare import Place, Standing, View, places_of, standing
from kctl.reassign.run.live_state import read_live
from kctl.reassign.run.run_plan import RunPlan, copy_bytes

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Options:
    """How to carry a plan out. None: what the plan says, or a default. See RunPlan."""

    throttle_bytes: int | None = None
    max_concurrent_moves: int | None = None
    batch_bytes: int | None = None
    elect: bool = True
    stall_after_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that can begin. todo: partitions that are not at their target; doubts: what could not be checked.

    leaders: beside the plan's reassignments, who leads each now.
    """

    plan: RunPlan
    doubts: list[str]
    leaders: list[int]

    @property
    def todo(self) -> list[Reassignment]:
        return [self.plan.reassignments[position] for batch in self.plan.batches for position in batch]


@dataclass(frozen=True, slots=True)
class Preview:
    """What a run will do. removed_replicas: how many partitions have less than before. duration_ms: at least, at the
    throttle; None without one.
    """

    kind: str
    cluster: str
    partition_count: int
    reached: int
    moves: int
    bytes: int
    unknown_sizes: int
    reorders: int
    removed_replicas: int
    batches: int
    throttle_bytes: int | None
    duration_ms: int | None
    remove_brokers: list[int]


def prepare(
    client: ClusterClient, file: PlanFile, options: Options, *, kind: str, source: str, cluster: str
) -> Prepared:
    """Read the cluster and make a run of the plan. Raises Refused with everything that speaks against it."""
    live = read_live(client, {r.topic for r in file.reassignments}, log_dirs_of=None)
    problems = check(file, live)
    if problems:
        raise refusal(problems, {str(tp) for tp in live.moving})
    if live.cluster_id is None:
        raise OperationFailed("the cluster does not tell its id")
    view = View(live, places_of(live.log_dirs))
    rows = tuple(_completed(r, view) for r in file.reassignments)
    done = {r.tp for r in rows if standing(r, view) is Standing.REACHED}
    plan = RunPlan(
        kind=kind,
        source=source,
        digest=file.digest,
        cluster_id=live.cluster_id,
        cluster=cluster,
        reassignments=rows,
        batches=_batches(file, rows, done, options, len(live.brokers)),
        remove_brokers=file.remove_brokers,
        throttle_bytes=options.throttle_bytes,
        elect=options.elect,
        stall_after_ms=options.stall_after_ms,
    )
    found = (live.partition(r.tp) for r in rows)
    leaders = [-1 if partition is None else partition.leader for partition in found]
    return Prepared(plan, [str(doubt) for doubt in doubts(file, live)], leaders)


def refusal(problems: Sequence[Problem], moving: Collection[str] = ()) -> Refused:
    """Everything that speaks against a plan as one error; details["problems"] has all of it.

    moving: partitions that are being moved, «topic-partition».
    """
    hint = "a new plan of the cluster as it is now may be what you want"
    if any(problem.subject in moving for problem in problems):
        hint = "wait until those moves have ended (`kctl topic reassign status`), or cancel them where they were begun"
    count = "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"
    more = f"; and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
    return Refused(
        f"the plan cannot be carried out, {count}: {'; '.join(map(str, problems[:_SHOWN]))}{more}",
        hint=f"nothing was changed; {hint}",
        details={"problems": [{"subject": p.subject, "reason": p.reason} for p in problems]},
    )


def _completed(r: Reassignment, view: View) -> Reassignment:
    """With `before`, the log dirs of before, the topic's id and the size, as they are now where the file lacks them."""
    partition = view.live.partition(r.tp)
    assert partition is not None, "check named it"
    before = partition.replicas if r.before is None else r.before
    dirs_before = r.log_dirs_before
    if r.log_dirs is not None:
        known = dirs_before or (None,) * len(before)
        dirs_before = tuple(
            path or _path(view.places.get((node, r.tp))) for node, path in zip(before, known, strict=True)
        )
    source = view.places.get((partition.leader, r.tp))
    return replace(
        r,
        before=before,
        log_dirs_before=dirs_before,
        size_bytes=r.size_bytes if source is None else source.size_bytes,
        topic_id=r.topic_id or view.live.topics[r.topic].topic_id,
    )


def _path(place: Place | None) -> str | None:
    return None if place is None else place.path


def _batches(
    file: PlanFile, rows: Sequence[Reassignment], done: set[TopicPartition], options: Options, brokers: int
) -> tuple[tuple[int, ...], ...]:
    """The plan's own batches unless options say otherwise; without what is done."""
    if file.batches is not None and options.max_concurrent_moves is None and options.batch_bytes is None:
        batches = file.batches
    else:
        todo = [position for position, r in enumerate(rows) if r.tp not in done]
        made = make_batches(
            [rows[position] for position in todo],
            max_concurrent_moves=options.max_concurrent_moves or default_concurrency(brokers),
            batch_bytes=options.batch_bytes,
        )
        batches = tuple(tuple(todo[i] for i in batch) for batch in made)
    left = (tuple(position for position in batch if rows[position].tp not in done) for batch in batches)
    return tuple(batch for batch in left if batch)


def preview(prepared: Prepared) -> Preview:
    """The figures of a run."""
    plan, todo = prepared.plan, prepared.todo
    rate = plan.throttle_bytes
    return Preview(
        kind=plan.kind,
        cluster=plan.cluster,
        partition_count=len(todo),
        reached=len(plan.reassignments) - len(todo),
        moves=sum(len(receivers_of(r)) for r in todo),
        bytes=sum(map(copy_bytes, todo)),
        unknown_sizes=sum(1 for r in todo if r.size_bytes is None and receivers_of(r)),
        reorders=sum(1 for r in todo if not receivers_of(r)),
        removed_replicas=sum(max(0, len(r.before) - len(r.after)) for r in todo if r.before is not None),
        batches=len(plan.batches),
        throttle_bytes=rate,
        duration_ms=estimated_ms(plan.reassignments, plan.batches, rate, prepared.leaders) if rate else None,
        remove_brokers=list(plan.remove_brokers),
    )
