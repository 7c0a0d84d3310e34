"""kctl group remove-member: remove members from a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult, any_changed, raise_refusal
from kctl.base.text import counted
from kctl.commands.group.reset_offsets import DRY_RUN
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.groups.remove_members import RemovedMember


def remove_member(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Group of the members.")],
    member: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Remove the member with this member id; repeatable.")
    ] = None,
    instance: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Remove the member with this group.instance.id; repeatable.")
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Remove all members.")] = False,
    dry_run: Annotated[bool, DRY_RUN] = False,
) -> None:
    """Remove dead members before their session times out.

    A member that is still running rejoins the group.

    # Show the members that would be removed
    kctl group remove-member billing --all --dry-run
    """
    from kctl.groups.basis import of_members
    from kctl.groups.remove_members import plan_remove, remove_members

    inv = invocation(ctx)
    if everyone == bool(member or instance):
        raise UsageError("no member is selected", hint="set either --member, --instance or --all")
    with inv.connect() as client:
        plan = plan_remove(client, group, member_ids=member or (), instance_ids=instance or (), everyone=everyone)
        if dry_run or not plan:
            _emit(inv, plan)
            return
        if not inv.yes:
            for row in plan[:20]:
                output.note(f"{row.group_instance_id or row.member_id}: {row.client_id} at {row.host}")
        inv.confirm(
            f"Remove {counted(len(plan), 'member')} from group {group} on {client.target.name}?",
            target=client.target,
            basis=of_members(client, group, plan),
        )
        results, errors = remove_members(client, group, plan)
    _emit(inv, results)
    rejoined = [row.client_id for row in results if row.result is ItemResult.JOINED_AGAIN]
    if rejoined:
        output.warn(f"rejoined, because they still run: {', '.join(rejoined)}")
    raise_refusal(errors, requested=len(results))
    failed = [f"{row.member_id}: {row.error}" for row in results if row.result is ItemResult.FAILED]
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(results), 'member')} not removed: {'; '.join(failed)}")


def _emit(inv: Invocation, rows: Sequence[RemovedMember]) -> None:
    columns = [
        Column("client_id", "CLIENT"),
        Column("group_instance_id", "INSTANCE"),
        Column("host"),
        Column("partition_count", "PARTITIONS", align="right"),
        Column("result", style=lambda row: "red" if row["result"] == ItemResult.FAILED else None),
        Column("member_id", "MEMBER"),
    ]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty="no members")], changed=any_changed(rows))
