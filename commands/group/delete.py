"""kctl group delete and delete-offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed, raise_refusal
from kctl.base.text import counted
from kctl.commands.group.choice import MATCH, TYPE, choose, hidden
from kctl.commands.group.reset_offsets import DRY_RUN, TOPIC
from kctl.commands.group.tables import judge_changes
from kctl.commands.terminal import output
from kctl.commands.terminal.expect import EXPECT, check_pattern
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.groups.delete import DeletedGroup, DeletedOffset


def delete(
    ctx: typer.Context,
    groups: Annotated[list[str] | None, typer.Argument(metavar="[GROUP]…", help="Groups to delete.")] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    type_: Annotated[list[str] | None, TYPE] = None,
    expect: Annotated[int | None, EXPECT] = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip groups that do not exist.")] = False,
    dry_run: Annotated[bool, DRY_RUN] = False,
) -> None:
    """Delete empty groups and their committed offsets.

    To keep the offsets for `kctl group import`, run `kctl group export` first.

    # Show the committed offsets that would be lost
    kctl group delete billing --dry-run
    """
    from kctl.groups import basis
    from kctl.groups.delete import delete_groups, plan_delete

    inv = invocation(ctx)
    with inv.connect() as client:
        selected = choose(client, groups, match, type_)
        if not dry_run:
            check_pattern(inv, match, expect, len(selected))
        plan = plan_delete(client, selected, if_exists=if_exists)
        to_delete = [row for row in plan if row.result is ItemResult.WOULD_DELETE]
        for line in hidden(client, commits=bool(to_delete)):
            output.warn(line)
        for row in to_delete:
            if row.internal_topics:
                output.note(
                    f"streams group {row.group} leaves {counted(len(row.internal_topics), 'internal topic')}; to delete"
                    f" {'it' if len(row.internal_topics) == 1 else 'them'}, run: kctl topic delete"
                    f" {' '.join(row.internal_topics)}"
                )
        if dry_run or not to_delete:
            _emit_groups(inv, plan)
            return
        offset_count = sum(len(row.offsets) for row in to_delete)
        if not inv.yes:
            for row in to_delete[:20]:
                output.note(
                    f"{row.group}: {counted(len(row.offsets), 'offset')} in {counted(row.topic_count, 'topic')}"
                )
            if len(to_delete) > 20:
                output.note(f"and {len(to_delete) - 20:,} more groups; use --dry-run to see all")
        inv.confirm(
            f"Delete {counted(len(to_delete), 'group')} on {client.target.name}"
            f" with {counted(offset_count, 'offset')}?",
            target=client.target,
            basis=basis.of_deleted(client, to_delete),
        )
        results, errors = delete_groups(client, plan)
    _emit_groups(inv, results)
    raise_refusal(errors, requested=len(to_delete))
    failed = [f"{row.group}: {row.error}" for row in results if row.result is ItemResult.FAILED]
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(to_delete), 'group')} not deleted: {'; '.join(failed)}")


def _emit_groups(inv: Invocation, rows: Sequence[DeletedGroup]) -> None:
    columns = [
        Column("group", name=True),
        Column("result", style=lambda row: "red" if row["result"] == ItemResult.FAILED else None),
        Column("state"),
        Column("type"),
        Column("topic_count", "TOPICS", align="right"),
        Column("count", "OFFSETS", align="right"),
    ]

    def tables() -> list[Table]:
        documents = [{**row, "count": len(row["offsets"])} for row in jsonable(rows)]
        offsets = [offset for row in rows for offset in row.offsets]
        return [Table(columns, documents), *([_offsets_table(offsets, with_result=False)] if offsets else [])]

    inv.emit(rows, tables, lambda: [line for row in rows for line in _csv_rows(row)], changed=any_changed(rows))


def _csv_rows(row: DeletedGroup) -> list[dict[str, Any]]:
    """Return a row for each offset; one row if there are none."""
    group = {"group": row.group, "result": row.result, "state": row.state, "type": row.type}
    names = ("topic", "partition", "committed_offset")
    offsets = jsonable(row.offsets) or [dict.fromkeys(names)]
    return [{**group, **{name: each[name] for name in names}, "error": row.error} for each in offsets]


def _offsets_table(rows: Sequence[DeletedOffset], *, with_result: bool = True) -> Table:
    columns = [
        Column("group", name=True),
        Column("topic", name=True),
        Column("partition", "PART", align="right"),
        Column("committed_offset", "COMMITTED", align="right"),
    ]
    if with_result:
        columns += [
            Column("result", style=lambda row: "red" if row["result"] == ItemResult.FAILED else None),
            Column("error", "NOTE", show=str),
        ]
    return Table(columns, jsonable(rows), empty="no commits")


def delete_offsets(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Group with the offsets.")],
    topic: Annotated[list[str] | None, TOPIC] = None,
    dry_run: Annotated[bool, DRY_RUN] = False,
) -> None:
    """Delete committed offsets of topics no longer read.

    Brokers refuse this for topics that a member subscribes to. For a share group, this deletes the start offsets of
    whole topics, and the group must have no members.

    # Show the committed offsets of one topic that would be lost
    kctl group delete-offsets billing --topic orders --dry-run
    """
    from kctl.groups import basis
    from kctl.groups.delete import delete_offsets as delete_them
    from kctl.groups.delete import plan_delete_offsets
    from kctl.groups.topic_choice import parse_choices

    inv = invocation(ctx)
    choices = parse_choices(topic or ())
    if not choices:
        raise UsageError(
            "no topic is selected", hint="set --topic TOPIC[:PARTITIONS]; to delete a group, use `kctl group delete`"
        )
    with inv.connect() as client:
        plan = plan_delete_offsets(client, group, choices)
        to_delete = plan.todo
        if dry_run or not to_delete:
            inv.emit(plan.rows, lambda: [_offsets_table(plan.rows)], changed=any_changed(plan.rows))
            return
        if not inv.yes:
            for row in to_delete[:20]:
                offset = "no start offset yet" if row.committed_offset is None else row.committed_offset
                output.note(f"{row.topic}-{row.partition}: {offset}")
        inv.confirm(
            f"Delete {counted(len(to_delete), 'offset')} of group {group} on {client.target.name}?",
            target=client.target,
            basis=basis.of_deleted_offsets(client, to_delete),
        )
        results, errors = delete_them(client, plan)
    inv.emit(results, lambda: [_offsets_table(results)], changed=any_changed(results))
    judge_changes(results, errors, what="deleted")
