"""kctl history snapshot: collect snapshots of a cluster into a store. `kctl spark snapshot` is an alias."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.history.options import store_folder
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import incomplete
from kctl.errors import ExitCode, OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.history.snapshots.commit import PassReport
    from kctl.history.snapshots.run import Schedule

_REQUEST_TIMEOUT_S = 10.0
_MIN_INTERVAL_S = 1.0
_MAX_WARNINGS = 3
_DOWN = re.compile(r"broker ([0-9]+) is down")


@dataclass(frozen=True)
class SnapshotOptions:
    """Options of `kctl history snapshot` and its alias `kctl spark snapshot`."""

    store: Annotated[
        Path, typer.Option(metavar="DIR", parser=store_folder, help="Folder for the snapshots; created if missing.")
    ]
    once: Annotated[bool, typer.Option("--once", help="Collect one snapshot and exit.")] = False
    every: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Interval between snapshots (default: 60s).")
    ] = None
    for_: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="Stop after this time (default: run until Ctrl-C).")
    ] = None
    keep: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Remove snapshots older than this, in whole hours (default: keep all)."),
    ] = None


@takes_options(SnapshotOptions)
def snapshot(ctx: typer.Context, options: SnapshotOptions) -> None:
    """Collect snapshots of a cluster into a store.

    A snapshot has offsets, groups, logs, log dirs and configs. Reports over time read the store. A snapshot is
    stored completely or not at all. Snapshots of past hours are compacted. With -o json, prints one line per
    snapshot.

    # Collect a snapshot each minute for an hour
    kctl history snapshot --store ./snapshots --every 60s --for 1h
    """
    collect_snapshots(invocation(ctx), options)


def collect_snapshots(inv: Invocation, options: SnapshotOptions) -> None:
    """Run `kctl history snapshot`."""
    from kctl.history.packages import need_packages

    store, once = options.store, options.once
    schedule, keep_ms = _schedule(inv, once=once, every=options.every, for_=options.for_), _keep_ms(options.keep)
    need_packages()
    from kctl.history.snapshots import lock
    from kctl.history.snapshots.collect import Collector
    from kctl.history.snapshots.run import run
    from kctl.history.snapshots.store import create_store

    with interrupt_when_terminated(), inv.connect(timeout_s=_REQUEST_TIMEOUT_S) as client:
        cluster_id = client.metadata(()).cluster_id
        create_store(store, cluster_id)
        inv.report_change(changed=True)
        with lock.hold(store):
            collector = Collector(cluster_id)
            passes = run(
                create_store(store, cluster_id),
                lambda at_ms: collector.take_pass(client, at_ms),
                schedule,
                warn=output.warn,
                keep_ms=keep_ms,
            )
            if once:
                (report,) = passes
                _report_once(inv, report)
            else:
                _follow(inv, passes)


def _schedule(inv: Invocation, *, once: bool, every: str | None, for_: str | None) -> Schedule:
    from kctl.base.units import parse_duration_ms
    from kctl.history.snapshots.run import Schedule

    if once:
        if every is not None or for_ is not None:
            raise UsageError("--once does not go with --every or --for")
        return Schedule()
    if inv.output not in output.FOR_PEOPLE | {"json"}:
        raise UsageError("continuous passes are shown as a table or with -o json", hint="use --once for other formats")
    every_s = parse_duration_ms(every or "60s") / 1000
    if every_s < _MIN_INTERVAL_S:
        raise UsageError(f"--every must be at least {_MIN_INTERVAL_S:g}s")
    for_s = None if for_ is None else parse_duration_ms(for_) / 1000
    if for_s is not None and for_s <= 0:
        raise UsageError("--for must be greater than 0")
    return Schedule(every_s, for_s)


def _keep_ms(keep: str | None) -> int | None:
    from kctl.base.units import parse_duration_ms

    if keep is None:
        return None
    keep_ms = parse_duration_ms(keep)
    if keep_ms < 3_600_000:
        raise UsageError("--keep must be at least 1h: snapshots are removed in whole hours")
    return keep_ms


def _report_once(inv: Invocation, report: PassReport) -> None:
    if not report.stored:
        raise OperationFailed(f"the pass was not stored: {report.error}")
    inv.emit(report, lambda: [Table(_columns(), [jsonable(report)])], changed=True)
    if report.failures:
        raise incomplete(report.failures)


def _follow(inv: Invocation, passes: Any) -> None:
    """Show each pass as it completes. Ctrl-C exits with 130 and keeps the stored passes."""
    show = _pass_printer(inv)
    total = incomplete_passes = unstored = 0
    try:
        for report in passes:
            show(report)
            total += 1
            unstored += not report.stored
            incomplete_passes += report.stored and not report.complete
    except KeyboardInterrupt:
        passes.close()
        stored = total - unstored
        output.note(f"{counted(stored, 'pass', 'passes')} {'is' if stored == 1 else 'are'} in the store")
        raise typer.Exit(int(ExitCode.INTERRUPTED)) from None
    if unstored or incomplete_passes:
        parts = [f"{unstored} {'was' if unstored == 1 else 'were'} not stored"] if unstored else []
        parts += (
            [f"{incomplete_passes} {'was' if incomplete_passes == 1 else 'were'} incomplete"]
            if incomplete_passes
            else []
        )
        raise OperationFailed(
            f"of {counted(total, 'pass', 'passes')} {' and '.join(parts)}",
            hint="the other passes are in the store",
        )


def _pass_printer(inv: Invocation) -> Callable[[PassReport], None]:
    before: list[str] = []

    def as_json(report: PassReport) -> None:
        output.write_json_line(report)
        sys.stdout.flush()

    def as_text(report: PassReport) -> None:
        new_failures = [text for text in report.failures if text not in before]
        output.write_line(_line(report, as_before=bool(report.failures) and not new_failures))
        sys.stdout.flush()
        if report.missed:
            were = "pass was" if report.missed == 1 else "passes were"
            why = f": {report.missed_because}" if report.missed_because else ""
            output.warn(f"{report.missed} {were} skipped before it{why}")
        for failure in new_failures[:_MAX_WARNINGS]:
            output.warn(failure)
        if len(new_failures) > _MAX_WARNINGS:
            output.warn(f"and {len(new_failures) - _MAX_WARNINGS} more; use -o json to see all")
        if report.stored:  # a pass that was not stored says nothing about the cluster
            for text in _recovered(before, report):
                output.note(text)
            before[:] = report.failures

    return as_json if inv.output == "json" else as_text


def _recovered(before: Sequence[str], report: PassReport) -> list[str]:
    """Return notes on what the previous pass could not read and this pass could."""
    down, still = ({match[1] for text in texts if (match := _DOWN.match(text))} for texts in (before, report.failures))
    notes = [f"broker {node} responds again" for node in sorted(down - still, key=int)]
    if before and report.complete:
        notes.append("the pass is complete again")
    return notes


def _line(report: PassReport, *, as_before: bool = False) -> str:
    from kctl.base.units import format_duration, format_size

    at = f"{report.at:%Y-%m-%d %H:%M:%S}"
    if not report.stored:
        return f"{at}  not stored: {report.error}"
    return (
        f"{at}  {counted(report.group_count, 'group')}, {counted(report.commits, 'commit')},"
        f" {counted(report.partition_count, 'partition')}, {format_size(report.size_bytes)}"
        f" in {format_duration(report.duration_ms + report.storing_ms)}"
        f"{'' if report.complete else ', incomplete'}{' as before' if as_before else ''}"
    )


def _columns() -> list[Column]:
    from kctl.base.units import format_duration, format_size

    return [
        Column("at"),
        Column("group_count", "GROUPS", align="right"),
        Column("commits", align="right"),
        Column("partition_count", "PARTITIONS", align="right"),
        Column("replica_count", "REPLICAS", align="right"),
        Column("size_bytes", "SIZE", show=format_size, align="right"),
        Column("duration_ms", "TIME", show=format_duration, align="right"),
        Column("complete"),
    ]
