"""kctl segment diff: two replicas of one partition."""

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
    first: Annotated[Path, typer.Argument(metavar="DIR1", help="A partition's folder, or a log file.")],
    second: Annotated[Path, typer.Argument(metavar="DIR2", help="The same partition of another broker.")],
    compacted: Annotated[
        bool,
        typer.Option(
            "--compacted", help="The topic is compacted: records that are missing do not count as a difference."
        ),
    ] = False,
    max_message_size: Size = None,
) -> None:
    """Compare two replicas of a partition.

    Where they diverge, in which leader epochs, and what one of them lacks.

    Records are compared, not bytes: batches may be written anew by compaction. Exits 0 when the replicas are the same,
    or one only begins later, ends earlier or was compacted further; 1 when they diverge, one is damaged, or one lacks
    records in between that compaction does not explain (cleaner-offset-checkpoint of its log dir, or --compacted).

    Example: kctl segment diff broker1/orders-0 broker2/orders-0
    """
    from kctl.segment.diff.report import diff as compare
    from kctl.segment.log.partition_log import partition_log

    inv = invocation(ctx)
    limit = message_limit(max_message_size)
    found = compare(partition_log(first), partition_log(second), compacted=compacted, limit=limit)
    inv.emit(found, lambda: list(_tables(found)))
    for text in found.damage:
        output.warn(text)
    if inv.output in output.FOR_PEOPLE:
        for text in found.meaning:
            output.note(text)
    if not found.verdict.healthy:
        raise NotHealthy(_failure(found), hint="")


def _failure(found: DiffReport) -> str:
    if found.divergence is not None:
        return f"the replicas diverge from offset {found.divergence.offset} on"
    if found.first.damaged or found.second.damaged:
        which = found.first if found.first.damaged else found.second
        return f"{which.path} is damaged"
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
    Column("leader", "IF IT LEADS"),
    Column("follower", "THIS ONE"),
    Column("offset", "IS CUT OFF AT", align="right"),
    Column("lost_offsets", "LOSES", align="right"),
    Column("mends", "SAME AFTERWARDS"),
]


def _tables(found: DiffReport) -> Iterator[Table]:
    title = f"verdict: {found.verdict.value.replace('_', ' ')}"
    yield Table(_SIDES, jsonable([found.first, found.second]), title=title)
    if found.divergence is not None:
        yield Table(_FIRST, list(_divergence_rows(found, found.divergence)))
    yield Table(_DIVERGENT, jsonable(found.divergent))
    yield Table(_LACKS, jsonable(found.lacks))
    if found.divergence is not None:
        yield Table(_EPOCHS, jsonable(found.epochs))
    yield Table(_TRUNCATIONS, jsonable(found.truncations))


def _divergence_rows(found: DiffReport, divergence: Divergence) -> Iterator[dict[str, object]]:
    sides: list[tuple[str, DivergentRecord]] = [
        (found.first.path, divergence.first),
        (found.second.path, divergence.second),
    ]
    for path, record in sides:
        yield {**jsonable(record), "side": f"{divergence.offset} in {path}"}
