"""Cancel moves in flight: restore the original replicas in their order, and stop copies between log dirs.

After a cancellation, the controller leaves the original replicas in another order (target replicas first, see
ReplicaAssignment.reassignTo), so the order is restored afterwards, which copies nothing. Partitions at their target
stay there; `rollback` moves them back.
"""

from __future__ import annotations

import time

from kctl.base.text import counted
from kctl.errors import Reason, Refused
from kctl.model import TopicPartition
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.alter import alter_log_dirs, alter_reassignments
from kctl.reassign.run.batch import some
from kctl.reassign.run.compare import PlanPosition, PlanView, is_back, position_of
from kctl.reassign.run.observe import PartitionObserver
from kctl.reassign.run.run_state import Run
from kctl.reassign.run.steps import RunStep

_POLL_S = 0.5
_RETRY_S = 5.0


def finish_cancel(run: Run) -> None:
    """Cancel the open batch and record the end of the cancellation."""
    run.write(RunStep.CANCEL_DONE, taken_back=_cancel_moves(run, rows_in_flight(run)))


def cancel_batch(run: Run) -> None:
    """Cancel the open batch, so that the run can be resumed later."""
    if not run.state.batch_cancelling:
        run.write(RunStep.BATCH_CANCEL, batch=run.state.batch)
    returned_count = _cancel_moves(run, rows_in_flight(run))
    run.write(RunStep.BATCH_CANCELLED, batch=run.state.batch, taken_back=returned_count)


def rows_in_flight(run: Run) -> list[Reassignment]:
    """Return the partitions that this run may have in flight."""
    if not run.state.batch_open or run.state.batch is None:
        return []
    return run.state.plan.batch(run.state.batch)


def check_originals(run: Run, rows: list[Reassignment]) -> None:
    """Raise Refused if a partition in flight has no original replica that is up and in sync."""
    if not rows:
        return
    observer = PartitionObserver(run.client)
    view = run.retry_transient(lambda: observer.observe(rows, fresh=True), "reading the partitions")
    moving = [r for r in rows if position_of(r, view) is PlanPosition.MOVING]
    run.in_flight = len(moving)
    stuck = []
    for r in moving:
        partition = view.live.partition(r.tp)
        isr = () if partition is None else partition.isr
        safe = [node for node in r.before or () if node in isr and node in view.live.brokers]
        if not safe:
            stuck.append(f"{r.tp}: none of its original replicas ({_ids(r.before)}) is up and in sync")
    if stuck:
        raise Refused(
            f"{counted(len(stuck), 'partition')} cannot return: {some(stuck)}; nothing was changed, {run.situation()}",
            hint="start those brokers, or complete the moves with `kctl topic reassign resume`",
            details={"problems": stuck},
            reason=Reason.IMPOSSIBLE,
        )


def _ids(replicas: tuple[int, ...] | None) -> str:
    return ",".join(map(str, replicas or ()))


def _cancel_moves(run: Run, rows: list[Reassignment]) -> int:
    """Cancel moves until none is in flight. Return the number of partitions with their original replicas.

    Raises Stopped if it takes longer than the stall limit. Idempotent.
    """
    observer, since = PartitionObserver(run.client), time.monotonic()
    requested_at: dict[TopicPartition, float] = {}
    rejections: dict[TopicPartition, str] = {}
    while rows:
        view = run.retry_transient(lambda: observer.observe(rows, fresh=True), "reading the partitions")
        moving = [r for r in rows if _in_flight(r, view)]
        run.in_flight = len(moving)
        if not moving:
            return sum(1 for r in rows if is_back(r, view))
        if time.monotonic() - since > run.limit_s:
            why = some(list(rejections.values())) if rejections else f"the controller has not canceled {moving[0].tp}"
            raise run.stopped(
                f"{counted(len(moving), 'partition')} did not return to the original replicas: {why}",
                problems=list(rejections.values()),
            )
        now = time.monotonic()
        due = [r for r in moving if now - requested_at.get(r.tp, -_RETRY_S) >= _RETRY_S]
        requested_at.update((r.tp, now) for r in due)
        rejections = _request_return(run, due, view) or rejections
        time.sleep(_POLL_S)
    return 0


def _in_flight(r: Reassignment, view: PlanView) -> bool:
    """Return True if the plan's move of the partition is in flight."""
    return position_of(r, view) is PlanPosition.MOVING or _wrong_order(r, view) or bool(_log_dir_copies(r, view))


def _wrong_order(r: Reassignment, view: PlanView) -> bool:
    """Return True if the original replicas are in another order, as after a canceled move."""
    partition = view.live.partition(r.tp)
    if partition is None or r.before is None or r.tp in view.live.moving or set(r.before) == set(r.after):
        return False
    return partition.replicas != r.before and set(partition.replicas) == set(r.before)


def _log_dir_copies(r: Reassignment, view: PlanView) -> list[tuple[int, str]]:
    """Return (broker, current log dir of the replica) of the plan's copies between log dirs."""
    copies = []
    for node, path in zip(r.after, r.log_dirs or (), strict=False):
        place = view.places.get((node, r.tp))
        if place is not None and path is not None and place.future_path == path:
            copies.append((node, place.path))
    return copies


def _request_return(run: Run, rows: list[Reassignment], view: PlanView) -> dict[TopicPartition, str]:
    """Request the remaining cancellations. Return the rejected partitions with the reason."""
    targets: dict[TopicPartition, tuple[int, ...] | None] = {}
    dirs: dict[int, dict[str, list[TopicPartition]]] = {}
    for r in rows:
        if position_of(r, view) is PlanPosition.MOVING:
            targets[r.tp] = None
        elif _wrong_order(r, view):
            targets[r.tp] = r.before
        for node, path in _log_dir_copies(r, view):
            # requesting the current log dir stops the copy (ReplicaManager.alterReplicaLogDirs)
            dirs.setdefault(node, {}).setdefault(path, []).append(r.tp)
    failed: dict[TopicPartition, str] = {}
    if targets:
        errors = run.retry_transient(
            lambda: alter_reassignments(run.client, targets), "restoring the original replicas"
        )
        failed |= {tp: error.message for tp, error in errors.items()}
    if dirs:
        failed |= {tp: error.message for (_, tp), error in alter_log_dirs(run.client, dirs).items()}
    return failed
