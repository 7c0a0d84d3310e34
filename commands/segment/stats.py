"""kctl segment stats: what logs consist of, what compaction and retention will do to them, open transactions."""

# ruff: noqa: ARG001 - a command with this many options reads them from ctx.params

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.segment.columns import Size, message_limit
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.errors import NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.segment.stats.collect_statistics import StatisticsOptions
    from kctl.segment.stats.statistics import SegmentStatistics

_NONE = "-1"  # as Kafka's configs have it


def stats(
    ctx: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help=".log files, partitions' folders, log dirs.")],
    batches_only: Annotated[bool, typer.Option("--batches-only", help="Only what batch headers tell: fast.")] = False,
    top: Annotated[int, typer.Option(min=0, max=10_000, help="So many hot keys and producers.")] = 10,
    retention_ms: Annotated[
        str | None, typer.Option(metavar="DURATION", help="When are segments deletable? 7d, or milliseconds.")
    ] = None,
    retention_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Which segments are too many? 10GB, or bytes.")
    ] = None,
    transaction_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="Transactions open for longer are hanging.")
    ] = "15m",
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Compute ages at this time, e.g. when the files were copied; UTC if no zone is given."
        ),
    ] = None,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="For keys; beyond it figures are estimates.")] = "64MiB",
    max_message_size: Size = None,
) -> None:
    """Show what logs consist of, and what retention will do.

    Codecs, sizes, keys, producers, transactions, compaction, and when each segment may be deleted.

    -o csv has a row for each segment. Exits 1 when damage was found; damaged batches are not counted.

    Example: kctl segment stats --retention-ms 7d /var/lib/kafka/orders-0

    Example: kctl segment stats --batches-only 00000000000000000000.log
    """
    from kctl.commands.segment.stats_tables import tables
    from kctl.segment.log.log_selection import select_logs
    from kctl.segment.stats.collect_statistics import collect_statistics

    inv = invocation(ctx)
    options = _options(ctx.params)
    with output.progress("Reading") as progress:
        found = collect_statistics(
            select_logs(paths), options, lambda done, total: progress.update("Reading", done, total)
        )
    inv.emit(found.statistics.segments if inv.output == "csv" else found.statistics, lambda: tables(found.statistics))
    for remark in found.remarks:
        output.warn(remark)
    for note in found.notes:
        output.note(note)
    _remark(found.statistics)


def _options(given: Mapping[str, Any]) -> StatisticsOptions:
    import time

    from kctl.base.moments import parse_moment
    from kctl.base.units import parse_duration_ms, parse_size
    from kctl.segment.stats.collect_statistics import StatisticsOptions

    ms, size = given["retention_ms"], given["retention_bytes"]
    memory = parse_size(given["memory"])
    if memory < 1:
        raise UsageError("--memory must be more than nothing")
    return StatisticsOptions(
        now=parse_moment(given["at"]) if given["at"] else round(time.time() * 1000),
        records=not given["batches_only"],
        top=given["top"],
        memory_bytes=memory,
        retention_ms=None if ms in {None, _NONE} else int(ms) if _is_number(ms) else parse_duration_ms(ms),
        retention_bytes=None if size in {None, _NONE} else parse_size(size),
        transaction_timeout_ms=parse_duration_ms(given["transaction_timeout"]),
        max_message_bytes=message_limit(given["max_message_size"]),
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _remark(found: SegmentStatistics) -> None:
    """What should not be overlooked, on stderr; damage is an error."""
    for log in found.logs:
        if log.segments_left_out:
            output.note(
                f"{log.log}: {log.segments_left_out} more segments are there; compaction and retention are told "
                f"without them"
            )
    if found.timestamps.future_segments:
        count = found.timestamps.future_segments
        output.warn(
            f"{'1 segment has' if count == 1 else f'{count} segments have'} timestamps in the future: retention by "
            f"time keeps what is in such a segment, and all behind it"
        )
    hanging = found.transactions.hanging_count
    if hanging:
        output.warn(
            f"hanging transactions: {hanging}; consumers with isolation.level=read_committed wait for them; "
            f"kafka-transactions.sh abort ends one"
        )
    places = found.totals.damaged_places
    if places:
        where = "1 place" if places == 1 else f"{places} places"
        raise NotHealthy(
            f"damage was found in {where}, in {found.totals.damaged_bytes} bytes",
            hint="kctl segment verify says what it means",
        )
