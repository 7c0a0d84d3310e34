"""Output of kctl produce: the rate while it runs, and the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.base.units import format_size
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import ranges, spans
from kctl.errors import KctlError, NotAuthorized, NotHealthy, OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.records.produce.check import ProduceCheck
    from kctl.records.produce.options import ProduceOptions, ProduceResult

_MAX_CHARS = 80  # characters; -o json has all
_MAX_PARTITIONS = 12  # more are summarized; -o json has all


@contextmanager
def speed(*, terminal: bool, quiet: bool) -> Iterator[Callable[[ProduceResult], None] | None]:
    """Yield a progress callback for sent records and their rate; None if lines are typed in."""
    if terminal or quiet:
        yield None
        return
    started = time.monotonic()
    with output.progress("no record sent yet") as bar:

        def show(result: ProduceResult) -> None:
            seconds = max(0.001, time.monotonic() - started)
            acked_count = result.acknowledged or 0
            acknowledged = "" if result.acks == "0" else f" {acked_count:,} acknowledged,"
            bar.update(
                f"{counted(result.sent, 'record')} sent,{acknowledged} {acked_count / seconds:,.0f} records/s,"
                f" {format_size(round(result.bytes / seconds))}/s"
            )

        yield show


@contextmanager
def checked(*, terminal: bool, quiet: bool) -> Iterator[Callable[[ProduceCheck], None] | None]:
    """Yield a progress callback for checked lines; None if lines are typed in."""
    if terminal or quiet:
        if not quiet:
            output.note("type one record per line; end with Ctrl-D")
        yield None
        return
    with output.progress("no line checked yet") as bar:
        yield lambda check: bar.update(f"{counted(check.records + check.bad_line_count, 'line')} checked")


def report(
    inv: Invocation,
    result: ProduceResult,
    error: KctlError | None,
    shortage: str | None,
    not_saved: KctlError | None,
    *,
    quiet: bool = False,
) -> None:
    """Emit the result. Raises an error if not everything was acknowledged.

    quiet: emit the result only in that case. error: what stopped sending. shortage: why brokers may have rejected
    records, as a hint. not_saved: why unacknowledged records could not be written to the file.
    """
    row = jsonable(result) | {
        "not_acknowledged": spans(result.not_acknowledged),
        "partitions": _rows(result.partitions),
    }
    inv.report_change(changed=result.changed)
    if not quiet or not _all_written(result):
        inv.emit(row, [Table(_columns(result), [row])])
    if result.failed_file and not_saved is None:
        output.note(f"{counted(len(result.not_acknowledged), 'record')} not acknowledged: {result.failed_file}")
    if result.skipped:
        output.warn(f"{counted(result.skipped, 'line')} skipped; the first: {result.bad_line}")
    if result.interrupted:
        acknowledged = (
            "none is acknowledged (acks=0)" if result.acknowledged is None else f"{result.acknowledged} acknowledged"
        )
        failed = f", {result.failed} failed" if result.failed else ""
        output.warn(f"{result.sent} records sent, {acknowledged}{failed}, {result.unknown} unknown")
        if not_saved is not None:
            output.warn(not_saved.message)
        raise KeyboardInterrupt
    if not _all_written(result):
        raise _failure(result, error, shortage, not_saved)
    if not_saved is not None:
        raise not_saved


def _all_written(result: ProduceResult) -> bool:
    """Return True if every line was acknowledged as a record, or skipped as requested."""
    return result.complete and (not result.bad_line or bool(result.skipped))


def _columns(result: ProduceResult) -> list[Column]:
    return [
        Column("topic"),
        Column("acknowledged", align="right"),
        Column("failed", align="right"),
        Column("unknown", align="right"),
        *([Column("skipped", align="right")] if result.skipped else []),
        Column("bytes", align="right"),
        Column("partitions", "PARTITION:RECORDS", show=partition_counts),
    ]


def _rows(counts: Mapping[int, int]) -> list[dict[str, int]]:
    return [{"partition": number, "records": count} for number, count in sorted(counts.items())]


def partition_counts(rows: Sequence[Mapping[str, int]]) -> str:
    """Return e.g. "0:12 1:9"; for many partitions, the range."""
    if len(rows) > _MAX_PARTITIONS:
        records = [row["records"] for row in rows]
        return f"{len(rows):,} partitions, {min(records):,} to {max(records):,} records each"
    return " ".join(f"{row['partition']}:{row['records']}" for row in rows) or "-"


def _line_numbers(lines: list[int]) -> str:
    """Return "line 3" or "lines 3-7,9"; only the first ones if there are very many."""
    if len(lines) == 1:
        return f"line {lines[0]}"
    text = ranges(lines)
    if len(text) <= _MAX_CHARS:
        return f"lines {text}"
    return f"{len(lines)} lines ({text[: text.rindex(',', 0, _MAX_CHARS)]}, …)"


def _failure(
    result: ProduceResult, error: KctlError | None, shortage: str | None, not_saved: KctlError | None
) -> KctlError:
    details = {"not_acknowledged": spans(result.not_acknowledged)}
    if result.not_acknowledged:
        save_error = f"; {not_saved.message}" if not_saved is not None else ""
        if isinstance(error, NotAuthorized) and not result.acknowledged and not result.unknown:
            return error  # nothing was changed
        lines = _line_numbers(result.not_acknowledged)
        return OperationFailed(
            f"{lines} not acknowledged ({result.failed} failed, {result.unknown} unknown): {result.error}{save_error}",
            hint=_hint(result, error, shortage),
            details=details,
        )
    message = result.error or result.bad_line or "not all lines were sent"
    if not result.sent:
        return UsageError(message, hint="nothing was sent")
    return OperationFailed(
        f"{message}; {counted(result.sent, 'record')} before it sent, none after it", details=details
    )


def _hint(result: ProduceResult, error: KctlError | None, shortage: str | None) -> str:
    """Return the cause, how far the input was read, and how to keep unacknowledged records next time."""
    parts = [shortage or f"no line after {result.sent + result.skipped} was read"]
    if error is not None and error.hint and not shortage:
        parts.append(error.hint)
    if result.failed_file is None:
        parts.append("use --failed-file to keep unacknowledged records")
    return "; ".join(parts)


def report_check(
    inv: Invocation, check: ProduceCheck, options: ProduceOptions, shortage: str | None, *, quiet: bool = False
) -> None:
    """Emit what a run would write. Raises an error for invalid lines, or if the cluster would reject records now.

    shortage: what the cluster lacks for acks=all, as text.
    """
    row = jsonable(check)
    inv.report_change(changed=bool(check.records))
    if not quiet or check.bad_line_count or shortage:
        inv.emit(row, [Table(_check_columns(), [row])])
    if not quiet and (check.max_batch_bytes is None or options.compression != "none"):
        why = "compressed" if options.compression != "none" else "its max.message.bytes is unreadable"
        output.note(f"unknown whether each record fits the size limit: {why}")
    if check.bad_line_count:
        first = f"{counted(check.bad_line_count, 'line')} cannot be parsed; the first: {check.bad_lines[0]}"
        if not options.skip_bad_lines:
            raise UsageError(
                first, hint="nothing was sent; list more with -o json, or skip them with --on-bad-line skip"
            )
        output.warn(first)
    if shortage:
        raise NotHealthy(f"topic {check.topic} has {shortage}")


def _check_columns() -> list[Column]:
    return [
        Column("topic"),
        Column("records", "WOULD SEND", align="right"),
        Column("bytes", align="right"),
        Column("largest_bytes", "LARGEST", align="right"),
        Column("tombstone_count", "TOMBSTONES", align="right"),
        Column("bad_line_count", "BAD LINES", align="right"),
        Column("partitions", "PARTITION:RECORDS", show=partition_counts),
        Column("any_partition_count", "ANY PARTITION", align="right"),
    ]
