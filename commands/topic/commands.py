"""`kctl topic`: the list, and the other commands, which have a file each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.units import format_size
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import (
    AT_MIN_ISR,
    INTERNAL_TOO,
    MATCH,
    UNAVAILABLE,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    problems_asked,
)
from kctl.commands.terminal.views import alarm, report_incomplete
from kctl.commands.terminal.watching import INTERVAL, WATCH, Shown, Watching

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.topics.describe import Problem
    from kctl.topics.listing import TopicSummary

app = CommandGroup("List, describe, create, alter, truncate, copy and delete topics.")


@app.command("list")
def list_(
    ctx: typer.Context,
    match: Annotated[list[str] | None, MATCH] = None,
    under_replicated: Annotated[bool, UNDER_REPLICATED] = False,
    unavailable: Annotated[bool, UNAVAILABLE] = False,
    under_min_isr: Annotated[bool, UNDER_MIN_ISR] = False,
    at_min_isr: Annotated[bool, AT_MIN_ISR] = False,
    size: Annotated[bool, typer.Option("--size", help="What they take on all disks; wide: one copy, too.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Messages: log ends less log starts.")] = False,
    internal: Annotated[bool, INTERNAL_TOO] = False,
    watch: Annotated[bool, WATCH] = False,
    interval: Annotated[str, INTERVAL] = "5s",
) -> None:
    """List topics with their partitions and replication factor.

    With several of the filters, topics are shown of which one takes a partition.

    Example: kctl topic list --match 'orders.*' --size --count
    """
    from kctl.topics.listing import TopicSummary

    inv = invocation(ctx)
    watching = Watching(inv, interval) if watch else None
    problems = problems_asked(under_replicated, unavailable, under_min_isr, at_min_isr)
    with inv.connect() as client:

        def look() -> tuple[list[TopicSummary], list[str], list[str]]:
            return _look(client, match or (), problems, size, count, internal)

        if watching:
            watching.run(look, lambda seen: _shown(*seen, size=size, count=count))
        topics, doubts, failures = look()
    inv.emit(topics, lambda: [_table(topics, size=size, count=count)], row_type=TopicSummary)
    for line in doubts:
        output.warn(line)
    report_incomplete(failures)


def _look(
    client: ClusterClient, match: Sequence[str], problems: Sequence[Problem], size: bool, count: bool, internal: bool
) -> tuple[list[TopicSummary], list[str], list[str]]:
    """The topics, doubts whether these are all, and what of them is not known. problems: only with one of them."""
    from kctl.cluster.topics import choose, not_seen
    from kctl.topics.listing import having, summarize, with_messages, with_sizes

    state, chosen = choose(client, match=match, internal=internal or bool(problems))
    doubts, failures = not_seen(client, (), chosen, filtered=bool(problems))
    topics, unsure = summarize(client, state, chosen)
    doubts += unsure
    if problems:
        topics, lacking = having(client, state, topics, problems)
        failures += lacking
    if size:
        topics, lacking = with_sizes(client, state, topics)
        failures += lacking
    if count:
        topics, lacking = with_messages(client, state, topics)
        failures += lacking
    return topics, doubts, failures


def _shown(
    topics: Sequence[TopicSummary], doubts: Sequence[str], failures: Sequence[str], *, size: bool, count: bool
) -> Shown:
    return Shown(topics, [_table(topics, size=size, count=count)], [*doubts, *failures])


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
