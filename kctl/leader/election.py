"""Plan leader elections, carry them out in batches, and read back the leaders.

The result depends on the leaders that are read back, not on the response to the request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.cluster.eligible import NONE_ELIGIBLE, Eligible
from kctl.cluster.partition_numbers import no_partition
from kctl.errors import KctlError, NotHealthy, OperationFailed, OutcomeUnknown, Reason, Refused
from kctl.health.leaders import not_preferred
from kctl.model import ClusterState, PartitionState, TopicPartition
from kctl.protocol.partition_requests import PER_REQUEST
from kctl.topics.elect import elect_leaders

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.1

OnProgress = Callable[[str, float, float], None]  # a message, partitions done, partitions in all


@dataclass(frozen=True, slots=True)
class Election:
    """An election of one partition. reason: set if the result is SKIPPED or FAILED.

    leader: the current leader, None if there is none. elected: the replica to elect, or the elected replica.
    """

    topic: str
    partition: int
    leader: int | None
    elected: int | None
    result: ItemResult
    reason: str | None = None

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def choose(
    client: ClusterClient,
    topics: Sequence[str] = (),
    match: Sequence[str] = (),
    partitions: Sequence[int] | None = None,
) -> tuple[ClusterState, list[PartitionState]]:
    """Return the selected partitions.

    topics, match: select topics (default: all). partitions: partition numbers in each topic (default: all).

    Raises NotFound for topics and partitions that do not exist, UsageError for invalid names and patterns.
    """
    from kctl.cluster.topics import chosen_states, only_chosen

    state = only_chosen(client, topics, match)
    return state, chosen_states((state.topics[name] for name in sorted(state.topics)), partitions)


def choose_each(
    client: ClusterClient, partitions: Collection[TopicPartition]
) -> tuple[ClusterState, list[PartitionState]]:
    """Return the state of each listed partition. Raises NotFound, UsageError."""
    from kctl.cluster.topics import known_topics

    state = known_topics(client, sorted({tp.topic for tp in partitions}))
    present = {p.tp: p for topic in state.topics.values() for p in topic.partitions}
    for name in sorted(state.topics):
        missing = {tp.partition for tp in partitions if tp.topic == name and tp not in present}
        if missing:
            raise no_partition(name, missing, len(state.topics[name].partitions))
    return state, [present[tp] for tp in sorted(partitions)]


def plan_preferred(state: ClusterState, partitions: Collection[PartitionState]) -> list[Election]:
    """Return an election for each partition that is not led by its preferred replica. Pure."""
    plan = []
    for p in partitions:
        if p.leader == p.preferred_leader:
            continue
        status = not_preferred(state, p)
        result = ItemResult.WOULD_ELECT if status.electable else ItemResult.SKIPPED
        plan.append(Election(p.topic, p.partition, status.leader, p.preferred_leader, result, status.reason))
    return plan


def plan_unclean(
    state: ClusterState,
    partitions: Collection[PartitionState],
    *,
    named: bool = False,
    eligible: Mapping[TopicPartition, Eligible] | None = None,
    ignore_eligible: bool = False,
) -> list[Election]:
    """Return an election for each partition without a leader. Pure.

    The controller elects the first live replica in assignment order, preferring replicas in sync
    (PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection). named: partitions were selected one by one; a
    partition with a leader then raises Refused. eligible: replicas that can lead without data loss; a partition that
    has any is skipped. ignore_eligible: do not skip it if all of them are down.
    """
    plan = []
    for p in partitions:
        if not p.offline:
            if named:
                raise Refused(
                    f"{p.tp} has a leader (broker {p.leader}): an unclean election is for partitions without one",
                    hint="nothing was changed; to move a leader to the preferred replica, use --preferred",
                    reason=Reason.NOT_READY,
                )
            continue
        alive = [node for node in p.replicas if node in state.brokers]
        in_sync = [node for node in alive if node in p.isr]
        eligible_replicas = (eligible or {}).get(p.tp, NONE_ELIGIBLE)
        candidate = next(iter(in_sync or _last_known_leader(p, eligible_replicas, alive) or alive), None)
        reason = _reason_against_unclean(state, p, alive, eligible_replicas, ignore_eligible)
        result = ItemResult.SKIPPED if reason else ItemResult.WOULD_ELECT
        plan.append(Election(p.topic, p.partition, None, None if reason else candidate, result, reason))
    return plan


def _last_known_leader(p: PartitionState, eligible: Eligible, alive: Collection[int]) -> list[int]:
    """Return the last known leader if the controller elects it before other replicas (Eligible.last_known)."""
    alone = len(eligible.last_known) == 1 and not p.isr and not eligible.replicas
    return [node for node in eligible.last_known if alone and node in alive]


def _reason_against_unclean(
    state: ClusterState, p: PartitionState, alive: Sequence[int], eligible: Eligible, ignore_eligible: bool
) -> str | None:
    """Return why an unclean election is not allowed."""
    if not alive:
        return f"all its replicas are on brokers that are down: {', '.join(map(str, p.replicas))}"
    up = [node for node in eligible.replicas if node in state.brokers]
    if up:
        return f"broker {up[0]} is an eligible leader replica and up: the controller will elect it"
    if eligible.replicas and not ignore_eligible:
        down = ", ".join(map(str, eligible.replicas))
        if len(eligible.replicas) == 1:
            return f"broker {down} is an eligible leader replica, which has every committed record: start it first"
        return f"brokers {down} are eligible leader replicas, which have every committed record: start them first"
    return None


def carry_out(
    client: ClusterClient,
    plan: Sequence[Election],
    *,
    unclean: bool = False,
    timeout_s: float = 30.0,
    on_progress: OnProgress | None = None,
) -> list[Election]:
    """Carry out the elections in batches. Return each with the leader that was read back.

    timeout_s: time limit for the new leaders of one batch. Raises the error of elect_leaders if nothing was done.
    """
    todo = [row for row in plan if row.result is ItemResult.WOULD_ELECT]
    done: dict[TopicPartition, Election] = {}
    for start in range(0, len(todo), PER_REQUEST):
        batch = todo[start : start + PER_REQUEST]
        if on_progress:
            on_progress("electing", start, len(todo))
        try:
            errors = elect_leaders(client, [row.tp for row in batch], unclean=unclean)
        except KctlError as exc:
            if start == 0:
                raise
            done |= {row.tp: replace(row, result=ItemResult.FAILED, reason=exc.message) for row in todo[start:]}
            break
        done |= _read_back(client, batch, errors, unclean, timeout_s)
    return [done.get(row.tp, row) for row in plan]


def _read_back(
    client: ClusterClient,
    batch: Sequence[Election],
    errors: Mapping[TopicPartition, KctlError | None],
    unclean: bool,
    timeout_s: float,
) -> dict[TopicPartition, Election]:
    """Wait until brokers report the new leaders. Rejected elections are read back once, without waiting."""
    deadline = Deadline(timeout_s)
    waiting = {row.tp: row for row in batch}
    done: dict[TopicPartition, Election] = {}
    while waiting:
        leaders = _leaders(client, waiting)
        for tp, row in list(waiting.items()):
            leader = leaders.get(tp)
            error = errors.get(tp)
            if leader is not None and (unclean or leader == row.elected):
                done[tp] = replace(row, result=ItemResult.ELECTED, elected=leader)
            elif error is not None and (deadline.expired or not isinstance(error, OutcomeUnknown)):
                done[tp] = replace(row, result=ItemResult.FAILED, reason=error.message)
            elif deadline.expired:
                reason = (
                    f"no new leader appeared within {timeout_s:g} s" if leader is None else f"broker {leader} leads"
                )
                done[tp] = replace(row, result=ItemResult.FAILED, reason=reason)
            else:
                continue
            del waiting[tp]
        if waiting:
            time.sleep(_POLL_S)
    return done


def _leaders(client: ClusterClient, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
    state = client.metadata(sorted({tp.topic for tp in partitions}))
    return {p.tp: None if p.offline else p.leader for topic in state.topics.values() for p in topic.partitions}


def require_elected(plan: Sequence[Election]) -> None:
    """Raise OperationFailed for elections that failed, NotHealthy for partitions that were skipped."""
    failed = [f"{row.tp}: {row.reason}" for row in plan if row.result is ItemResult.FAILED]
    if failed:
        raise OperationFailed(
            f"{len(failed)} of {counted(len(plan), 'partition')} without the elected leader: {first_few(failed)}",
            hint="check `kctl leader status`, then run the command again to retry",
        )
    skipped = [f"{row.tp}: {row.reason}" for row in plan if row.result is ItemResult.SKIPPED]
    if skipped:
        raise NotHealthy(
            f"{counted(len(skipped), 'partition')} skipped: {first_few(skipped)}",
            hint="start the brokers that are down, wait until replicas are in sync, then elect again",
        )


def first_few(lines: Sequence[str]) -> str:
    """Return the first three lines, and the number of remaining lines."""
    more = f"; and {len(lines) - 3} more" if len(lines) > 3 else ""
    return "; ".join(lines[:3]) + more
