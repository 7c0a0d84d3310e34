"""Taking back what is in flight: the replicas that there were before, in their order, and no copies between log dirs.

A reassignment that is cancelled leaves the old replicas in an order of the controller's (ReplicaAssignment.reassignTo
puts the target's first), so the order is put right afterwards, which copies nothing. What has reached its target
stays; `rollback` takes that back.
"""

from __future__ import annotations

import time

from kctl.errors import Refused
from kctl.model import TopicPartition
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.alter import alter_log_dirs, alter_reassignments
from kctl.reassign.run.batch import some
from kctl.reassign.run.compare import Standing, View, is_back, standing
from kctl.reassign.run.observe import Observer
from kctl.reassign.run.run_state import Run
from kctl.reassign.run.steps import Step

_POLL_S = 0.5
_AGAIN_S = 5.0


def finish_cancel(run: Run) -> None:
    """Take the open batch back, for good: after the entry that says so."""
    run.write(Step.CANCEL_DONE, taken_back=_take_back(run, rows_in_flight(run)))


def take_batch_back(run: Run) -> None:
    """Take the open batch back, so that the run can be resumed later."""
    if not run.state.batch_cancelling:
        run.write(Step.BATCH_CANCEL, batch=run.state.batch)
    taken_back = _take_back(run, rows_in_flight(run))
    run.write(Step.BATCH_CANCELLED, batch=run.state.batch, taken_back=taken_back)


def rows_in_flight(run: Run) -> list[Reassignment]:
    """Partitions that this run may have in flight."""
    if not run.state.batch_open or run.state.batch is None:
        return []
    return run.state.plan.batch(run.state.batch)


def check_originals(run: Run, rows: list[Reassignment]) -> None:
    """Raise Refused when a partition in flight has no replica of before that is up and in sync."""
    if not rows:
        return
    view = run.retry_transient(lambda: Observer(run.client).look(rows, fresh=True), "looking at the partitions")
    moving = [r for r in rows if standing(r, view) is Standing.MOVING]
    run.in_flight = len(moving)
    lost = []
    for r in moving:
        partition = view.live.partition(r.tp)
        isr = () if partition is None else partition.isr
        safe = [node for node in r.before or () if node in isr and node in view.live.brokers]
        if not safe:
            lost.append(f"{r.tp}: none of its replicas of before ({_ids(r.before)}) is up and in sync")
    if lost:
        raise Refused(
            f"{len(lost)} partitions cannot go back: {some(lost)}; nothing was changed, {run.situation()}",
            hint="start those brokers, or `kctl topic reassign resume` and let the moves end",
            details={"problems": lost},
        )


def _ids(replicas: tuple[int, ...] | None) -> str:
    return ",".join(map(str, replicas or ()))


def _take_back(run: Run, rows: list[Reassignment]) -> int:
    """Until nothing of these partitions is in flight. Returns how many are as before.

    Raises Stopped when it takes longer than the stall limit. Can be done again at any point.
    """
    observer, since = Observer(run.client), time.monotonic()
    asked_at: dict[TopicPartition, float] = {}
    refused: dict[TopicPartition, str] = {}
    while rows:
        view = run.retry_transient(lambda: observer.look(rows, fresh=True), "looking at the partitions")
        left = [r for r in rows if _in_flight(r, view)]
        run.in_flight = len(left)
        if not left:
            return sum(1 for r in rows if is_back(r, view))
        if time.monotonic() - since > run.limit_s:
            why = some(list(refused.values())) if refused else f"the controller has not taken {left[0].tp} back"
            raise run.stopped(f"{len(left)} partitions did not go back: {why}", problems=list(refused.values()))
        now = time.monotonic()
        due = [r for r in left if now - asked_at.get(r.tp, -_AGAIN_S) >= _AGAIN_S]
        asked_at.update((r.tp, now) for r in due)
        refused = _request_return(run, due, view) or refused
        time.sleep(_POLL_S)
    return 0


def _in_flight(r: Reassignment, view: View) -> bool:
    """Is there something of ours to take back?"""
    return standing(r, view) is Standing.MOVING or _wrong_order(r, view) or bool(_futures(r, view))


def _wrong_order(r: Reassignment, view: View) -> bool:
    """The replicas of before in another order: what the controller makes of a cancelled move."""
    partition = view.live.partition(r.tp)
    if partition is None or r.before is None or r.tp in view.live.moving or set(r.before) == set(r.after):
        return False
    return partition.replicas != r.before and set(partition.replicas) == set(r.before)


def _futures(r: Reassignment, view: View) -> list[tuple[int, str]]:
    """(broker, log dir where the replica is) of copies between log dirs that the plan began."""
    found = []
    for node, path in zip(r.after, r.log_dirs or (), strict=False):
        place = view.places.get((node, r.tp))
        if place is not None and path is not None and place.future_path == path:
            found.append((node, place.path))
    return found


def _request_return(run: Run, rows: list[Reassignment], view: View) -> dict[TopicPartition, str]:
    """Ask for whatever is still to go back. What was refused, and why."""
    targets: dict[TopicPartition, tuple[int, ...] | None] = {}
    dirs: dict[int, dict[str, list[TopicPartition]]] = {}
    for r in rows:
        if standing(r, view) is Standing.MOVING:
            targets[r.tp] = None
        elif _wrong_order(r, view):
            targets[r.tp] = r.before
        for node, path in _futures(r, view):  # to be where it is ends the copy (ReplicaManager.alterReplicaLogDirs)
            dirs.setdefault(node, {}).setdefault(path, []).append(r.tp)
    failed: dict[TopicPartition, str] = {}
    if targets:
        errors = run.retry_transient(lambda: alter_reassignments(run.client, targets), "asking for the old replicas")
        failed |= {tp: error.message for tp, error in errors.items()}
    if dirs:
        failed |= {tp: error.message for (_, tp), error in alter_log_dirs(run.client, dirs).items()}
    return failed
