"""kctl group: list and describe."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands import output
from kctl.commands.invocation import CommandGroup, invocation
from kctl.commands.output import Column, Table, jsonable
from kctl.errors import OperationFailed

if TYPE_CHECKING:
    from kctl.groups.overview import GroupDescription

app = CommandGroup("List and describe consumer groups.")


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


def incomplete(failures: Sequence[str]) -> OperationFailed:
    """The error for a result that was shown and lacks something: exit code 5."""
    for line in failures[1:]:
        output.warn(line)
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return OperationFailed(f"the result is not complete: {failures[0]}{more}", hint="what was read is shown")


def _tables(group: GroupDescription) -> list[Table]:
    coordinator = f"coordinator broker {group.coordinator}"
    protocol = f", {group.protocol_type} protocol" if group.protocol_type else ""
    assignor = f", assignor {group.assignor}" if group.assignor else ""
    title = f"{group.group}: {group.state}, {len(group.members)} members, {coordinator}{protocol}{assignor}"
    members = Table(
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
    return [members, offsets]


def _assigned(row: dict[str, Any]) -> str:
    if row["assignments"] is None:
        return "not a consumer's"
    return " ".join(f"{a['topic']}:{ranges(a['partitions'])}" for a in row["assignments"]) or "-"


def ranges(numbers: Sequence[int]) -> str:
    """Sorted numbers as people write them: «0-3,7»."""
    parts: list[str] = []
    start = end = None
    for number in (*numbers, None):
        if end is not None and number == end + 1:
            end = number
            continue
        if start is not None:
            parts.append(str(start) if start == end else f"{start}-{end}")
        start = end = number
    return ",".join(parts)


def lag_columns(*, with_group: bool = True, with_members: bool = True) -> list[Column]:
    """The columns of lag rows, one partition each."""
    columns = [
        Column("group"),
        Column("topic"),
        Column("partition", "PART", align="right"),
        Column("committed_offset", "COMMITTED", align="right"),
        Column("log_start_offset", "START", align="right"),
        Column("log_end_offset", "END", align="right"),
        Column("lag", align="right"),
        Column("lost", align="right", style=lambda row: "red" if row["lost"] else None),
        Column("client_id", "CLIENT"),
        Column("host"),
    ]
    hidden = {
        key for key, shown in (("group", with_group), ("client_id", with_members), ("host", with_members)) if not shown
    }
    return [dataclasses.replace(column) for column in columns if column.key not in hidden]
