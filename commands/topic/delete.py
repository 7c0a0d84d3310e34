"""kctl topic delete: delete topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.base.units import format_size
from kctl.commands.terminal import output
from kctl.commands.terminal.expect import EXPECT, check_pattern
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import MATCH, NAMES

if TYPE_CHECKING:
    from kctl.topics.delete import DeletedTopic, TopicReader

_MAX_READERS = 5


def delete(
    ctx: typer.Context,
    names: Annotated[list[str] | None, NAMES] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    expect: Annotated[int | None, EXPECT] = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip topics that do not exist.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be lost, without deleting it.")] = False,
) -> None:
    """Delete topics and all their data, and wait for completion.

    First shows what will be lost: size, consumer groups that read the topic, and time of the newest record.

    # Show the data and the groups that a deletion affects
    kctl topic delete orders --dry-run
    """
    from kctl.topics.basis import of_deleted
    from kctl.topics.delete import delete_topics, plan_delete
    from kctl.topics.verdicts import require_deleted

    inv = invocation(ctx)
    with inv.connect() as client:
        plan, doubts = plan_delete(client, names or (), match or (), if_exists=if_exists)
        for doubt in doubts:
            output.warn(doubt)
        to_delete = [row for row in plan if row.result is ItemResult.WOULD_DELETE]
        if dry_run or not to_delete:
            emit_deleted(inv, plan)
            return
        show_losses(to_delete)
        check_pattern(inv, match, expect, len(to_delete))
        question = f"Delete {counted(len(to_delete), 'topic')} on {client.target.name}?"
        inv.confirm(question, target=client.target, basis=of_deleted(client, to_delete))
        with output.progress("deleting") as bar:
            rows = delete_topics(client, plan, timeout_s=inv.timeout_s(30), progress=bar.update)
    emit_deleted(inv, rows)
    require_deleted(rows)


def show_losses(rows: Sequence[DeletedTopic]) -> None:
    """Print what is lost with each topic to stderr, one line each."""
    for row in rows:
        output.note(_loss(row))


def _loss(row: DeletedTopic) -> str:
    size = _size(row)
    size = f"{size} on disk" if size else "size unknown"
    parts = [counted(row.partition_count, "partition"), f"replication factor {row.replication_factor}", size]
    if row.newest_timestamp:
        parts.append(f"newest record from {row.newest_timestamp}")
    readers = row.readers or ()
    if row.readers is None:
        parts.append("readers unknown")
    if readers:
        parts.append(f"read by {', '.join(_reader(reader) for reader in readers[:_MAX_READERS])}")
    if len(readers) > _MAX_READERS:
        parts.append(f"and {len(readers) - _MAX_READERS} more")
    return f"{row.topic}: {', '.join(parts)}"


def _size(row: DeletedTopic) -> str | None:
    """Return "12 kB", or a lower bound if a broker did not report its part."""
    if row.size_bytes is not None:
        return format_size(row.size_bytes)
    return None if row.known_size_bytes is None else f"at least {format_size(row.known_size_bytes)}"


def _reader(reader: TopicReader) -> str:
    live = f"{reader.assigned_partitions} assigned now" if reader.assigned_partitions else reader.state
    return f"group {reader.group} ({live})"


def emit_deleted(inv: Invocation, rows: Sequence[DeletedTopic]) -> None:
    """Emit the result of each topic."""
    columns = [
        Column("topic"),
        Column("result"),
        Column("partition_count", "PARTITIONS", align="right"),
        Column("replication_factor", "RF", align="right"),
        Column("size", align="right"),
        Column("readers", "READ BY", show=lambda readers: ", ".join(reader["group"] for reader in readers) or "-"),
        Column("newest_timestamp", "NEWEST RECORD"),
    ]
    inv.emit(
        rows,
        lambda: [Table(columns, [{**jsonable(row), "size": _size(row)} for row in rows])],
        changed=any_changed(rows),
    )
