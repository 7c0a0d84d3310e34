"""`kctl topic`: the list, and the other commands, which have a file each."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kctl.commands.invocation import CommandGroup, invocation
from kctl.commands.output import Column, Table, jsonable
from kctl.commands.topic_options import INTERNAL, MATCH, UNAVAILABLE, UNDER_REPLICATED
from kctl.commands.views import told_if_incomplete
from kctl.units import format_size

app = CommandGroup("List, describe, create, alter, truncate, copy and delete topics.")


def _alarm(key: str) -> Any:
    """A column's style: red when the row's `key` is set and not zero."""
    return lambda row: "red" if row.get(key) else None


@app.command("list")
def list_(
    ctx: typer.Context,
    match: Annotated[list[str] | None, MATCH] = None,
    under_replicated: Annotated[bool, UNDER_REPLICATED] = False,
    unavailable: Annotated[bool, UNAVAILABLE] = False,
    size: Annotated[bool, typer.Option("--size", help="What they take on all disks; wide: one copy, too.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Messages: log ends less log starts.")] = False,
    internal: Annotated[bool, INTERNAL] = False,
) -> None:
    """List topics with their partitions and replication factor.

    Example: kctl topic list --match 'orders.*' --size --count
    """
    from kctl.topics.choose import choose
    from kctl.topics.listing import summaries, with_messages, with_sizes

    inv = invocation(ctx)
    failures: list[str] = []
    with inv.connect() as client:
        state, chosen = choose(client, match=match or (), internal=internal)
        topics = summaries(chosen)
        if under_replicated or unavailable:
            topics = [
                row
                for row in topics
                if (under_replicated and row.under_replicated_partitions) or (unavailable and row.offline_partitions)
            ]
        if size:
            topics, lacking = with_sizes(client, state, topics)
            failures += lacking
        if count:
            topics, lacking = with_messages(client, state, topics)
            failures += lacking
    columns = [
        Column("name", "TOPIC", name=True),
        Column("partitions", align="right"),
        Column("replication_factor", "RF", align="right"),
        Column("under_replicated_partitions", "UNDER-REPLICATED", align="right",
               style=_alarm("under_replicated_partitions")),
        Column("offline_partitions", "OFFLINE", align="right", style=_alarm("offline_partitions")),
        Column("internal", wide=True),
    ]  # fmt: skip
    if size:
        columns.append(Column("size_bytes", "SIZE", show=format_size, align="right"))
        columns.append(Column("leader_size_bytes", "ONE COPY", show=format_size, align="right", wide=True))
    if count:
        columns.append(Column("messages", align="right"))
    inv.emit(topics, lambda: [Table(columns, jsonable(topics), empty="no topics")])
    with told_if_incomplete(failures):
        pass


for _name in ("describe", "offsets", "create", "alter", "delete", "truncate", "clone", "apply", "export", "watch"):
    app.command_of(_name, f"kctl.commands.topic_{_name}")
app.group_of("reassign", "kctl.commands.reassign")
