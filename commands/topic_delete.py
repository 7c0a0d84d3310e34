"""kctl topic delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands import output
from kctl.commands.invocation import Invocation, invocation
from kctl.commands.output import Column, Table, jsonable
from kctl.errors import OperationFailed
from kctl.text import counted
from kctl.units import format_size

if TYPE_CHECKING:
    from kctl.topics.delete import DeletedTopic


def delete(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME…")],
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip topics that are not there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be lost, delete nothing.")] = False,
) -> None:
    """Delete topics with all their data, and wait until they are gone.

    Example: kctl topic delete orders --dry-run
    """
    from kctl.topics.delete import delete_topics, plan_delete

    inv = invocation(ctx)
    with inv.connect() as client:
        plan, doubts = plan_delete(client, names, if_exists=if_exists)
        for doubt in doubts:
            output.warn(doubt)
        todo = [row for row in plan if row.result == "would delete"]
        if dry_run or not todo:
            _emit_deleted(inv, plan)
            return
        if not inv.yes:
            for row in todo:
                output.note(_loss(row))
        inv.confirm(f"Delete {counted(len(todo), 'topic')} of {client.target.name}?", target=client.target)
        with output.progress("deleting") as bar:
            done = delete_topics(client, plan, timeout_s=inv.timeout_s(30), progress=bar.update)
    _emit_deleted(inv, done)
    failed = [f"{row.name}: {row.error}" for row in done if row.result in {"failed", "marked"}]
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(done), 'topic')} not deleted: {'; '.join(failed)}")


def _loss(row: DeletedTopic) -> str:
    size = "size unknown" if row.size_bytes is None else f"{format_size(row.size_bytes)} on disk"
    return f"{row.name}: {counted(row.partitions, 'partition')}, replication factor {row.replication_factor}, {size}"


def _emit_deleted(inv: Invocation, rows: Sequence[DeletedTopic]) -> None:
    columns = [
        Column("name", "TOPIC"),
        Column("result"),
        Column("partitions", align="right"),
        Column("replication_factor", "RF", align="right"),
        Column("size_bytes", "SIZE", show=format_size, align="right"),
    ]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows))])
