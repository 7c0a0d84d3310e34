"""What kctl produce says: its speed while it runs, and in the end what became of the records."""

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

_MAX_NAMED = 80  # characters; -o json has all


@contextmanager
def speed(*, terminal: bool, quiet: bool) -> Iterator[Callable[[ProduceResult], None] | None]:
    """What to call now and then: shows how many records were sent and how fast, where lines are not typed in."""
    if terminal or quiet:
        yield None
        return
    started = time.monotonic()
    with output.progress("no record sent yet") as bar:

        def show(result: ProduceResult) -> None:
            seconds = max(0.001, time.monotonic() - started)
            done = result.acknowledged or 0
            acknowledged = "" if result.acks == "0" else f" {done:,} acknowledged,"
            bar.update(
                f"{counted(result.sent, 'record')} sent,{acknowledged} {done / seconds:,.0f} records/s,"
                f" {format_size(round(result.bytes / seconds))}/s"
            )

        yield show


@contextmanager
def checked(*, terminal: bool, quiet: bool) -> Iterator[Callable[[ProduceCheck], None] | None]:
    """What to call now and then: shows how many lines were checked, where they are not typed in."""
    if terminal or quiet:
        if not quiet:
            output.note("type one record per line; end with Ctrl-D")
        yield None
        return
    with output.progress("no line checked yet") as bar:
        yield lambda found: bar.update(f"{counted(found.records + found.bad_line_count, 'line')} checked")


def report(
    inv: Invocation,
    result: ProduceResult,
    error: KctlError | None,
    shortage: str | None,
    not_kept: KctlError | None,
    *,
    quiet: bool = False,
) -> None:
    """Emit the result; raise when not everything was acknowledged.

    quiet: emit it only then. error: what stopped the sending. shortage: why brokers may have refused, as a hint.
    not_kept: why what was not acknowledged is not in the file for it.
    """
    shown = jsonable(result) | {
        "not_acknowledged": spans(result.not_acknowledged),
        "partitions": _rows(result.partitions),
    }
    inv.report_change(changed=result.changed)
    if not quiet or not _all_written(result):
        inv.emit(shown, [Table(_columns(result), [shown])])
    if result.failed_file and not_kept is None:
        output.note(f"{counted(len(result.not_acknowledged), 'record')} not acknowledged: {result.failed_file}")
    if result.skipped:
        output.warn(f"{counted(result.skipped, 'line')} skipped; the first: {result.bad_line}")
    if result.interrupted:
        acknowledged = (
            "none is acknowledged (acks=0)" if result.acknowledged is None else f"{result.acknowledged} acknowledged"
        )
        failed = f", {result.failed} failed" if result.failed else ""
        output.warn(f"{result.sent} records sent, {acknowledged}{failed}, {result.unknown} unknown")
        if not_kept is not None:
            output.warn(not_kept.message)
        raise KeyboardInterrupt
    if not _all_written(result):
        raise _failure(result, error, shortage, not_kept)
    if not_kept is not None:
        raise not_kept


def _all_written(result: ProduceResult) -> bool:
    """Whether every line was acknowledged as a record, or skipped on request."""
    return result.complete and (not result.bad_line or bool(result.skipped))


def _columns(result: ProduceResult) -> list[Column]:
    return [
        Column("topic"),
        Column("acknowledged", align="right"),
        Column("failed", align="right"),
        Column("unknown", align="right"),
        *([Column("skipped", align="right")] if result.skipped else []),
        Column("bytes", align="right"),
        Column("partitions", "PARTITION:RECORDS", show=_by_partition),
    ]


def _rows(counts: Mapping[int, int]) -> list[dict[str, int]]:
    return [{"partition": number, "records": count} for number, count in sorted(counts.items())]


def _by_partition(rows: Sequence[Mapping[str, int]]) -> str:
    return " ".join(f"{row['partition']}:{row['records']}" for row in rows) or "-"


def _named(lines: list[int]) -> str:
    """«line 3», «lines 3-7,9»; of very many the first."""
    if len(lines) == 1:
        return f"line {lines[0]}"
    text = ranges(lines)
    if len(text) <= _MAX_NAMED:
        return f"lines {text}"
    return f"{len(lines)} lines ({text[: text.rindex(',', 0, _MAX_NAMED)]}, …)"


def _failure(
    result: ProduceResult, error: KctlError | None, shortage: str | None, not_kept: KctlError | None
) -> KctlError:
    details = {"not_acknowledged": spans(result.not_acknowledged)}
    if result.not_acknowledged:
        beside = f"; {not_kept.message}" if not_kept is not None else ""
        if isinstance(error, NotAuthorized) and not result.acknowledged and not result.unknown:
            return error  # nothing was changed
        named = _named(result.not_acknowledged)
        return OperationFailed(
            f"{named} not acknowledged ({result.failed} failed, {result.unknown} unknown): {result.error}{beside}",
            hint=_hint(result, error, shortage),
            details=details,
        )
    message = result.error or result.bad_line or "not all lines were sent"
    if not result.sent:
        return UsageError(message, hint="nothing was sent")
    return OperationFailed(
        f"{message}; sent before it: {counted(result.sent, 'record')}, behind it: none", details=details
    )


def _hint(result: ProduceResult, error: KctlError | None, shortage: str | None) -> str:
    """What stands behind it, how far the input was read, and how to keep what is lost the next time."""
    said = [shortage or f"no line behind {result.sent + result.skipped} was read"]
    if error is not None and error.hint and not shortage:
        said.append(error.hint)
    if result.failed_file is None:
        said.append("--failed-file keeps such records")
    return "; ".join(said)


def report_check(
    inv: Invocation, found: ProduceCheck, options: ProduceOptions, shortage: str | None, *, quiet: bool = False
) -> None:
    """Emit what a run would write; raise when some lines can be no record, or the cluster would not take them now.

    shortage: what the cluster lacks for acks=all, in words.
    """
    shown = jsonable(found)
    inv.report_change(changed=bool(found.records))
    if not quiet or found.bad_line_count or shortage:
        inv.emit(shown, [Table(_check_columns(), [shown])])
    if not quiet and (found.max_batch_bytes is None or options.compression != "none"):
        why = "compressed" if options.compression != "none" else "its max.message.bytes may not be read"
        output.note(f"whether each record is small enough only the broker knows: {why}")
    if found.bad_line_count:
        first = f"{counted(found.bad_line_count, 'line')} can be no record; the first: {found.bad_lines[0]}"
        if not options.skip_bad_lines:
            raise UsageError(first, hint="nothing was sent; -o json has more, --on-bad-line skip leaves them out")
        output.warn(first)
    if shortage:
        raise NotHealthy(f"topic {found.topic} has {shortage}")


def _check_columns() -> list[Column]:
    return [
        Column("topic"),
        Column("records", "WOULD SEND", align="right"),
        Column("bytes", align="right"),
        Column("largest_bytes", "LARGEST", align="right"),
        Column("tombstone_count", "TOMBSTONES", align="right"),
        Column("bad_line_count", "BAD LINES", align="right"),
        Column("partitions", "PARTITION:RECORDS", show=_by_partition),
        Column("any_partition_count", "ANY PARTITION", align="right"),
    ]
