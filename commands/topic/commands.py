"""kctl topic: the list, and the group of the other commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.units import format_size
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import (
    INTERNAL_TOO,
    MATCH,
    TOPICS_AT_MIN_ISR,
    TOPICS_UNAVAILABLE,
    TOPICS_UNDER_MIN_ISR,
    TOPICS_UNDER_REPLICATED,
    selected_problems,
)
from kctl.commands.terminal.views import alarm, report_incomplete
from kctl.commands.terminal.watching import INTERVAL, WATCH, PassOutput, Watching

if TYPE_CHECKING:
    from kctl.topics.listing import ListedTopics, TopicSummary

app = CommandGroup()


@app.command("list")
def list_(
    ctx: typer.Context,
    match: Annotated[list[str] | None, MATCH] = None,
    under_replicated: Annotated[bool, TOPICS_UNDER_REPLICATED] = False,
    unavailable: Annotated[bool, TOPICS_UNAVAILABLE] = False,
    under_min_isr: Annotated[bool, TOPICS_UNDER_MIN_ISR] = False,
    at_min_isr: Annotated[bool, TOPICS_AT_MIN_ISR] = False,
    size: Annotated[
        bool, typer.Option("--size", help="Show the size of all replicas; -o wide adds the size of one copy.")
    ] = False,
    count: Annotated[
        bool, typer.Option("--count", help="Show the number of messages: log end minus log start offset.")
    ] = False,
    internal: Annotated[bool, INTERNAL_TOO] = False,
    watch: Annotated[bool, WATCH] = False,
    interval: Annotated[str, INTERVAL] = "5s",
) -> None:
    """List topics with their partitions and replication factor.

    Health filters are combined with OR: a topic is listed if any of them matches one of its partitions.

    # List topics that start with orders, with size and message count
    kctl topic list --match 'orders.*' --size --count
    """
    from kctl.topics.listing import ListRequest, TopicSummary, list_topics

    inv = invocation(ctx)
    watching = Watching(inv, interval) if watch else None
    problems = selected_problems(under_replicated, unavailable, under_min_isr, at_min_isr)
    request = ListRequest(match or (), problems, size, count, internal)
    with inv.connect() as client:
        if watching:
            watching.run(lambda: list_topics(client, request), lambda listing: _view(listing, size=size, count=count))
        listing = list_topics(client, request)
    inv.emit(listing.topics, lambda: [_table(listing.topics, size=size, count=count)], row_type=TopicSummary)
    for line in listing.doubts:
        output.warn(line)
    report_incomplete(listing.failures)


def _view(listing: ListedTopics, *, size: bool, count: bool) -> PassOutput:
    return PassOutput(
        listing.topics, [_table(listing.topics, size=size, count=count)], [*listing.doubts, *listing.failures]
    )


def _table(topics: Sequence[TopicSummary], *, size: bool, count: bool) -> Table:
    columns = [
        Column("topic", name=True),
        Column("partition_count", "PARTITIONS", align="right"),
        Column("replication_factor", "RF", align="right"),
        Column("under_replicated_partitions", "UNDER-REPLICATED", align="right",
               style=alarm("under_replicated_partitions")),
        Column("offline_partitions", "OFFLINE", align="right", style=alarm("offline_partitions")),
        Column("internal", wide=True),
    ]  # fmt: skip
    if size:
        columns.append(Column("size_bytes", "SIZE", show=format_size, align="right"))
        columns.append(Column("leader_size_bytes", "ONE COPY", show=format_size, align="right", wide=True))
    if count:
        columns.append(Column("messages", align="right"))
    return Table(columns, jsonable(topics), empty="no topics")


for _name in ("describe", "offsets", "create", "alter", "delete", "truncate", "clone", "apply", "export", "watch"):
    app.command_of(_name, f"kctl.commands.topic.{_name}")
app.group_of("reassign", "kctl.commands.reassign.commands")
