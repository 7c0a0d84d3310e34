"""What the commands that carry reassignments out share: options, which run, progress, interruption, exit codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.units import parse_duration_ms, parse_rate, parse_size
from kctl.commands.reassign.tables import (
    preview_table,
    progress_line,
    question,
    sentences,
    status_lines,
    status_tables,
    status_warnings,
    stays,
    tables,
    ways_on,
    what_is_left,
)
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import undone_when_terminated
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import NotHealthy

if TYPE_CHECKING:
    from kctl.cluster.unchanged import Basis
    from kctl.protocol.client import ClusterClient
    from kctl.reassign.run.operations import ApplyRequest
    from kctl.reassign.run.outcome import RunResult
    from kctl.reassign.run.prepare import Options, Prepared
    from kctl.reassign.run.progress import Progress
    from kctl.reassign.run.run_state import Listener
    from kctl.reassign.run.run_status import RunOverview, Status

_LINES_EVERY_S = 30.0
_BAR = 16  # beside the figures there is no room for more in 80 columns
_WAITING = "waiting for the kctl that carries it out"

Throttle = Annotated[
    str | None,
    typer.Option(metavar="RATE", help="Bytes a second that each broker sends and receives for it: 50MB/s."),
]
MaxMoves = Annotated[
    int | None, typer.Option("--max-concurrent-moves", min=1, help="Replicas copied at a time: the size of a batch.")
]
BatchBytes = Annotated[str | None, typer.Option(metavar="SIZE", help="What a batch copies at most: 100GB.")]
NoElect = Annotated[bool, typer.Option("--no-elect", help="Leave leaders as they are at the end.")]
StallAfter = Annotated[
    str, typer.Option(metavar="DURATION", help="Stop when nothing gets nearer to its end for so long.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check and show, change nothing.")]


def options(
    throttle: str | None, max_moves: int | None, batch_bytes: str | None, *, no_elect: bool, stall_after: str
) -> Options:
    """The options of apply and rollback as values. Raises UsageError."""
    from kctl.reassign.run.prepare import Options

    return Options(
        throttle_bytes=None if throttle is None else parse_rate(throttle),
        max_concurrent_moves=max_moves,
        batch_bytes=None if batch_bytes is None else parse_size(batch_bytes),
        elect=not no_elect,
        stall_after_ms=max(1000, parse_duration_ms(stall_after)),
    )


# --- operating --------------------------------------------------------------------------------------------------------


class TerminalOperator:
    """Shows a run on the terminal: warnings, notes, and one bar for the whole run. title: of the bar."""

    def __init__(self, title: str = "reassigning") -> None:
        self._title = title

    def note(self, line: str) -> None:
        output.note(line)

    def warn(self, line: str) -> None:
        output.warn(line)

    @contextmanager
    def watching(self) -> Iterator[Listener]:
        with (
            undone_when_terminated(),
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

    def progress(self, progress: Progress) -> None:
        self._bar.update(progress_line(progress), progress.done_bytes, progress.total_bytes or None)

    def note(self, line: str) -> None:
        output.note(line)

    def warn(self, line: str) -> None:
        output.warn(line)


def apply_request(inv: Invocation, client: ClusterClient, request: ApplyRequest) -> None:
    """Carry a plan out, and show what came of it. Raises NotHealthy if it is not complete."""
    from kctl.reassign.run.operations import apply
    from kctl.reassign.run.outcome import RunResult
    from kctl.reassign.run.prepare import preview

    def confirm(prepared: Prepared, basis: Basis) -> None:
        shown = preview(prepared)
        for line in sentences(shown):
            output.note(line)
        inv.confirm(question(shown, request.source), target=client.target, basis=basis)

    outcome = apply(client, request, TerminalOperator(), confirm)
    if isinstance(outcome, RunResult):
        show(inv, outcome)
        return
    shown = preview(outcome)
    inv.emit(shown, lambda: [preview_table(shown)], changed=bool(shown.moves or shown.reorders))
    output.note("nothing was changed (--dry-run)")


def wait_limit_s(inv: Invocation) -> float | None:
    """Return --timeout in seconds, None without."""
    return None if inv.timeout is None else inv.timeout_s(0)


# --- results ----------------------------------------------------------------------------------------------------------


def show(inv: Invocation, result: RunResult) -> None:
    """Emit a result. Raises NotHealthy for one that is not complete, or left something."""
    from kctl.reassign.run.run_state import Paused

    inv.emit(result, lambda: tables(result), changed=result.changed)
    if result.outcome == "cancelled" and result.reached:
        output.note(stays(result))
    if result.outcome == "paused":
        raise Paused(
            "paused by `kctl topic reassign pause`",
            hint="`kctl topic reassign resume` goes on, `kctl topic reassign cancel` ends it",
        )
    left = what_is_left(result)
    if left:
        hints = []
        if result.throttles_left:
            hints.append("when it is back, `kctl topic reassign resume` restores it")
        if result.failures or result.brokers_left:
            hints += ways_on(result)
        if result.not_elected:
            hints.append("`kctl leader elect --preferred` elects leaders")
        what = "cancelled, but" if result.outcome == "cancelled" else "not complete:"
        raise NotHealthy(f"{what} {'; '.join(left)}", hint="; ".join(hints))


def emit_status(inv: Invocation, client: ClusterClient, *, changed: bool | None = None) -> Status:
    """What the journal says and what the cluster does."""
    from kctl.reassign.run.run_status import read_status

    status = read_status(client)
    inv.emit(status, lambda: status_tables(status), changed=changed)
    report_status(status)
    return status


def report_status(status: Status) -> None:
    """What stands beside its tables."""
    for line in status_warnings(status):
        output.warn(line)
    for line in status_lines(status):
        output.note(line)


def show_dry_run(inv: Invocation, client: ClusterClient, would: Callable[[RunOverview], str]) -> None:
    """Emit the status, and say what would be done with the run."""
    status = emit_status(inv, client, changed=True)
    if status.run is not None:
        output.note(would(status.run))
    output.note("nothing was changed (--dry-run)")
