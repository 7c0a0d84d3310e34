"""`kctl leader elect --unclean`: shows the losses, and asks for the cluster's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kctl.base.outcomes import any_changed
from kctl.base.text import counted
from kctl.commands.leader.elections import progress_of, warn_of_skipped
from kctl.commands.terminal import output
from kctl.commands.terminal.confirm import confirm_name
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.cluster.eligible import Eligible
    from kctl.cluster.unchanged import Basis
    from kctl.leader.election import Election
    from kctl.leader.losses import UncleanLoss
    from kctl.leader.operations import UncleanElection
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
    """Plan, show the losses, confirm, elect, read back. Raises as `kctl leader elect` does."""
    from kctl.leader import operations
    from kctl.leader.election import require_elected

    def confirm(planned: UncleanElection, basis: Basis) -> None:
        warn_of_skipped(planned.elections)
        for loss in planned.losses:
            output.warn(str(loss))
        protectors = inv.protectors(client.target)
        names = [each.name for each in protectors] or [client.target.name]
        confirm_name(
            f"Elect leaders of {_names(planned.losses)} on {client.target.name} from replicas that are not in sync? "
            "This loses records permanently; starting the brokers that are down would not.",
            *names,
            typed=inv.confirm_cluster,
            reason=protectors[0].reason if protectors else "",
        )
        basis.check()

    result = operations.elect_unclean(
        client,
        state,
        chosen,
        confirm,
        watching=lambda: progress_of("electing"),
        timeout_s=inv.timeout_s(30),
        named=named,
        ignore_eligible=ignore_eligible,
        dry_run=dry_run,
    )
    if not result.elections:
        output.note(f"{counted(len(chosen), 'partition')} checked, all with a leader")
    rows = _rows(result.elections, result.losses, result.eligible)
    inv.emit(
        rows, lambda: [Table(_COLUMNS, rows, empty="no election is needed")], changed=any_changed(result.elections)
    )
    require_elected(result.elections)


def _names(losses: Sequence[UncleanLoss]) -> str:
    names = [f"{loss.topic}-{loss.partition}" for loss in losses]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more partitions" if len(names) > 20 else "")


_COLUMNS = [
    Column("topic"),
    Column("partition", align="right"),
    Column("elected", align="right"),
    Column("loss.elected_end_offset", "FROM OFFSET", align="right"),
    Column("loss.known_lost", "KNOWN LOST", align="right"),
    Column("loss.unreachable", "UNREACHABLE"),
    Column("eligible"),
    Column("result"),
    Column("reason", show=str),
]


def _rows(
    plan: Sequence[Election], losses: Sequence[UncleanLoss], eligible: Mapping[TopicPartition, Eligible]
) -> list[dict[str, Any]]:
    by_partition = {(loss.topic, loss.partition): {**jsonable(loss), "known_lost": loss.known_lost} for loss in losses}
    return [
        {
            **jsonable(row),
            "loss": by_partition.get((row.topic, row.partition)),
            "eligible": list(eligible[row.tp].replicas) if row.tp in eligible else [],
        }
        for row in plan
    ]
