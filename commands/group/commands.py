"""kctl group: consumer groups. Larger commands have their own modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.group.choice import MATCH, TYPE
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import beyond_end, incomplete, lag_columns, ranges, with_rare
from kctl.commands.terminal.watching import INTERVAL, WATCH, PassOutput, Watching
from kctl.errors import NotFound, NotSupported

if TYPE_CHECKING:
    from kctl.cluster.groups.newer_groups import StartOffset
    from kctl.cluster.groups.streams import InternalTopic, Topology
    from kctl.groups.overview import GroupDescription, GroupSummary

_NO_TOPOLOGY = "no topology yet: source topics are missing, or their partitions do not match"

app = CommandGroup()


@app.command("list")
def list_(
    ctx: typer.Context,
    state: Annotated[
        list[str] | None, typer.Option(help="Only groups in this state, e.g. stable or empty; repeatable.")
    ] = None,
    type_: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="TYPE", help="Only classic, consumer (KIP-848), share or streams groups; repeatable."
        ),
    ] = None,
    match: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Only groups whose whole id matches; repeatable.")
    ] = None,
    watch: Annotated[bool, WATCH] = False,
    interval: Annotated[str, INTERVAL] = "5s",
) -> None:
    """List groups: type, state, coordinator and members.

    # List the groups in the state stable
    kctl group list --state stable
    """
    from kctl.commands.group.choice import hidden
    from kctl.groups.overview import GroupSummary, summaries

    inv = invocation(ctx)
    watching = Watching(inv, interval) if watch else None
    with inv.connect() as client:
        if watching:
            watching.run(
                lambda: summaries(client, states=state, types=type_, match=match or ()),
                lambda snapshot: PassOutput(snapshot[0], [_list_table(snapshot[0])], snapshot[1]),
                hidden(client, groups=True),
            )
        hidden_lines = hidden(client, groups=True)
        try:
            groups, failures = summaries(client, states=state, types=type_, match=match or ())
        except NotFound as exc:
            raise NotFound(exc.message, hint=hidden_lines[0] if hidden_lines else exc.hint) from None
    inv.emit(groups, lambda: [_list_table(groups)], row_type=GroupSummary)
    for line in hidden_lines:
        output.warn(line)
    if failures:
        raise incomplete(failures)


def _list_table(groups: Sequence[GroupSummary]) -> Table:
    columns = [
        Column("group", name=True),
        Column("state"),
        Column("type"),
        Column("protocol_type", "PROTOCOL TYPE", wide=True),
        Column("coordinator", align="right"),
        Column("member_count", "MEMBERS", align="right"),
    ]
    rows = [{**row, "type": _type_name(row["type"])} for row in jsonable(groups)]
    return Table(columns, rows, empty="no groups")


def _type_name(group_type: str | None) -> str:
    """Return Kafka's name of a type. Brokers before 3.8 do not report types: all their groups are classic."""
    return (group_type or "classic").capitalize()


@app.command()
def describe(
    ctx: typer.Context,
    groups: Annotated[list[str] | None, typer.Argument(metavar="[GROUP]…", help="Groups to show.")] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    type_: Annotated[list[str] | None, TYPE] = None,
    watch: Annotated[bool, WATCH] = False,
    interval: Annotated[str, INTERVAL] = "5s",
) -> None:
    """Describe groups: members, committed offsets and lag.

    Share groups have start offsets instead of committed offsets; streams groups also have a topology and tasks.

    # Describe one group
    kctl group describe billing
    """
    from kctl.commands.group.choice import choose, hidden
    from kctl.groups.overview import describe as describe_all
    from kctl.lag.rules import LagRow

    inv = invocation(ctx)
    watching = Watching(inv, interval) if watch else None
    with inv.connect() as client:
        names = choose(client, groups, match, type_)
        if watching:
            watching.run(
                lambda: describe_all(client, choose(client, groups, match, type_, quiet=True) if match else names),
                lambda snapshot: PassOutput(
                    snapshot[0], [table for group in snapshot[0] for table in _tables(group)], snapshot[1]
                ),
                hidden(client, commits=True),
            )
        descriptions, failures = describe_all(client, names)
        hidden_lines = hidden(client, commits=True)
    inv.emit(
        descriptions,
        lambda: [table for group in descriptions for table in _tables(group)],
        lambda: [row for group in descriptions for row in (*group.offsets, *(group.start_offsets or ()))],
        row_type=LagRow,
    )
    for line in (*hidden_lines, *beyond_end([row for group in descriptions for row in group.offsets])):
        output.warn(line)
    if failures:
        raise incomplete(failures)


def _title(group: GroupDescription) -> str:
    """Return e.g. "billing: Stable, 2 members, coordinator broker 1"."""
    parts = [group.state]
    if group.members is None:
        parts.append("members unknown")
    else:
        parts.append(f"{len(group.members)} member{'' if len(group.members) == 1 else 's'}")
    parts.append(f"coordinator broker {group.coordinator}")
    parts.append(f"{_type_name(group.type)} group")
    if group.protocol_type not in {"", "consumer", "share", "streams", None}:
        parts.append(f"{group.protocol_type} protocol")
    if group.assignor:
        parts.append(f"assignor {group.assignor}")
    if group.epoch is not None:
        parts.append(f"epoch {group.epoch}, assignment epoch {group.assignment_epoch}")
    return f"{group.group}: {', '.join(parts)}"


def _tables(group: GroupDescription) -> list[Table]:
    title = _title(group)
    members = Table(
        columns=[
            column for column in _member_columns(group) if column.key not in {"group", "partition_count", "assignor"}
        ],
        rows=[_member_row(row) for row in jsonable(group.members or ())],
        title=title,
    )
    offsets = Table(
        columns=with_rare(lag_columns(with_group=False), jsonable(group.offsets)),
        rows=jsonable(group.offsets),
        title=None if group.members else title,
        empty=None if group.members else f"{title}; nothing committed",
    )
    if group.start_offsets is not None:
        offsets = _start_offsets_table(group.start_offsets, None if group.members else title)
    return [members, offsets, *([_topology_table(group.topology)] if group.topology else [])]


def _start_offsets_table(rows: Sequence[StartOffset], title: str | None) -> Table:
    columns = [
        Column("topic", name=True),
        Column("partition", "PART", align="right"),
        Column("start_offset", "START OFFSET", align="right"),
        Column("leader_epoch", "EPOCH", align="right", wide=True),
        Column("lag", align="right"),
    ]
    return Table(columns, jsonable(rows), title=title, empty=f"{title}; no start offsets" if title else None)


def _topology_table(topology: Topology) -> Table:
    def names(topics: Sequence[InternalTopic]) -> str | None:
        return " ".join(each.topic for each in topics) or None

    columns = [
        Column("subtopology_id", "SUBTOPOLOGY", name=True),
        Column("sources"),
        Column("repartition_from", "REPARTITION FROM"),
        Column("repartition_to", "REPARTITION TO"),
        Column("state", "STATE CHANGELOGS"),
    ]
    rows = [
        {
            "subtopology_id": each.subtopology_id,
            "sources": " ".join(each.source_topics) or None,
            "repartition_from": names(each.repartition_source_topics),
            "repartition_to": " ".join(each.repartition_sink_topics) or None,
            "state": names(each.state_changelog_topics),
        }
        for each in topology.subtopologies or ()
    ]
    return Table(columns, rows, title=f"topology of epoch {topology.epoch}", empty=_NO_TOPOLOGY)


@app.command()
def members(
    ctx: typer.Context,
    groups: Annotated[list[str] | None, typer.Argument(metavar="[GROUP]…", help="Groups to show.")] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    type_: Annotated[list[str] | None, TYPE] = None,
) -> None:
    """Show members: host, client, subscription, assignment.

    -o wide adds racks, epochs and, for KIP-848 groups, the target assignment.

    # Show the members of one group, with racks and epochs
    kctl group members billing -o wide
    """
    from kctl.commands.group.choice import choose
    from kctl.groups.overview import MemberRow, member_rows

    inv = invocation(ctx)
    with inv.connect() as client:
        names = choose(client, groups, match, type_)
        rows, undescribed = member_rows(client, names)
    failures = [
        f"the members of {name} are unknown: its broker cannot describe groups of this type" for name in undescribed
    ]
    if failures and len(undescribed) == len(dict.fromkeys(names)):
        raise NotSupported(failures[0])
    columns = _member_columns(None)
    inv.emit(
        rows,
        lambda: [Table(columns, [_member_row(row) for row in jsonable(rows)], empty="no members")],
        row_type=MemberRow,
    )
    if failures:
        raise incomplete(failures)


def _member_columns(group: GroupDescription | None) -> list[Column]:
    """Return the columns. group: the group of all rows, if there is only one; its empty columns are omitted."""
    static = group is None or any(member.group_instance_id for member in group.members or ())
    columns = [
        Column("group", name=True),
        Column("client_id", "CLIENT"),
        Column("group_instance_id", "INSTANCE"),
        Column("host"),
        Column("partition_count", "PARTITIONS", align="right"),
        Column("assigned", "ASSIGNED"),
        Column("target", wide=True),
        Column("subscribed", wide=True),
        Column("assignor", wide=True),
        Column("rack", wide=True),
        Column("type", wide=True),
        Column("member_epoch", "EPOCH", align="right", wide=True),
        Column("member_id", "MEMBER"),
    ]
    return [column for column in columns if static or column.key != "group_instance_id"]


def _member_row(row: dict[str, Any]) -> dict[str, Any]:
    topics = row["subscribed_topics"]
    subscribed = [*(topics or ()), *([row["subscribed_topics_regex"]] if row["subscribed_topics_regex"] else [])]
    return {
        **row,
        "assigned": _assignment_text(row, "assignments", "tasks") or "not a consumer",
        "target": _assignment_text(row, "target_assignments", "target_tasks"),
        "subscribed": " ".join(subscribed) or None,
    }


def _assignment_text(row: dict[str, Any], partitions: str, tasks: str) -> str | None:
    """Return e.g. "orders:0-3", or for a member of a streams group "active 0:0-3 standby 1:2"."""
    if row["streams"] is not None:
        kinds = row["streams"][tasks]
        return " ".join(f"{kind} {_tasks(kinds[kind])}" for kind in kinds if kinds[kind]) or "-"
    return None if row[partitions] is None else _assigned(row[partitions])


def _tasks(tasks: Sequence[dict[str, Any]]) -> str:
    return " ".join(f"{task['subtopology_id']}:{ranges(task['partitions'])}" for task in tasks)


def _assigned(assignments: Sequence[dict[str, Any]]) -> str:
    return " ".join(f"{a['topic']}:{ranges(a['partitions'])}" for a in assignments) or "-"


for _name, _module in (
    ("reset-offsets", "reset_offsets"),
    ("export", "export"),
    ("import", "export"),
    ("delete", "delete"),
    ("delete-offsets", "delete"),
    ("remove-member", "remove_member"),
):
    app.command_of(_name, f"kctl.commands.group.{_module}")
