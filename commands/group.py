"""kctl group: list and describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.invocation import CommandGroup, invocation
from kctl.commands.output import Column, Table, jsonable
from kctl.commands.views import incomplete, lag_columns, ranges

if TYPE_CHECKING:
    from kctl.groups.overview import GroupDescription

app = CommandGroup("List, describe and change consumer groups.")


@app.command("list")
def list_(
    ctx: typer.Context,
    state: Annotated[
        list[str] | None, typer.Option(help="Only groups in this state (stable, empty, …); repeatable.")
    ] = None,
) -> None:
    """List consumer groups with their state, coordinator and number of members.

    Example: kctl group list --state stable
    """
    from kctl.groups.overview import summaries

    inv = invocation(ctx)
    with inv.connect() as client:
        groups, failures = summaries(client, states=state)
    columns = [
        Column("group"),
        Column("state"),
        Column("protocol_type", "PROTOCOL TYPE"),
        Column("coordinator", align="right"),
        Column("members", align="right"),
    ]
    inv.emit(groups, lambda: [Table(columns, jsonable(groups), empty="no groups")])
    if failures:
        raise incomplete(failures)


@app.command()
def describe(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME…")],
) -> None:
    """Describe groups: members with their assignments, committed offsets and lag.

    Example: kctl group describe billing
    """
    from kctl.groups.overview import describe as describe_all

    inv = invocation(ctx)
    with inv.connect() as client:
        groups, failures = describe_all(client, names)
    inv.emit(groups, lambda: [table for group in groups for table in _tables(group)])
    if failures:
        raise incomplete(failures)


def _tables(group: GroupDescription) -> list[Table]:
    coordinator = f"coordinator broker {group.coordinator}"
    protocol = f", {group.protocol_type} protocol" if group.protocol_type else ""
    assignor = f", assignor {group.assignor}" if group.assignor else ""
    count = len(group.members)
    members = f"{count} member{'' if count == 1 else 's'}"
    title = f"{group.group}: {group.state}, {members}, {coordinator}{protocol}{assignor}"
    member_table = Table(
        columns=[
            Column("client_id", "CLIENT"),
            Column("host"),
            Column("assigned", "ASSIGNED"),
            Column("member_id", "MEMBER"),
        ],
        rows=[{**row, "assigned": _assigned(row)} for row in jsonable(group.members)],
        title=title,
    )
    offsets = Table(
        columns=lag_columns(with_group=False),
        rows=jsonable(group.offsets),
        title=None if group.members else title,
        empty=None if group.members else f"{title}; nothing committed",
    )
    return [member_table, offsets]


def _assigned(row: dict[str, Any]) -> str:
    if row["assignments"] is None:
        return "not a consumer's"
    return " ".join(f"{a['topic']}:{ranges(a['partitions'])}" for a in row["assignments"]) or "-"


for _name, _module in (
    ("reset-offsets", "group_reset_offsets"),
    ("export", "group_export"),
    ("import", "group_export"),
):
    app.command_of(_name, f"kctl.commands.{_module}")
