"""Balance leaders over brokers: reorder replicas, which copies nothing, then elect leaders.

There is no journal: a reorder alone is harmless, partitions are independent, and an interrupted balance can be run
again, because it plans from the current state.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.cluster import unchanged
from kctl.cluster.reassignments import ongoing_reassignments
from kctl.errors import KctlError, OperationFailed, OutcomeUnknown
from kctl.leader.election import (
    Election,
    OnProgress,
    carry_out,
    choose,
    first_few,
    plan_preferred,
    require_elected,
)
from kctl.model import ClusterState, PartitionState, TopicPartition
from kctl.reassign.plan_file.document import document, text_of
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import make_batches
from kctl.reassign.planner.cluster import from_state
from kctl.reassign.planner.execution import Execution
from kctl.reassign.planner.goals import Goals
from kctl.reassign.planner.plan import Plan, make_plan, reassignments
from kctl.reassign.run import journals
from kctl.reassign.run.alter import alter_reassignments

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

REORDER_PER_BATCH = 200
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class BrokerBalance:
    """The number of partitions that a broker leads: now, as preferred leader, and as planned.

    leaders_after: read back at the end; None if nothing was done.
    """

    broker: int
    rack: str | None
    alive: bool
    leaders_before: int
    preferred_before: int
    planned: int
    leaders_after: int | None = None


@dataclass
class LeaderBalance:
    """A balance of leaders, planned or carried out.

    plan: the reorders, with a lower bound. elections: the elections needed after the reorders.

    failed: partitions that could not be reordered, with the reason.
    """

    plan: Plan
    reorders: list[Reassignment]
    elections: list[Election]
    brokers: list[BrokerBalance]
    failed: dict[TopicPartition, str] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Return whether something was changed or, in a plan, would be."""
        return bool(self.reorders) or any_changed(self.elections)

    def require_balanced(self) -> None:
        """Raise OperationFailed if something was not reordered or elected, NotHealthy for skipped partitions."""
        if self.failed:
            failed = [f"{tp}: {reason}" for tp, reason in sorted(self.failed.items())]
            raise OperationFailed(
                f"{len(failed)} of {counted(len(self.reorders), 'partition')} not reordered: {first_few(failed)}",
                hint="run the command again: it plans from the current state",
            )
        require_elected(self.elections)

    @property
    def nothing_to_do(self) -> bool:
        return not self.reorders and not any(row.result is ItemResult.WOULD_ELECT for row in self.elections)


def plan_balance(client: ClusterClient, topics: Sequence[str] = (), match: Sequence[str] = ()) -> LeaderBalance:
    """Plan the fewest changes to preferred leaders that balance them over the live brokers.

    topics, match: select topics (default: all). Raises NotFound for unknown topics, Refused while partitions are being
    reassigned or kctl has an unfinished reassignment on this machine.
    """
    state, selected = choose(client, topics, match)
    _refuse_unfinished(state.cluster_id)
    moving = ongoing_reassignments(client) or {}
    plan = make_plan(from_state(state, moving=moving), Goals(leaders_only=True))
    reorders = reassignments(plan)
    after = {r.tp: r.after for r in reorders}
    elections = plan_preferred(state, [_reordered(p, after) for p in selected])
    return LeaderBalance(plan, reorders, elections, _brokers(state, plan))


def saved_plan(planned: LeaderBalance, options: Mapping[str, Sequence[str]]) -> str:
    """Return the reorders as a plan file. options: the command's topic selection, recorded as goals."""
    batches = make_batches(planned.reorders, max_concurrent_moves=1, batch_bytes=None)
    goals = {"leaders_only": True, **{key: sorted(values) for key, values in options.items() if values}}
    return text_of(document(planned.plan, Execution(batches=batches, goals=goals)))


def basis(client: ClusterClient, planned: LeaderBalance) -> unchanged.Basis:
    """Return the basis of a balance: the topic ids, and the replicas of each partition."""
    names = {tp.topic for tp in (*(r.tp for r in planned.reorders), *(row.tp for row in planned.elections))}
    ids = dict(zip(planned.plan.cluster.topics, planned.plan.cluster.topic_ids, strict=False))
    return unchanged.topics(client, names, ids={name: ids.get(name) for name in names}, replicas=True)


def _refuse_unfinished(cluster_id: str | None) -> None:
    path = journals.unfinished(cluster_id) if cluster_id else None
    if path is not None:
        journals.refuse_second(path)


def _reordered(p: PartitionState, after: Mapping[TopicPartition, tuple[int, ...]]) -> PartitionState:
    """Return the partition with its replicas in the new order."""
    return replace(p, replicas=after.get(p.tp, p.replicas))


def _leaders(state: ClusterState) -> dict[int, int]:
    counts: dict[int, int] = {}
    for topic in state.topics.values():
        for p in topic.partitions:
            counts[p.leader] = counts.get(p.leader, 0) + 1
    return counts


def _brokers(state: ClusterState, plan: Plan) -> list[BrokerBalance]:
    leaders = _leaders(state)
    return [
        BrokerBalance(now.broker, now.rack, now.alive, leaders.get(now.broker, 0), now.leaders, then.leaders)
        for now, then in zip(plan.before, plan.after, strict=True)
    ]


def balance(
    client: ClusterClient, planned: LeaderBalance, *, timeout_s: float = 30.0, on_progress: OnProgress | None = None
) -> LeaderBalance:
    """Reorder, read back, elect, and count the leaders again.

    A partition whose replicas have changed since the plan is skipped and listed in `failed`. timeout_s: time limit for
    each batch. Raises the errors of `alter_reassignments` and `carry_out` if nothing was done.
    """
    failed: dict[TopicPartition, str] = {}
    rows = planned.reorders
    for start in range(0, len(rows), REORDER_PER_BATCH):
        if on_progress:
            on_progress("reordering replicas", start, len(rows))
        failed |= _reorder(client, rows[start : start + REORDER_PER_BATCH], timeout_s)
    pending = [row for row in planned.elections if row.tp not in failed]
    elections = carry_out(client, pending, timeout_s=timeout_s, on_progress=on_progress)
    leaders = _leaders(client.metadata(planned.plan.cluster.topics))
    brokers = [replace(b, leaders_after=leaders.get(b.broker, 0)) for b in planned.brokers]
    return LeaderBalance(planned.plan, rows, elections, brokers, failed)


def _reorder(client: ClusterClient, batch: Sequence[Reassignment], timeout_s: float) -> dict[TopicPartition, str]:
    """Reorder a batch; return the partitions that did not get the new order, with the reason."""
    now = _replicas(client, batch)
    failed = {r.tp: _why_stale(now.get(r.tp)) for r in batch if now.get(r.tp) not in {r.before, r.after}}
    todo = {r.tp: r for r in batch if r.tp not in failed and now[r.tp] != r.after}
    errors: dict[TopicPartition, KctlError] = {}
    if todo:
        errors = alter_reassignments(client, {tp: r.after for tp, r in todo.items()})
    failed |= {tp: error.message for tp, error in errors.items() if not isinstance(error, OutcomeUnknown)}
    waiting = {tp: r for tp, r in todo.items() if tp not in failed}
    deadline = Deadline(timeout_s)
    while waiting:
        now = _replicas(client, list(waiting.values()))
        waiting = {tp: r for tp, r in waiting.items() if now.get(tp) != r.after}
        if waiting and deadline.expired:
            reason = f"the new order did not appear within {timeout_s:g} s"
            return failed | {tp: errors[tp].message if tp in errors else reason for tp in waiting}
        if waiting:
            time.sleep(_POLL_S)
    return failed


def _replicas(client: ClusterClient, rows: Collection[Reassignment]) -> dict[TopicPartition, tuple[int, ...]]:
    state = client.metadata(sorted({r.topic for r in rows}))
    return {p.tp: p.replicas for topic in state.topics.values() for p in topic.partitions}


def _why_stale(now: tuple[int, ...] | None) -> str:
    if now is None:
        return "the partition no longer exists"
    replicas = ",".join(map(str, now))
    return f"its replicas were changed by someone else, to {replicas}"
