"""Leader operations, each in one call: plan, confirm, elect or reorder, read back.

`confirm` raises to cancel, and checks the basis again after the user's answer; nothing is changed before it returns.
`watching` is the context manager around the election; it yields the progress callback.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.cluster import unchanged
from kctl.cluster.eligible import Eligible, read_eligible, unchanged_eligible
from kctl.cluster.unchanged import Basis
from kctl.leader import balance as balancing
from kctl.leader.balance import LeaderBalance
from kctl.leader.election import Election, OnProgress, carry_out, plan_preferred, plan_unclean
from kctl.leader.losses import UncleanLoss, find_losses
from kctl.model import ClusterState, PartitionState, TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

Watching = Callable[[], AbstractContextManager[OnProgress]]


def elect_preferred(
    client: ClusterClient,
    state: ClusterState,
    partitions: Collection[PartitionState],
    confirm: Callable[[Sequence[Election], Basis], None],
    *,
    watching: Watching,
    timeout_s: float,
    dry_run: bool = False,
) -> list[Election]:
    """Elect the preferred leaders of partitions that another replica leads. Raises the errors of `carry_out`."""
    plan = plan_preferred(state, partitions)
    if dry_run or not any(row.result is ItemResult.WOULD_ELECT for row in plan):
        return plan
    confirm(plan, unchanged.topics(client, {row.topic for row in plan}, state=state, replicas=True))
    with watching() as on_progress:
        return carry_out(client, plan, timeout_s=timeout_s, on_progress=on_progress)


@dataclass(frozen=True, slots=True)
class UncleanElection:
    """Elections of replicas that are not in sync, their losses, and the eligible leader replicas (KIP-966)."""

    elections: list[Election]
    losses: list[UncleanLoss]
    eligible: dict[TopicPartition, Eligible]


def elect_unclean(
    client: ClusterClient,
    state: ClusterState,
    partitions: Collection[PartitionState],
    confirm: Callable[[UncleanElection, Basis], None],
    *,
    watching: Watching,
    timeout_s: float,
    named: bool = False,
    ignore_eligible: bool = False,
    dry_run: bool = False,
) -> UncleanElection:
    """Elect leaders of partitions without one; records that exist only on replicas that are down are lost.

    named, ignore_eligible: see plan_unclean. Raises the errors of plan_unclean and carry_out.
    """
    eligible = read_eligible(client, [p.tp for p in partitions if p.offline])
    plan = plan_unclean(state, partitions, named=named, eligible=eligible, ignore_eligible=ignore_eligible)
    planned = UncleanElection(plan, find_losses(client, state, plan, eligible), eligible)
    if dry_run or not planned.losses:
        return planned
    confirm(planned, _unclean_basis(client, state, planned))
    with watching() as on_progress:
        elections = carry_out(client, plan, unclean=True, timeout_s=timeout_s, on_progress=on_progress)
    return replace(planned, elections=elections)


def _unclean_basis(client: ClusterClient, state: ClusterState, planned: UncleanElection) -> Basis:
    """Return the leaders, the replicas that are up, and the eligible leader replicas as the basis."""
    elections = {row.tp for row in planned.elections if row.result is ItemResult.WOULD_ELECT}
    displayed = {tp: replicas for tp, replicas in planned.eligible.items() if tp in elections}
    leaderless = unchanged.leaderless(client, state, [row.tp for row in planned.elections])
    return leaderless.also(unchanged_eligible(client, displayed))


def balance_leaders(
    client: ClusterClient,
    topics: Sequence[str],
    match: Sequence[str],
    confirm: Callable[[LeaderBalance, Basis], None],
    *,
    report: Callable[[LeaderBalance], None],
    watching: Watching,
    timeout_s: float,
    dry_run: bool = False,
) -> LeaderBalance:
    """Balance leaders. topics, match: see plan_balance. report: called with the plan before `confirm`.

    Raises the errors of plan_balance and `balance`.
    """
    planned = balancing.plan_balance(client, topics, match)
    report(planned)
    if dry_run or planned.nothing_to_do:
        return planned
    confirm(planned, balancing.basis(client, planned))
    with watching() as on_progress:
        return balancing.balance(client, planned, timeout_s=timeout_s, on_progress=on_progress)
