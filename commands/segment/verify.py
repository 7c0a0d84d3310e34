"""kctl segment verify: what is wrong with log files, and new indexes in the place of wrong ones."""

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

_REPAIR_HINT = "kctl segment verify --repair-index shows which indexes can be written anew"
_STYLES = {"error": "red", "warning": "yellow", "info": None}


@dataclasses.dataclass(frozen=True)
class RepairResult:
    """dry_run: nothing was written. verified: what verify says, after the indexes were written."""

    dry_run: bool
    indexes: Sequence[IndexRepair]
    verified: VerifyResult


def verify(
    ctx: typer.Context,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH…", help="Log dirs, partitions' folders, or files of a log.")
    ],
    deep: Annotated[bool, typer.Option("--deep", help="Decode every record too.")] = False,
    max_findings: Annotated[int, typer.Option(min=1, help="Show so many of one kind in one file.")] = 20,
    max_message_size: Size = None,
    repair_index: Annotated[
        bool, typer.Option("--repair-index", help="Show which index files to write anew; --yes writes them.")
    ] = False,
    index_interval_bytes: Annotated[
        int, typer.Option(min=0, help="Log between two new entries: the topic's index.interval.bytes.")
    ] = 4096,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --repair-index: only show it, never ask.")] = False,
    assume_stopped: Annotated[
        bool, typer.Option("--assume-stopped", help="Write even if the open files of other processes cannot be seen.")
    ] = False,
) -> None:
    """Check log files, and make wrong indexes anew.

    Batches, indexes, transactions, epochs, snapshots and checkpoints are checked against each other. Each finding says
    what it means for the broker that opens the files. Exits 1 when there are errors or warnings.

    --repair-index writes new .index, .timeindex and .txnindex files where they are wrong or missing, as a broker's
    recovery would. The broker must be stopped: while a process uses the files, by any path, it is refused. Old files
    are kept as NAME.old-TIME. Without --yes, and with nobody to ask, nothing is written.

    Example: kctl segment verify --deep /var/kafka/data/orders-0

    Example: kctl segment verify /mnt/*/kafka-data -o json

    Example: kctl segment verify --repair-index --yes /var/kafka/data/orders-0
    """
    inv = invocation(ctx)
    if dry_run and not repair_index:
        raise UsageError("--dry-run is for --repair-index", hint="without that nothing is written anyway")
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
        total, done, shown = size_of(paths) if sys.stderr.isatty() else 0, 0, ""

        def update(name: str, walked: int) -> None:
            nonlocal done, shown
            done, shown = done + walked, name or shown
            bar.update(f"verifying {shown}", done, total)

        yield update


# --- what was found ---------------------------------------------------------------------------------------------------


def _emit(inv: Invocation, result: VerifyResult) -> None:
    inv.emit(result.findings if inv.output == "csv" else result, lambda: list(_tables(result)), changed=False)
    if inv.output in output.FOR_PEOPLE:
        output.write_line(_summary(result))
    _end(result)


def _end(result: VerifyResult, *, repairing: bool = False) -> None:
    from kctl.segment.verify.findings import INDEX_CODES

    if result.denied:
        text = f"{counted(result.denied, 'file or folder', 'files or folders')} cannot be read: permission denied"
        raise NotAuthorized(text, hint="run kctl as the broker's user; what depends on them was not checked")
    if not result.healthy:
        raise NotHealthy(
            f"not healthy: {_found(result)}",
            hint=_REPAIR_HINT if not repairing and any(f.code in INDEX_CODES for f in result.findings) else None,
        )


def _tables(result: VerifyResult) -> Iterator[Table]:
    """A table for each file, and one that tells what each code means for a broker."""
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
        text = f"and {omitted.count} more; --max-findings shows more of them"
        by_file[omitted.file].append({"severity": omitted.severity.value, "code": omitted.code, "message": text})
    for file, rows in by_file.items():
        yield Table(columns, rows, title=file)
    meaning = {found.code: found.effect.value for found in result.findings}
    legend = [{"code": code, "effect": effect} for code, effect in meaning.items()]
    yield Table([Column("code"), Column("effect", "WHAT A BROKER DOES")], legend)


def _offsets(row: dict[str, Any]) -> str | int | None:
    """The offsets that are concerned, else the one where it is."""
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
        f"{counted(checked.records, 'record')}{'' if result.deep or result.healthy else ' (not decoded: --deep)'}",
        format_size(checked.size_bytes),
    ]
    fine = "fine" if result.deep else "no damage in headers, CRCs and indexes (records not decoded: --deep)"
    verdict = fine if result.healthy else _found(result)
    return f"{verdict}: {', '.join(part for part in parts if part)} checked"


def _found(result: VerifyResult) -> str:
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
            why = "this was a dry run" if dry_run else "there is nobody to ask"
            output.note(f"nothing was written: {why}; --yes writes the indexes")
        _end(result, repairing=True)
        return
    if not inv.yes:
        for row in plan.to_write:
            output.note(_what(row))
    inv.confirm(f"Write {counted(len(plan.to_write), 'index file')} anew?")
    done = carry_out(plan, assume_stopped=assume_stopped)
    after = _verify(files, options)
    _emit_repair(inv, RepairResult(False, done, after))
    _end(after)


def _what(row: IndexRepair) -> str:
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
    return [Table(columns, jsonable(rows), title="indexes", empty="no index needs to be written anew")]
