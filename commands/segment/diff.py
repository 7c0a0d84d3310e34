"""kctl segment diff: compare two replicas of one partition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.units import format_size
from kctl.commands.segment.columns import Size, content, message_limit
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import NotHealthy

if TYPE_CHECKING:
    from kctl.segment.diff.diff import Divergence, DivergentRecord
    from kctl.segment.diff.report import DiffReport


def diff(
    ctx: typer.Context,
    first: Annotated[Path, typer.Argument(metavar="DIR1", help="A partition folder, or a log file.")],
    second: Annotated[Path, typer.Argument(metavar="DIR2", help="The same partition from another broker.")],
    compacted: Annotated[
        bool,
        typer.Option("--compacted", help="The topic is compacted: missing records do not count as differences."),
    ] = False,
    max_message_size: Size = None,
) -> None:
    """Compare two replicas of a partition.

    Shows where and in which leader epochs the replicas diverge, and which records are missing.

    Records are compared, not bytes, because compaction rewrites batches. Exit code 0: the replicas are equal, or one
    only starts later, ends earlier or is compacted further. Exit code 1: they diverge, one is damaged, or one lacks
    records that compaction cannot have removed (according to cleaner-offset-checkpoint, or with --compacted).

    # Compare copies of the partition folders of two brokers
    kctl segment diff broker1/orders-0 broker2/orders-0
    """
    from kctl.segment.diff.report import diff as compare
    from kctl.segment.log.partition_log import partition_log

    inv = invocation(ctx)
    limit = message_limit(max_message_size)
    report = compare(partition_log(first), partition_log(second), compacted=compacted, limit=limit)
    inv.emit(report, lambda: list(_tables(report)))
    for text in report.damage:
        output.warn(text)
    if inv.output in output.FOR_PEOPLE:
        for text in report.meaning:
            output.note(text)
    if not report.verdict.healthy:
        raise NotHealthy(_failure(report), hint="")


def _failure(report: DiffReport) -> str:
    if report.divergence is not None:
        return f"the replicas diverge at offset {report.divergence.offset}"
    if report.first.damaged or report.second.damaged:
        damaged_side = report.first if report.first.damaged else report.second
        return f"{damaged_side.path} is damaged"
    return "a replica lacks records"


# --- tables ---------------------------------------------------------------------------------------------------------

_SIDES = [
    Column("path", "REPLICA"),
    Column("log_start_offset", "START", align="right"),
    Column("log_end_offset", "END", align="right"),
    Column("segments", align="right"),
    Column("batches", align="right"),
    Column("size_bytes", "SIZE", show=format_size, align="right"),
    Column("latest_epoch", "EPOCH", align="right"),
    Column("damaged", "DAMAGE", align="right", style=lambda row: "red" if row["damaged"] else None),
]
_FIRST = [
    Column("side", "FIRST DIVERGENCE"),
    Column("leader_epoch", "EPOCH", align="right"),
    Column("position", align="right"),
    Column("record.timestamp", "TIMESTAMP", align="right"),
    Column("record.key", "KEY", show=content),
    Column("record.value", "VALUE", show=content),
]
_DIVERGENT = [
    Column("first_offset", "DIVERGENT", align="right"),
    Column("last_offset", "TO", align="right"),
    Column("records", align="right"),
    Column("differs", "DIFFERS IN"),
]
_LACKS = [
    Column("path", "LACKS RECORDS"),
    Column("first_offset", "FROM", align="right"),
    Column("last_offset", "TO", align="right"),
    Column("records", align="right"),
    Column("where", "WHY"),
]
_EPOCHS = [
    Column("epoch", align="right"),
    Column("first_start", "START IN FIRST", align="right"),
    Column("second_start", "START IN SECOND", align="right"),
]
_TRUNCATIONS = [
    Column("leader", "IF LEADER IS"),
    Column("follower", "FOLLOWER"),
    Column("offset", "TRUNCATES TO", align="right"),
    Column("lost_offsets", "LOSES", align="right"),
    Column("mends", "EQUAL AFTERWARDS"),
]


def _tables(report: DiffReport) -> Iterator[Table]:
    title = f"verdict: {report.verdict.value.replace('_', ' ')}"
    yield Table(_SIDES, jsonable([report.first, report.second]), title=title)
    if report.divergence is not None:
        yield Table(_FIRST, list(_divergence_rows(report, report.divergence)))
    yield Table(_DIVERGENT, jsonable(report.divergent))
    yield Table(_LACKS, jsonable(report.lacks))
    if report.divergence is not None:
        yield Table(_EPOCHS, jsonable(report.epochs))
    yield Table(_TRUNCATIONS, jsonable(report.truncations))


def _divergence_rows(report: DiffReport, divergence: Divergence) -> Iterator[dict[str, object]]:
    sides: list[tuple[str, DivergentRecord]] = [
        (report.first.path, divergence.first),
        (report.second.path, divergence.second),
    ]
    for path, record in sides:
        yield {**jsonable(record), "side": f"{divergence.offset} in {path}"}
