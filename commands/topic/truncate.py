"""kctl topic truncate: delete records from the beginning of logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.expect import EXPECT, check_pattern
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import MATCH, NAMES, PARTITION
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.model import ClusterState, TopicPartition
    from kctl.protocol.client import ClusterClient
    from kctl.topics.truncate import TruncatedPartition


@dataclass(frozen=True)
class TruncateArguments:
    """The arguments and options of the command."""

    names: Annotated[list[str] | None, NAMES] = None
    match: Annotated[list[str] | None, MATCH] = None
    expect: Annotated[int | None, EXPECT] = None
    before_offset: Annotated[
        int | None, typer.Option(min=0, help="Delete records before this offset in each partition.")
    ] = None
    before_time: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", help="Delete records before this time: ISO 8601 (UTC if no zone is given), or e.g. -7d."
        ),
    ] = None
    all_: Annotated[bool, typer.Option("--all", help="Delete all records.")] = False
    file: Annotated[
        Path | None,
        typer.Option(
            "-f", "--offset-json-file", help="JSON file with offsets by partition, as for kafka-delete-records."
        ),
    ] = None
    partition: Annotated[list[str] | None, PARTITION] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted, without deleting it.")] = False


@takes_options(TruncateArguments)
def truncate(ctx: typer.Context, options: TruncateArguments) -> None:
    """Delete the oldest records, up to an offset or a time.

    The topic, its configs and committed offsets stay. With a time, deletion stops at the first record at or after it.

    # Show how many records older than a week would be deleted
    kctl topic truncate orders --before-time -7d --dry-run
    """
    from kctl.cluster import unchanged
    from kctl.topics.truncate import plan_truncate, require_truncated
    from kctl.topics.truncate import truncate as delete_records

    inv = invocation(ctx)
    _check(options)
    with inv.connect() as client:
        state, offsets = (
            _offsets_from_options(client, options) if options.file is None else _offsets_from_file(client, options.file)
        )
        basis = unchanged.topics(client, {tp.topic for tp in offsets}, state=state)
        plan = plan_truncate(client, state, offsets)
        to_delete = [row for row in plan if row.result is ItemResult.WOULD_DELETE]
        if to_delete:
            _warn_of_readers(client, to_delete)
        if options.dry_run or not to_delete:
            _emit(inv, plan)
            return
        if not inv.yes:
            _show(to_delete)
        check_pattern(inv, options.match, options.expect, len({row.topic for row in plan}))
        count = counted(sum(row.messages for row in to_delete), "record")
        question = f"Delete {count} of {counted(len(to_delete), 'partition')} on {client.target.name}?"
        inv.confirm(question, target=client.target, basis=basis)
        with output.progress("deleting") as bar:
            truncated = delete_records(client, plan, timeout_s=inv.timeout_s(30), progress=bar.update)
    _emit(inv, truncated)
    require_truncated(truncated)


def _check(options: TruncateArguments) -> None:
    limits = (
        options.before_offset is not None,
        options.before_time is not None,
        options.all_,
        options.file is not None,
    )
    if limits.count(True) != 1:
        raise UsageError("specify exactly one of --before-offset, --before-time, --all and -f FILE")
    if options.file is not None and (options.names or options.match or options.partition):
        raise UsageError("-f FILE already selects the partitions", hint="omit topic names, --match and --partition")


def _offsets_from_file(client: ClusterClient, file: Path) -> tuple[ClusterState, dict[TopicPartition, int]]:
    from kctl.cluster.topics import choose_to_change
    from kctl.topics.offset_file import read_offset_file

    offsets = read_offset_file(file)
    state, _ = choose_to_change(client, sorted({tp.topic for tp in offsets}))
    return state, offsets


def _offsets_from_options(
    client: ClusterClient, options: TruncateArguments
) -> tuple[ClusterState, dict[TopicPartition, int]]:
    from kctl.base.timestamps import parse_timestamp
    from kctl.cluster.partition_numbers import parse_each
    from kctl.cluster.topics import choose_to_change, chosen_partitions
    from kctl.topics.truncate import HIGH_WATERMARK, offsets_at

    time_ms = parse_timestamp(options.before_time) if options.before_time is not None else None
    numbers = parse_each(options.partition)
    state, chosen = choose_to_change(client, options.names or (), options.match or ())
    tps = chosen_partitions(chosen, numbers)
    if time_ms is not None:
        return state, offsets_at(client, state, tps, time_ms)
    return state, dict.fromkeys(tps, HIGH_WATERMARK if options.before_offset is None else options.before_offset)


def _warn_of_readers(client: ClusterClient, rows: Sequence[TruncatedPartition]) -> None:
    from kctl.topics.readers import fetch_readers
    from kctl.topics.truncate import unread

    readers, doubts = fetch_readers(client, {row.topic for row in rows})
    for doubt in doubts:
        output.warn(doubt)
    for group, count in unread(rows, readers or {}).items():
        output.warn(f"group {group} has not read {count:,} of the records to delete")


def _show(rows: Sequence[TruncatedPartition]) -> None:
    for row in rows:
        output.note(
            f"{row.tp}: {counted(row.messages, 'record')} from {row.log_start_offset} to before {row.before_offset}; "
            f"the log ends at {row.log_end_offset}"
        )


def _emit(inv: Invocation, rows: Sequence[TruncatedPartition]) -> None:
    columns = [
        Column("topic", name=True),
        Column("partition", "PART", align="right"),
        Column("result"),
        Column("log_start_offset", "START", align="right"),
        Column("before_offset", "BEFORE", align="right"),
        Column("log_end_offset", "END", align="right"),
        Column("messages", align="right"),
        Column("low_watermark", "NEW START", align="right"),
    ]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty="no partitions")], changed=any_changed(rows))
