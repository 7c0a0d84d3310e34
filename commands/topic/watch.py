"""kctl topic watch: show write rates of topics."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.terminal.invocation import formats_are, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import ALL_NAMES, INTERNAL, MATCH
from kctl.commands.terminal.watching import PassOutput, Watching

if TYPE_CHECKING:
    from kctl.topics.rates import LogEnds, RateRow


class RowUnit(str, Enum):
    """The unit of a row."""

    TOPIC = "topic"
    PARTITION = "partition"


@formats_are("table, wide or json (one line per interval).")
def watch(
    ctx: typer.Context,
    names: Annotated[list[str] | None, ALL_NAMES] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    by: Annotated[RowUnit, typer.Option(help="Show one row per topic or per partition.")] = RowUnit.TOPIC,
    top: Annotated[int | None, typer.Option(min=1, help="Show only the N busiest topics or partitions.")] = None,
    interval: Annotated[str, typer.Option(metavar="DURATION", help="Time between two measurements, e.g. 5s.")] = "2s",
    internal: Annotated[bool, INTERNAL] = False,
) -> None:
    """Watch the messages written per second, until Ctrl-C.

    Messages are counted by offsets, so transaction markers count too. With -o json, one line is written per interval.

    # Watch the ten busiest topics
    kctl topic watch --top 10 --interval 5s
    """
    from kctl.cluster.topics import choose, not_seen
    from kctl.topics.rates import rates, read_ends

    inv = invocation(ctx)
    watching = Watching(inv, interval, "topic watch")
    before: LogEnds | None = None
    doubts: list[str] = []
    with inv.connect() as client:

        def poll() -> LogEnds:
            nonlocal doubts
            state, chosen = choose(client, names or (), match or (), internal=internal)
            doubts, _ = not_seen(client, names or (), chosen)
            return read_ends(client, state, chosen)

        def view(now: LogEnds) -> PassOutput:
            nonlocal before
            rows = rates(before, now, by_partition=by is RowUnit.PARTITION)[:top]
            before = now
            return PassOutput(jsonable(rows), [_table(rows, by)], [*doubts, *now.failures])

        watching.run(poll, view)


def _table(rows: Sequence[RateRow], by: RowUnit) -> Table:
    columns = [
        Column("topic", name=True),
        Column("log_end_offset", "END", align="right"),
        Column("messages", "NEW", align="right"),
        Column("messages_per_s", "PER SECOND", align="right"),
    ]
    if by is RowUnit.PARTITION:
        columns.insert(1, Column("partition", align="right"))
    return Table(columns, jsonable(rows), empty="no topics")
