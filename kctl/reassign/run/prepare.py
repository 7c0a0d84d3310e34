"""Turn a plan file into a run: check it against the cluster, complete it from the cluster, cut it into batches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.errors import OperationFailed, Reason, Refused
from kctl.model import TopicPartition
from kctl.reassign.plan_file.read import PlanFile
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import default_concurrency, make_batches, receivers_of
from kctl.reassign.planner.execution import estimated_ms
from kctl.reassign.run.checks import PlanProblem, check, unchecked
from kctl.reassign.run.compare import PlanPosition, PlanView, ReplicaPlace, places_of, position_of
from kctl.reassign.run.live_state import read_live
from kctl.reassign.run.run_plan import RunPlan, copy_bytes

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run. None: the plan's value, or the default. See RunPlan."""

    throttle_bytes: int | None = None
    max_concurrent_moves: int | None = None
    batch_bytes: int | None = None
    elect: bool = True
    stall_after_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that can start. todo: partitions that are not at their target; unchecked: a line per unverified part.

    leaders: the current leader of each of the plan's reassignments.
    """

    plan: RunPlan
    unchecked: list[str]
    leaders: list[int]

    @property
    def todo(self) -> list[Reassignment]:
        return [self.plan.reassignments[position] for batch in self.plan.batches for position in batch]


@dataclass(frozen=True, slots=True)
class RunPreview:
    """The preview of a run. removed_replicas: partitions that get fewer replicas.

    duration_ms: lower bound at the throttle; None without a throttle.
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
    client: ClusterClient, file: PlanFile, options: RunOptions, *, kind: str, source: str, cluster: str
) -> Prepared:
    """Read the cluster and turn the plan into a run. Raises Refused with all reasons why the plan cannot run."""
    live = read_live(client, {r.topic for r in file.reassignments}, log_dirs_of=None)
    problems = check(file, live)
    if problems:
        raise refusal(problems, {str(tp) for tp in live.moving})
    if live.cluster_id is None:
        raise OperationFailed("the cluster does not report its id")
    view = PlanView(live, places_of(live.log_dirs))
    rows = tuple(_completed(r, view) for r in file.reassignments)
    done = {r.tp for r in rows if position_of(r, view) is PlanPosition.REACHED}
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
    partitions = (live.partition(r.tp) for r in rows)
    leaders = [-1 if partition is None else partition.leader for partition in partitions]
    return Prepared(plan, [str(line) for line in unchecked(file, live)], leaders)


def refusal(problems: Sequence[PlanProblem], moving: Collection[str] = ()) -> Refused:
    """Return one error for all problems of a plan; details["problems"] has all of them.

    moving: partitions that are being moved, as "topic-partition".
    """
    hint = "make a new plan from the current state of the cluster"
    if any(problem.subject in moving for problem in problems):
        hint = "wait for those moves (`kctl topic reassign status`), or cancel them on the machine that started them"
    count = "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"
    more = f"; and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
    return Refused(
        f"the plan cannot be carried out, {count}: {'; '.join(map(str, problems[:_SHOWN]))}{more}",
        hint=f"nothing was changed; {hint}",
        details={"problems": [{"subject": p.subject, "reason": p.reason} for p in problems]},
        reason=Reason.IMPOSSIBLE,
    )


def _completed(r: Reassignment, view: PlanView) -> Reassignment:
    """Fill in the original replicas and log dirs, the topic id and the size that the file lacks."""
    partition = view.live.partition(r.tp)
    assert partition is not None, "`check` reports it"
    before = partition.replicas if r.before is None else r.before
    dirs_before = r.log_dirs_before
    if r.log_dirs is not None:
        paths = dirs_before or (None,) * len(before)
        dirs_before = tuple(
            path or _path(view.places.get((node, r.tp))) for node, path in zip(before, paths, strict=True)
        )
    source = view.places.get((partition.leader, r.tp))
    return replace(
        r,
        before=before,
        log_dirs_before=dirs_before,
        size_bytes=r.size_bytes if source is None else source.size_bytes,
        topic_id=r.topic_id or view.live.topics[r.topic].topic_id,
    )


def _path(place: ReplicaPlace | None) -> str | None:
    return None if place is None else place.path


def _batches(
    file: PlanFile, rows: Sequence[Reassignment], done: set[TopicPartition], options: RunOptions, brokers: int
) -> tuple[tuple[int, ...], ...]:
    """Return the plan's own batches unless options override them, without completed partitions."""
    if file.batches is not None and options.max_concurrent_moves is None and options.batch_bytes is None:
        batches = file.batches
    else:
        todo = [position for position, r in enumerate(rows) if r.tp not in done]
        positions = make_batches(
            [rows[position] for position in todo],
            max_concurrent_moves=options.max_concurrent_moves or default_concurrency(brokers),
            batch_bytes=options.batch_bytes,
        )
        batches = tuple(tuple(todo[i] for i in batch) for batch in positions)
    remaining = (tuple(position for position in batch if rows[position].tp not in done) for batch in batches)
    return tuple(batch for batch in remaining if batch)


def preview(prepared: Prepared) -> RunPreview:
    """Return the figures of a run."""
    plan, todo = prepared.plan, prepared.todo
    rate = plan.throttle_bytes
    return RunPreview(
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
