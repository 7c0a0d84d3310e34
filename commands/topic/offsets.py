"""kctl topic offsets."""

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
            help="latest, earliest, max-timestamp, earliest-local, latest-tiered, or a time: "
            "2024-05-01T12:00, UTC if no zone is given; -2h.",
        ),
    ] = "latest",
    internal: Annotated[bool, INTERNAL] = False,
) -> None:
    """Show the offset of each partition at its end, its beginning or a time, as kafka-get-offsets does.

    Of a moment, it is the first record that is not older. -o kafka writes topic:partition:offset.

    Example: kctl topic offsets --match 'orders.*' --time -2h
    """
    from kctl.cluster.partition_numbers import parse_each
    from kctl.cluster.topics import choose, chosen_partitions, not_seen
    from kctl.topics.offsets import offset_rows, parse_place

    inv = invocation(ctx)
    place = parse_place(time)
    wanted = parse_each(partition)
    with inv.connect() as client:
        state, chosen = choose(client, names or (), match or (), internal=internal)
        tps = chosen_partitions(chosen, wanted)
        doubts, _ = not_seen(client, names or (), chosen)
        rows, failures = offset_rows(client, state, tps, place)
    if inv.output == "kafka":
        output.write_text(_as_kafka(rows))
    else:
        inv.emit(rows, lambda: [_table(rows)])
    for line in doubts:
        output.warn(line)
    report_incomplete(failures)


def _as_kafka(rows: Sequence[OffsetRow]) -> str:
    """As kafka-get-offsets writes them, which leaves out partitions without such a record."""
    return "\n".join(f"{row.topic}:{row.partition}:{row.offset}" for row in rows if row.offset is not None)


def _table(rows: Sequence[OffsetRow]) -> Table:
    columns = [
        Column("topic", name=True),
        Column("partition", align="right"),
        Column("offset", align="right"),
        Column("timestamp"),
    ]
    return Table(columns, jsonable(rows), empty="no partitions")
