"""kctl topic watch."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.terminal.invocation import formats_are, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import ALL_NAMES, INTERNAL, MATCH
from kctl.commands.terminal.watching import Shown, Watching

if TYPE_CHECKING:
    from kctl.topics.rates import Ends, RateRow


class By(str, Enum):
    """What a row is."""

    TOPIC = "topic"
    PARTITION = "partition"


@formats_are("table, wide or json (a line for each look).")
def watch(
    ctx: typer.Context,
    names: Annotated[list[str] | None, ALL_NAMES] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    by: Annotated[By, typer.Option(help="What a row adds up.")] = By.TOPIC,
    top: Annotated[int | None, typer.Option(min=1, help="Only so many, the busiest ones.")] = None,
    interval: Annotated[str, typer.Option(metavar="DURATION", help="Time between two looks.")] = "2s",
    internal: Annotated[bool, INTERNAL] = False,
) -> None:
    """Watch how many messages come per second, until Ctrl-C; with -o json a line for each look.

    Messages are offsets: markers of transactions count, too.

    Example: kctl topic watch --top 10 --interval 5s
    """
    from kctl.cluster.topics import choose, not_seen
    from kctl.topics.rates import rates, read_ends

    inv = invocation(ctx)
    watching = Watching(inv, interval, "topic watch")
    before: Ends | None = None
    doubts: list[str] = []
    with inv.connect() as client:

        def look() -> Ends:
            nonlocal doubts
            state, chosen = choose(client, names or (), match or (), internal=internal)
            doubts, _ = not_seen(client, names or (), chosen)
            return read_ends(client, state, chosen)

        def shown(now: Ends) -> Shown:
            nonlocal before
            rows = rates(before, now, by_partition=by is By.PARTITION)[:top]
            before = now
            return Shown(jsonable(rows), [_table(rows, by)], [*doubts, *now.failures])

        watching.run(look, shown)


def _table(rows: Sequence[RateRow], by: By) -> Table:
    columns = [
        Column("topic", name=True),
        Column("log_end_offset", "END", align="right"),
        Column("messages", "NEW", align="right"),
        Column("messages_per_s", "PER SECOND", align="right"),
    ]
    if by is By.PARTITION:
        columns.insert(1, Column("partition", align="right"))
    return Table(columns, jsonable(rows), empty="no topics")
