"""kctl topic describe: show partitions and configs of topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.base.units import format_size
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import (
    ALL_NAMES,
    AT_MIN_ISR,
    INTERNAL_TOO,
    MATCH,
    UNAVAILABLE,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    selected_problems,
)
from kctl.commands.terminal.views import report_incomplete
from kctl.commands.terminal.watching import INTERVAL, WATCH, PassOutput, Watching

if TYPE_CHECKING:
    from kctl.topics.describe import DescribedTopics, PartitionProblem, TopicDescription


def describe(
    ctx: typer.Context,
    names: Annotated[list[str] | None, ALL_NAMES] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    under_replicated: Annotated[bool, UNDER_REPLICATED] = False,
    unavailable: Annotated[bool, UNAVAILABLE] = False,
    under_min_isr: Annotated[bool, UNDER_MIN_ISR] = False,
    at_min_isr: Annotated[bool, AT_MIN_ISR] = False,
    with_overrides: Annotated[
        bool,
        typer.Option(
            "--with-overrides", "--topics-with-overrides", help="Only topics with configs set on the topic itself."
        ),
    ] = False,
    size: Annotated[
        bool, typer.Option("--size", help="Show the total size of the replicas of each partition.")
    ] = False,
    offsets: Annotated[
        bool,
        typer.Option("--offsets", help="Show the start and end offset of each log, and the times of its records."),
    ] = False,
    internal: Annotated[bool, INTERNAL_TOO] = False,
    watch: Annotated[bool, WATCH] = False,
    interval: Annotated[str, INTERVAL] = "5s",
) -> None:
    """Describe topics: leaders, replicas, ISR, non-default configs.

    Health filters are combined with OR, and include partitions of internal topics. ELR (KRaft, shown if not empty) are
    eligible leader replicas: out of sync, but with all committed records.

    # Show the partitions at risk, in all topics
    kctl topic describe --under-replicated --at-min-isr
    """
    from kctl.topics.describe import DescribeRequest, describe_topics

    inv = invocation(ctx)
    watching = Watching(inv, interval) if watch else None
    problems = selected_problems(under_replicated, unavailable, under_min_isr, at_min_isr)
    request = DescribeRequest(names or (), match or (), problems, with_overrides, size, offsets, internal)
    with inv.connect() as client:
        if watching:
            watching.run(lambda: describe_topics(client, request), lambda polled: _view(polled, problems))
        described = describe_topics(client, request)
    inv.emit(described.topics, lambda: _tables(described, problems), lambda: csv_rows(described.topics))
    for line in described.doubts:
        output.warn(line)
    report_incomplete(described.failures)


def _view(described: DescribedTopics, problems: Sequence[PartitionProblem]) -> PassOutput:
    return PassOutput(described.topics, _tables(described, problems), [*described.doubts, *described.failures])


def _empty_table(problems: Sequence[PartitionProblem], *, certain: bool) -> Table:
    problem_names = " or ".join(problem.value for problem in problems)
    certainty = "" if certain else "known to be "
    return Table([], [], empty=f"no partition is {certainty}{problem_names}" if problems else "no topics")


def _tables(described: DescribedTopics, problems: Sequence[PartitionProblem]) -> list[Table]:
    """Return one table of the matching partitions with a filter, else two tables per topic."""
    from kctl.topics.describe import PartitionProblem

    topics = described.topics
    if not topics:
        return [_empty_table(problems, certain=not described.failures)]
    if not problems:
        return [table for each in topics for table in tables(each)]
    at_min_isr = PartitionProblem.AT_MIN_ISR in problems
    columns = [Column("topic", name=True), *_columns(topics)]
    return [Table(columns, [{"topic": topic.topic, **row} for topic in topics for row in _rows(topic, at_min_isr)])]


def _rows(topic: TopicDescription, at_min_isr: bool = False) -> list[dict[str, Any]]:
    """Return the rows of a topic. at_min_isr: also mark "at min ISR" if all replicas are in sync."""
    return [{**row, "marks": _marks(row, at_min_isr)} for row in jsonable(topic.partitions)]


def csv_rows(topics: Sequence[TopicDescription]) -> list[dict[str, Any]]:
    """Return one row per partition, for CSV, without columns that were not requested or are not supported."""
    rows = [{"topic": topic.topic, **row} for topic in topics for row in jsonable(topic.partitions)]
    optional = ("size_bytes", "leader_size_bytes", "eligible", "last_known_eligible")
    unrequested = {key for key in optional if all(row[key] is None for row in rows)}
    return [{k: v for k, v in row.items() if k not in unrequested and (k, v) != ("offsets", None)} for row in rows]


def _columns(topics: Sequence[TopicDescription]) -> list[Column]:
    has_sizes = any(p.size_bytes is not None for topic in topics for p in topic.partitions)
    has_offsets = any(p.offsets is not None for topic in topics for p in topic.partitions)
    columns = [
        Column("partition", align="right"),
        Column("leader", align="right"),
        Column("replicas"),
        Column("isr", "ISR"),
    ]
    if any(p.eligible or p.last_known_eligible for topic in topics for p in topic.partitions):
        columns += [Column("eligible", "ELR"), Column("last_known_eligible", "LAST KNOWN ELR")]
    if has_sizes:
        columns.append(Column("size_bytes", "SIZE", show=format_size, align="right"))
        columns.append(Column("leader_size_bytes", "ONE COPY", show=format_size, align="right", wide=True))
    if has_offsets:
        columns += [
            Column("offsets.log_start_offset", "START", align="right"),
            Column("offsets.log_end_offset", "END", align="right"),
            Column("offsets.messages", "MESSAGES", align="right"),
            Column("offsets.first_timestamp", "FIRST", wide=True),
            Column("offsets.max_timestamp", "NEWEST"),
        ]
    has_marks = any(row["marks"] for topic in topics for row in _rows(topic))
    return (
        [*columns, Column("marks", style=_mark_style, words=True)]
        if has_marks or not (has_sizes or has_offsets)
        else columns
    )


def tables(topic: TopicDescription) -> list[Table]:
    """Return the tables of a topic: partitions and configs."""
    partitions = Table(
        columns=_columns([topic]),
        rows=_rows(topic),
        title=f"{topic.topic}: {counted(topic.partition_count, 'partition')}, replication factor {_factors(topic)}",
    )
    configs = Table(
        columns=[Column("name", "CONFIG"), Column("value"), Column("source", "SET BY")],
        rows=jsonable(topic.config_entries),
    )
    return [partitions, configs]


def _factors(topic: TopicDescription) -> str:
    """Return "3", or "3 to 4" if partitions differ."""
    factors = {len(p.replicas) for p in topic.partitions}
    return f"{min(factors)} to {max(factors)}" if len(factors) > 1 else str(topic.replication_factor)


def _marks(row: Mapping[str, Any], at_min_isr: bool) -> str:
    """Return the problems of a partition, in the terms that users search for."""
    marks = []
    if row["offline"]:
        marks.append("offline: no leader")
    elif row["leader"] != row["preferred_leader"]:
        marks.append("not the preferred leader")
    if row["under_replicated"]:
        marks.append("under-replicated")
    if row["under_min_isr"]:
        marks.append("under min ISR")
    elif row["at_min_isr"] and (at_min_isr or row["under_replicated"]):
        marks.append("at min ISR")
    if row["offline_replicas"]:
        marks.append(f"offline replicas {','.join(map(str, row['offline_replicas']))}")
    for key, word in (("adding_replicas", "adding"), ("removing_replicas", "removing")):
        if row[key]:
            marks.append(f"{word} {','.join(map(str, row[key]))}")
    return "; ".join(marks)


def _mark_style(row: Mapping[str, Any]) -> str | None:
    if row["offline"] or row["under_min_isr"]:
        return "red"
    return "yellow" if row["marks"] else None
