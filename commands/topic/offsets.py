"""kctl topic offsets: show offsets of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation, more_formats
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import ALL_NAMES, INTERNAL, MATCH, PARTITION
from kctl.commands.terminal.views import report_incomplete

if TYPE_CHECKING:
    from kctl.topics.offsets import OffsetRow


@more_formats("kafka")
def offsets(
    ctx: typer.Context,
    names: Annotated[list[str] | None, ALL_NAMES] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    partition: Annotated[list[str] | None, PARTITION] = None,
    time: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="latest, earliest, max-timestamp, earliest-local, latest-tiered, earliest-pending-upload, or a time: "
            "ISO 8601 (UTC if no zone is given), or a duration ago, e.g. -2h.",
        ),
    ] = "latest",
    internal: Annotated[bool, INTERNAL] = False,
) -> None:
    """Show latest or earliest offsets, or the offsets at a time.

    For a time, this is the offset of the first record at or after it. -o kafka writes topic:partition:offset, like
    kafka-get-offsets.

    # Show the offsets of two hours ago
    kctl topic offsets --match 'orders.*' --time -2h
    """
    from kctl.cluster.partition_numbers import parse_each
    from kctl.topics.offsets import OffsetRequest, parse_offset_spec, read_offsets

    inv = invocation(ctx)
    request = OffsetRequest(
        names or (),
        match or (),
        offset_spec=parse_offset_spec(time),
        partitions=parse_each(partition),
        internal=internal,
    )
    with inv.connect() as client:
        report = read_offsets(client, request)
    if inv.output == "kafka":
        output.write_text(_as_kafka(report.rows))
    else:
        inv.emit(report.rows, lambda: [_table(report.rows)])
    for line in report.doubts:
        output.warn(line)
    report_incomplete(report.failures)


def _as_kafka(rows: Sequence[OffsetRow]) -> str:
    """Return the lines of kafka-get-offsets, which omits partitions without a matching record."""
    return "\n".join(f"{row.topic}:{row.partition}:{row.offset}" for row in rows if row.offset is not None)


def _table(rows: Sequence[OffsetRow]) -> Table:
    columns = [
        Column("topic", name=True),
        Column("partition", align="right"),
        Column("offset", align="right"),
        Column("timestamp"),
    ]
    return Table(columns, jsonable(rows), empty="no partitions")
