"""kctl segment stats: statistics of logs, the effect of compaction and retention, open transactions."""

# ruff: noqa: ARG001 - a command with this many options reads them from ctx.params

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.segment.columns import Size, message_limit
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.errors import NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.segment.stats.collect_statistics import StatisticsOptions
    from kctl.segment.stats.statistics import SegmentStatistics

_NONE = "-1"  # no limit, as in Kafka's configs


def stats(
    ctx: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help=".log files, partition folders, or log dirs.")],
    batches_only: Annotated[bool, typer.Option("--batches-only", help="Read only batch headers: faster.")] = False,
    top: Annotated[
        int, typer.Option(min=0, max=10_000, help="Number of hottest keys and largest producers to list.")
    ] = 10,
    retention_ms: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Show when segments are deletable: e.g. 7d, or milliseconds.")
    ] = None,
    retention_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Show which segments exceed this size: e.g. 10GB, or bytes.")
    ] = None,
    transaction_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="A transaction open for longer counts as hanging.")
    ] = "15m",
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Compute ages at this time, e.g. of a copy (default: now); UTC if no zone is given."
        ),
    ] = None,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory for exact key counts; beyond it, counts are estimates.")
    ] = "64MiB",
    max_message_size: Size = None,
) -> None:
    """Show statistics of logs, and the effect of retention.

    Shows codecs, sizes, keys, producers, transactions, compaction, and when each segment may be deleted.

    -o csv has one row per segment. Exits 1 if a log is damaged; damaged batches are not counted.

    # Show when each segment may be deleted
    kctl segment stats --retention-ms 7d /var/lib/kafka/orders-0

    # Read only the batch headers of one segment
    kctl segment stats --batches-only 00000000000000000000.log
    """
    from kctl.commands.segment.stats_tables import empty_logs, tables
    from kctl.segment.log.log_selection import select_logs
    from kctl.segment.stats.collect_statistics import collect_statistics

    inv = invocation(ctx)
    options = _options(ctx.params)
    with output.progress("Reading") as progress:
        collected = collect_statistics(
            select_logs(paths), options, lambda done, total: progress.update("Reading", done, total)
        )
    statistics = collected.statistics
    inv.emit(
        statistics.segments if inv.output == "csv" else statistics,
        lambda: tables(statistics, wide=inv.output == "wide"),
    )
    skipped = empty_logs(statistics)
    if skipped and inv.output in {None, "table"}:
        output.note(f"{counted(len(skipped), 'empty partition')} skipped; -o wide lists them")
    for remark in collected.remarks:
        output.warn(remark)
    for note in collected.notes:
        output.note(note)
    _remark(statistics)


def _options(params: Mapping[str, Any]) -> StatisticsOptions:
    import time

    from kctl.base.timestamps import parse_timestamp
    from kctl.base.units import parse_duration_ms, parse_size
    from kctl.segment.stats.collect_statistics import StatisticsOptions

    ms, size = params["retention_ms"], params["retention_bytes"]
    memory = parse_size(params["memory"])
    if memory < 1:
        raise UsageError("--memory must be above 0", hint="e.g. --memory 64MiB")
    return StatisticsOptions(
        now=parse_timestamp(params["at"]) if params["at"] else round(time.time() * 1000),
        records=not params["batches_only"],
        top=params["top"],
        memory_bytes=memory,
        retention_ms=None if ms in {None, _NONE} else int(ms) if _is_number(ms) else parse_duration_ms(ms),
        retention_bytes=None if size in {None, _NONE} else parse_size(size),
        transaction_timeout_ms=parse_duration_ms(params["transaction_timeout"]),
        max_message_bytes=message_limit(params["max_message_size"]),
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _remark(statistics: SegmentStatistics) -> None:
    """Print warnings to stderr. Raises NotHealthy for damage."""
    for log in statistics.logs:
        if log.segments_left_out:
            output.note(
                f"{log.log}: {log.segments_left_out} more segments exist; compaction and retention are computed "
                f"without them"
            )
    if statistics.timestamps.future_segments:
        count = statistics.timestamps.future_segments
        output.warn(
            f"{'1 segment has' if count == 1 else f'{count} segments have'} timestamps in the future: retention.ms "
            f"does not delete such a segment, nor any later one"
        )
    hanging = statistics.transactions.hanging_count
    if hanging:
        output.warn(
            f"hanging transactions: {hanging}; consumers with isolation.level=read_committed cannot read past them; "
            f"run `kctl transaction abort`"
        )
    places = statistics.totals.damaged_places
    if places:
        where = "1 place" if places == 1 else f"{places} places"
        raise NotHealthy(
            f"damage in {where}, {statistics.totals.damaged_bytes} bytes",
            hint="run `kctl segment verify`: it reports the effect on the broker",
        )
