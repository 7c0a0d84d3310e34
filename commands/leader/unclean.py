"""`kctl leader elect --unclean`: what would be lost is told, and the cluster's name has to be typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.commands.leader.elections import tell_skipped
from kctl.commands.terminal import output
from kctl.commands.terminal.confirm import confirm_name
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.cluster.unchanged import Basis
    from kctl.leader.election import Election
    from kctl.leader.eligible import Eligible
    from kctl.leader.losses import Loss
    from kctl.model import ClusterState, PartitionState, TopicPartition
    from kctl.protocol.client import ClusterClient


def elect_unclean(
    inv: Invocation,
    client: ClusterClient,
    state: ClusterState,
    chosen: Sequence[PartitionState],
    *,
    named: bool,
    dry_run: bool,
    ignore_eligible: bool = False,
) -> None:
    """Plan, tell what would be lost, confirm, elect, look. Raises as `kctl leader elect` does."""
    from kctl.leader.election import carry_out, plan_unclean, require_elected
    from kctl.leader.eligible import read_eligible
    from kctl.leader.losses import find_losses

    eligible = read_eligible(client, [p.tp for p in chosen if p.offline])
    plan = plan_unclean(state, chosen, named=named, eligible=eligible, ignore_eligible=ignore_eligible)
    losses = find_losses(client, state, plan, eligible)
    if not plan:
        output.note(f"{counted(len(chosen), 'partition')} looked at, and all have a leader")
    elif not dry_run and losses:
        tell_skipped(plan)
        for loss in losses:
            output.warn(str(loss))
        basis = _basis(client, state, plan, eligible)
        protectors = inv.protectors(client.target)
        names = [each.name for each in protectors] or [client.target.name]
        confirm_name(
            f"Elect leaders of {_names(losses)} of {client.target.name} from replicas that are not in sync? "
            "This loses records, for ever; starting the brokers that are down would not.",
            *names,
            given=inv.confirm_cluster,
            reason=protectors[0].reason if protectors else "",
        )
        basis.check()
        with output.progress("electing") as bar:
            plan = carry_out(client, plan, unclean=True, timeout_s=inv.timeout_s(30), told=bar.update)
    rows = _rows(plan, losses, eligible)
    inv.emit(rows, lambda: [Table(_COLUMNS, rows, empty="no election is needed")], changed=any_changed(plan))
    require_elected(plan)


def _basis(
    client: ClusterClient, state: ClusterState, plan: Sequence[Election], eligible: Mapping[TopicPartition, Eligible]
) -> Basis:
    """Leaders, replicas that are up, and eligible leader replicas. They are looked at again behind the question."""
    from kctl.cluster import unchanged
    from kctl.leader.eligible import unchanged_eligible

    elections = {row.tp for row in plan if row.result is ItemResult.WOULD_ELECT}
    shown = {tp: known for tp, known in eligible.items() if tp in elections}
    return unchanged.leaderless(client, state, [row.tp for row in plan]).also(unchanged_eligible(client, shown))


def _names(losses: Sequence[Loss]) -> str:
    names = [f"{loss.topic}-{loss.partition}" for loss in losses]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more partitions" if len(names) > 20 else "")


_COLUMNS = [
    Column("topic"),
    Column("partition", align="right"),
    Column("elected", align="right"),
    Column("loss.elected_end_offset", "FROM OFFSET", align="right"),
    Column("loss.known_lost", "KNOWN LOST", align="right"),
    Column("loss.unreachable", "CANNOT ASK"),
    Column("eligible"),
    Column("result"),
    Column("reason", show=str),
]


def _rows(
    plan: Sequence[Election], losses: Sequence[Loss], eligible: Mapping[TopicPartition, Eligible]
) -> list[dict[str, Any]]:
    found = {(loss.topic, loss.partition): {**jsonable(loss), "known_lost": loss.known_lost} for loss in losses}
    return [
        {
            **jsonable(row),
            "loss": found.get((row.topic, row.partition)),
            "eligible": list(eligible[row.tp].replicas) if row.tp in eligible else [],
        }
        for row in plan
    ]
