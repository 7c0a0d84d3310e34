"""kctl segment verify: check log files, and rebuild wrong indexes."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.base.units import format_size
from kctl.commands.segment.columns import Size, message_limit
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import NotAuthorized, NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.segment.verify.context import VerifyOptions
    from kctl.segment.verify.repair_index import IndexRepair
    from kctl.segment.verify.verify import VerifyResult

_REPAIR_HINT = "run `kctl segment verify --repair-index` to see which indexes can be rebuilt"
_STYLES = {"error": "red", "warning": "yellow", "info": None}


@dataclasses.dataclass(frozen=True)
class RepairResult:
    """The result of --repair-index. dry_run: nothing was written. verified: the verification after any writes."""

    dry_run: bool
    indexes: Sequence[IndexRepair]
    verified: VerifyResult


def verify(
    ctx: typer.Context,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH…", help="Log dirs, partition folders, or files of a log.")
    ],
    deep: Annotated[bool, typer.Option("--deep", help="Also decode and check every record.")] = False,
    max_findings: Annotated[int, typer.Option(min=1, help="Maximum findings of one code to list per file.")] = 20,
    max_message_size: Size = None,
    repair_index: Annotated[
        bool, typer.Option("--repair-index", help="Rebuild wrong or missing indexes, after a confirmation.")
    ] = False,
    index_interval_bytes: Annotated[
        int, typer.Option(min=0, help="Log bytes between index entries: index.interval.bytes of the topic.")
    ] = 4096,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --repair-index: show the plan without asking.")
    ] = False,
    assume_stopped: Annotated[
        bool,
        typer.Option("--assume-stopped", help="Write even if kctl cannot see which files other processes have open."),
    ] = False,
) -> None:
    """Check log files, and rebuild wrong indexes.

    Checks batches, indexes, transactions, epochs, snapshots and checkpoints against each other. Each finding states
    its effect on the broker that opens the files. Exits 1 if there are errors or warnings.

    --repair-index rewrites wrong or missing .index, .timeindex and .txnindex files like a broker's recovery. Stop the
    broker first: kctl refuses to write while any process has the files open. Old files are kept as
    NAME.old-TIME. Without --yes, kctl asks; without a terminal, nothing is written.

    # Check every record of a partition
    kctl segment verify --deep /var/kafka/data/orders-0

    # Check all log dirs of a broker
    kctl segment verify /mnt/*/kafka-data -o json

    # Rebuild wrong indexes of a stopped broker, without asking
    kctl segment verify --repair-index --yes /var/kafka/data/orders-0
    """
    inv = invocation(ctx)
    if dry_run and not repair_index:
        raise UsageError("--dry-run requires --repair-index", hint="without --repair-index, nothing is written")
    if assume_stopped and not repair_index:
        raise UsageError("--assume-stopped requires --repair-index", hint="without --repair-index, nothing is written")
    files = [Path(path) for path in paths]
    options = _options(deep, max_findings, max_message_size)
    result = _verify(files, options)
    if not repair_index:
        _emit(inv, result)
        return
    _repair(
        inv, files, options, result, interval_bytes=index_interval_bytes, dry_run=dry_run, assume_stopped=assume_stopped
    )


def _options(deep: bool, max_findings: int, max_message_size: str | None) -> VerifyOptions:
    from kctl.segment.verify.context import VerifyOptions

    return VerifyOptions(deep=deep, max_findings=max_findings, max_message_bytes=message_limit(max_message_size))


def _verify(paths: Sequence[Path], options: VerifyOptions) -> VerifyResult:
    from kctl.segment.verify.verify import verify as run

    with _progress(paths) as progress:
        return run(paths, dataclasses.replace(options, progress=progress))


@contextmanager
def _progress(paths: Sequence[Path]) -> Iterator[Callable[[str, int], None]]:
    from kctl.segment.verify.verify import size_of

    with output.progress("verifying") as bar:
        total, done, current_file = size_of(paths) if sys.stderr.isatty() else 0, 0, ""

        def update(name: str, checked_bytes: int) -> None:
            nonlocal done, current_file
            done, current_file = done + checked_bytes, name or current_file
            bar.update(f"verifying {current_file}", done, total)

        yield update


# --- findings ---------------------------------------------------------------------------------------------------------


def _emit(inv: Invocation, result: VerifyResult) -> None:
    inv.emit(result.findings if inv.output == "csv" else result, lambda: list(_tables(result)), changed=False)
    if inv.output in output.FOR_PEOPLE:
        output.write_line(_summary(result))
    _end(result)


def _end(result: VerifyResult, *, repairing: bool = False) -> None:
    from kctl.segment.verify.findings import INDEX_CODES

    if result.denied:
        text = f"{counted(result.denied, 'file or folder', 'files or folders')} unreadable: permission denied"
        raise NotAuthorized(text, hint="run kctl as the broker's user; checks that depend on these files were skipped")
    if not result.healthy:
        raise NotHealthy(
            f"not healthy: {_problem_counts(result)}",
            hint=_REPAIR_HINT if not repairing and any(f.code in INDEX_CODES for f in result.findings) else None,
        )


def _tables(result: VerifyResult) -> Iterator[Table]:
    """Yield a table per file, and a table with the effect of each code on the broker."""
    columns = [
        Column("severity", style=lambda row: _STYLES[row["severity"]]),
        Column("code"),
        Column("position", "AT", align="right"),
        Column("offsets", "OFFSET", align="right"),
        Column("message", "FINDING"),
    ]
    by_file: dict[str, list[Any]] = {}
    for row in jsonable(result.findings):
        by_file.setdefault(row["file"], []).append(row | {"offsets": _offsets(row)})
    for omitted in result.omitted:
        text = f"and {omitted.count} more; list them with --max-findings"
        by_file[omitted.file].append({"severity": omitted.severity.value, "code": omitted.code, "message": text})
    for file, rows in by_file.items():
        yield Table(columns, rows, title=file)
    meaning = {finding.code: finding.effect.value for finding in result.findings}
    legend = [{"code": code, "effect": effect} for code, effect in meaning.items()]
    yield Table([Column("code"), Column("effect", "EFFECT ON THE BROKER")], legend)


def _offsets(row: dict[str, Any]) -> str | int | None:
    """Return the affected offsets, otherwise the offset of the finding."""
    first, last = row["first_offset"], row["last_offset"]
    if first is None and last is None:
        offset: int | None = row["offset"]
        return offset
    return first if first == last else f"{'' if first is None else first}..{'' if last is None else last}"


def _summary(result: VerifyResult) -> str:
    checked = result.checked
    parts = [
        counted(checked.log_dir_count, "log dir") if checked.log_dir_count else "",
        counted(checked.partition_count, "partition") if checked.partition_count else "",
        counted(checked.segments, "segment"),
        counted(checked.files, "file"),
        counted(checked.batches, "batch", "batches"),
        f"{counted(checked.records, 'record')}{'' if result.deep or result.healthy else ' (not decoded, use --deep)'}",
        format_size(checked.size_bytes),
    ]
    fine = "fine" if result.deep else "no damage in headers, CRCs and indexes (records not decoded, use --deep)"
    verdict = fine if result.healthy else _problem_counts(result)
    return f"{verdict}: {', '.join(part for part in parts if part)} checked"


def _problem_counts(result: VerifyResult) -> str:
    counts = ((result.errors, "error"), (result.warnings, "warning"))
    return " and ".join(counted(number, noun) for number, noun in counts if number)


# --- --repair-index ---------------------------------------------------------------------------------------------------


def _repair(
    inv: Invocation,
    files: Sequence[Path],
    options: VerifyOptions,
    result: VerifyResult,
    *,
    interval_bytes: int,
    dry_run: bool,
    assume_stopped: bool,
) -> None:
    from kctl.commands.terminal.confirm import interactive
    from kctl.segment.verify.repair_index import carry_out, plan_repair

    plan = plan_repair(result.findings, interval_bytes=interval_bytes)
    for warning in plan.warnings:
        output.warn(warning)
    if not plan.to_write or dry_run or not (inv.yes or interactive()):
        _emit_repair(inv, RepairResult(True, plan.indexes, result))
        if plan.to_write:
            reason = "this was a dry run" if dry_run else "there is no terminal to confirm on"
            output.note(f"nothing was written: {reason}; write the indexes with --yes")
        _end(result, repairing=True)
        return
    if not inv.yes:
        for row in plan.to_write:
            output.note(_change_text(row))
    inv.confirm(f"Rewrite {counted(len(plan.to_write), 'index file')}?")
    done = carry_out(plan, assume_stopped=assume_stopped)
    after = _verify(files, options)
    _emit_repair(inv, RepairResult(False, done, after))
    _end(after)


def _change_text(row: IndexRepair) -> str:
    before = "no such file" if row.entries_before is None else counted(row.entries_before, "entry", "entries")
    note = "" if row.note is None else f"; {row.note}"
    return f"{row.file}: {before}, then {counted(row.entries_after, 'entry', 'entries')}{note}"


def _emit_repair(inv: Invocation, result: RepairResult) -> None:
    def tables() -> list[Table]:
        return [*_repair_tables(result.indexes), *_tables(result.verified)]

    inv.emit(result.indexes if inv.output == "csv" else result, tables, changed=any_changed(result.indexes))
    if inv.output in output.FOR_PEOPLE:
        output.write_line(_summary(result.verified))


def _repair_tables(rows: Sequence[IndexRepair]) -> list[Table]:
    columns = [
        Column("file"),
        Column("entries_before", "ENTRIES", align="right"),
        Column("entries_after", "NEW", align="right"),
        Column("result", style=lambda row: "yellow" if row["result"] == ItemResult.LEFT_ALONE else None),
        Column("note"),
    ]
    return [Table(columns, jsonable(rows), title="indexes", empty="no index needs a rebuild")]
