"""Common parts of the commands that run reassignments: options, progress, interrupts, exit codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.units import parse_duration_ms, parse_rate, parse_size
from kctl.commands.reassign.tables import (
    moved_note,
    next_steps,
    preview_table,
    progress_line,
    question,
    sentences,
    status_lines,
    status_tables,
    status_warnings,
    tables,
    unfinished,
)
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import NotHealthy

if TYPE_CHECKING:
    from kctl.cluster.unchanged import Basis
    from kctl.protocol.client import ClusterClient
    from kctl.reassign.run.operations import ApplyRequest
    from kctl.reassign.run.outcome import RunResult
    from kctl.reassign.run.prepare import Prepared, RunOptions
    from kctl.reassign.run.progress import RunProgress
    from kctl.reassign.run.run_state import RunListener
    from kctl.reassign.run.run_status import ReassignmentStatus, RunSummary

_LINES_EVERY_S = 30.0
_BAR = 8  # the figures leave no room for more in 80 columns
_WAITING = "waiting for the kctl process that runs it"

Throttle = Annotated[
    str | None,
    typer.Option(metavar="RATE", help="Replication limit per broker, e.g. 50MB/s (default: none)."),
]
MaxMoves = Annotated[
    int | None, typer.Option("--max-concurrent-moves", min=1, help="Replica copies per batch (default: as in PLAN).")
]
BatchBytes = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Bytes per batch, e.g. 100GB (default: as in PLAN).")
]
NoElect = Annotated[bool, typer.Option("--no-elect", help="Do not elect preferred leaders at the end.")]
StallAfter = Annotated[
    str, typer.Option(metavar="DURATION", help="Stop after this long without progress, e.g. 60s or 5m.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check and show the plan; change nothing.")]
RunDryRun = Annotated[bool, typer.Option("--dry-run", help="Show the run and what would be done; change nothing.")]


def options(
    throttle: str | None, max_moves: int | None, batch_bytes: str | None, *, no_elect: bool, stall_after: str
) -> RunOptions:
    """Return the options of apply and rollback as values. Raises UsageError."""
    from kctl.reassign.run.prepare import RunOptions

    return RunOptions(
        throttle_bytes=None if throttle is None else parse_rate(throttle),
        max_concurrent_moves=max_moves,
        batch_bytes=None if batch_bytes is None else parse_size(batch_bytes),
        elect=not no_elect,
        stall_after_ms=max(1000, parse_duration_ms(stall_after)),
    )


# --- operators --------------------------------------------------------------------------------------------------------


class TerminalOperator:
    """A terminal view of a run: warnings, notes, and one progress bar with a title."""

    def __init__(self, title: str = "reassigning") -> None:
        self._title = title

    def note(self, line: str) -> None:
        output.note(line)

    def warn(self, line: str) -> None:
        output.warn(line)

    @contextmanager
    def watching(self) -> Iterator[RunListener]:
        with (
            interrupt_when_terminated(),
            output.progress(self._title, bar_width=_BAR, lines_every_s=_LINES_EVERY_S) as bar,
        ):
            yield _BarListener(bar)

    @contextmanager
    def waiting(self) -> Iterator[Callable[[], None]]:
        with output.progress(_WAITING, lines_every_s=_LINES_EVERY_S) as bar:
            yield lambda: bar.update(_WAITING)


class _BarListener:
    def __init__(self, bar: output.Progress) -> None:
        self._bar = bar

    def phase(self, text: str) -> None:
        self._bar.update(text)

    def progress(self, progress: RunProgress) -> None:
        if progress.total_bytes:
            self._bar.update(progress_line(progress), progress.done_bytes, progress.total_bytes)
        else:  # nothing to copy: replicas are removed or reordered
            self._bar.update(progress_line(progress), progress.partitions_done, progress.partition_count)

    def note(self, line: str) -> None:
        output.note(line)

    def warn(self, line: str) -> None:
        output.warn(line)


def apply_request(inv: Invocation, client: ClusterClient, request: ApplyRequest) -> None:
    """Apply a plan and show the result. Raises NotHealthy if the run is not complete."""
    from kctl.reassign.run.operations import apply
    from kctl.reassign.run.outcome import RunResult
    from kctl.reassign.run.prepare import preview

    def confirm(prepared: Prepared, basis: Basis) -> None:
        summary = preview(prepared)
        for line in sentences(summary):
            output.note(line)
        inv.confirm(question(summary, request.source), target=client.target, basis=basis)

    outcome = apply(client, request, TerminalOperator(), confirm)
    if isinstance(outcome, RunResult):
        show(inv, outcome)
        return
    summary = preview(outcome)
    inv.emit(summary, lambda: [preview_table(summary)], changed=bool(summary.moves or summary.reorders))
    output.note("nothing was changed (--dry-run)")


def wait_limit_s(inv: Invocation) -> float | None:
    """Return --timeout in seconds, None if it is not set."""
    return None if inv.timeout is None else inv.timeout_s(0)


# --- results ----------------------------------------------------------------------------------------------------------


def show(inv: Invocation, result: RunResult) -> None:
    """Emit a result. Raises NotHealthy if it is not complete, Paused if the run is paused."""
    from kctl.reassign.run.run_state import Paused
    from kctl.reassign.run.steps import ReassignmentOutcome

    inv.emit(result, lambda: tables(result), changed=result.changed)
    if result.outcome is ReassignmentOutcome.CANCELLED and result.reached:
        output.note(moved_note(result))
    if result.outcome is ReassignmentOutcome.PAUSED:
        raise Paused(
            "paused by `kctl topic reassign pause`",
            hint="resume it with `kctl topic reassign resume`, or end it with `kctl topic reassign cancel`",
        )
    remaining = unfinished(result)
    if remaining:
        hints = []
        if result.throttles_left:
            hints.append("when the broker is back, run `kctl topic reassign resume` to restore the throttle")
        if result.failures or result.brokers_left:
            hints += next_steps(result)
        if result.not_elected:
            hints.append("run `kctl leader elect --preferred` to elect leaders")
        prefix = "canceled, but" if result.outcome is ReassignmentOutcome.CANCELLED else "not complete:"
        raise NotHealthy(f"{prefix} {'; '.join(remaining)}", hint="; ".join(hints))


def emit_status(inv: Invocation, client: ClusterClient, *, changed: bool | None = None) -> ReassignmentStatus:
    """Emit the state of the last run and of the cluster."""
    from kctl.reassign.run.run_status import read_status

    status = read_status(client)
    inv.emit(status, lambda: status_tables(status), changed=changed)
    report_status(status)
    return status


def report_status(status: ReassignmentStatus) -> None:
    """Print the warnings and notes of a status."""
    for line in status_warnings(status):
        output.warn(line)
    for line in status_lines(status):
        output.note(line)


def show_dry_run(inv: Invocation, client: ClusterClient, describe: Callable[[RunSummary], str]) -> None:
    """Emit the status, and print what the command would do with the run."""
    status = emit_status(inv, client, changed=True)
    if status.run is not None:
        output.note(describe(status.run))
    output.note("nothing was changed (--dry-run)")
