"""What the commands that carry reassignments out share: options, which run, progress, interruption, exit codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
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
from kctl.errors import NotFound, NotHealthy, OperationFailed, Refused, TimedOut

if TYPE_CHECKING:
    from kctl.base.journal import Journal
    from kctl.protocol.client import ClusterClient
    from kctl.reassign.plan_file.read import PlanFile
    from kctl.reassign.run.journals import Request
    from kctl.reassign.run.outcome import RunResult
    from kctl.reassign.run.prepare import Options, Prepared
    from kctl.reassign.run.progress import Progress
    from kctl.reassign.run.run_plan import RunPlan
    from kctl.reassign.run.run_state import Run
    from kctl.reassign.run.run_status import RunOverview, Status

_LINES_EVERY_S = 30.0
_BAR = 16  # beside the figures there is no room for more in 80 columns
_YIELD_S = 120.0
_MOST_WARNINGS = 20  # of a plan: a file from elsewhere may have any number

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


# --- which run --------------------------------------------------------------------------------------------------------


def cluster_id(client: ClusterClient) -> str:
    """The cluster's own id, under which its journals are."""
    found = client.metadata(()).cluster_id
    if found is None:
        raise OperationFailed("the cluster does not tell its id")
    return found


def unfinished_run(client: ClusterClient, *, reopen: bool = False) -> Path:
    """The journal of the run that has not ended. Raises NotFound.

    reopen: also of one that has ended, but had to leave throttles on brokers that were down.
    """
    from kctl.reassign.run import journals

    path = journals.unfinished(cluster_id(client))
    if path is None and reopen:
        path = _with_throttle_left(cluster_id(client))
    if path is None:
        raise NotFound(
            f"no reassignment of {client.target.name} that was begun on this machine is unfinished",
            hint="`kctl topic reassign status` shows what moves in the cluster; one that was begun elsewhere is gone on"
            " with there, and taken back here by `kctl topic reassign cancel --plan FILE`",
        )
    return path


def _with_throttle_left(cluster: str) -> Path | None:
    from kctl.reassign.run.run_status import last_run

    try:
        last = last_run(cluster)
    except NotFound:
        return None
    return last.path if last.state.throttle_left is not None else None


def refuse_while_unfinished(client: ClusterClient) -> None:
    """Raise Refused when a run of this cluster has not ended."""
    from kctl.reassign.run import journals

    other = journals.unfinished(cluster_id(client))
    if other is not None:
        journals.refuse_second(other)


def refuse_second_rollback(last: RunPlan) -> None:
    """Raise Refused when the last run was a rollback: its reverse would go forward again, under the name of going back.

    last: what that run was to do.
    """
    if last.kind == "rollback":
        raise Refused(
            f"the last run was itself a rollback, of {last.source}",
            hint="name the plan: `kctl topic reassign apply PLAN` goes forward again, `rollback PLAN` goes back",
        )


def take(path: Path, inv: Invocation, request: Request | None = None) -> Journal:
    """Hold the journal; with `request` after the process that holds it has done as asked.

    Raises Refused (Busy) without a request, TimedOut when that process does not let go.
    """
    from kctl.base import journal
    from kctl.reassign.run import journals

    if request is not None and journal.held(path):
        limit_s = None if request is journals.Request.PAUSE and inv.timeout is None else inv.timeout_s(_YIELD_S)
        journals.ask(path, request)
        with output.progress("waiting for the kctl that carries it out", lines_every_s=_LINES_EVERY_S) as bar:
            _until_free(path, limit_s, bar)
    elif journal.held(path):
        journals.refuse_second(path)
    held = journal.resume(path)
    journals.withdraw(path)  # not before it is held: a request to the process that holds it would be lost
    return held


def _until_free(path: Path, limit_s: float | None, bar: output.Progress) -> None:
    import time

    from kctl.base import journal
    from kctl.base.deadline import Deadline

    deadline = None if limit_s is None else Deadline(limit_s)
    while journal.held(path):
        if deadline is not None and deadline.expired:
            raise TimedOut(
                f"the kctl that carries out {path.stem} has not let go of it within {deadline.seconds:g} s",
                hint="it has been asked to: when it answers again, give this command once more; --timeout waits longer",
            )
        bar.update("waiting for the kctl that carries it out")
        time.sleep(0.2)


# --- beginning --------------------------------------------------------------------------------------------------------


def begin_and_carry_out(
    inv: Invocation, client: ClusterClient, file: PlanFile, chosen: Options, *, kind: str, source: str, dry_run: bool
) -> None:
    """Check a plan, show it, ask, carry it out, and show what came of it. Raises NotHealthy when it is not complete."""
    from kctl.cluster import unchanged
    from kctl.reassign.planner.warnings import about_one_replica, lowered_by
    from kctl.reassign.run import journals
    from kctl.reassign.run.prepare import prepare, preview
    from kctl.reassign.run.run import carry_out
    from kctl.reassign.run.run_status import with_what_was_left

    refuse_while_unfinished(client)
    prepared = prepare(client, file, chosen, kind=kind, source=source, cluster=client.target.name)
    for doubt in prepared.doubts:
        output.warn(doubt)
    for line in (*file.warnings[:_MOST_WARNINGS], *file.unmet[:_MOST_WARNINGS]):
        output.warn(f"plan: {line}")
    if not file.warnings:  # a file for Kafka's tool, or a rollback: it carries no warnings
        for line in about_one_replica(lowered_by(prepared.todo)):
            output.warn(line)
    if not file.complete and not file.unmet:
        output.warn("the plan does not reach its goals")
    shown = preview(prepared)
    ids = {r.topic: r.topic_id for r in prepared.plan.reassignments}
    basis = unchanged.topics(client, ids, ids=ids, replicas=True)
    if dry_run:
        inv.emit(shown, lambda: [preview_table(shown)], changed=bool(shown.moves or shown.reorders))
        output.note("nothing was changed (--dry-run)")
        return
    if not prepared.todo:
        _nothing_to_do(inv, client, prepared)
        return
    for line in sentences(shown):
        output.note(line)
    inv.confirm(question(shown, source), target=client.target, basis=basis)
    with journals.begin(with_what_was_left(prepared.plan)) as journal:
        carry(inv, client, journal, carry_out)


def _nothing_to_do(inv: Invocation, client: ClusterClient, prepared: Prepared) -> None:
    from kctl.reassign.run.outcome import result_without_run

    output.note(f"nothing to do: every partition of {prepared.plan.source} is where it is to be")
    show(inv, result_without_run(client, prepared.plan))


# --- carrying out -----------------------------------------------------------------------------------------------------


class _Terminal:
    """Shows a run's progress: one bar for the whole run."""

    def __init__(self, bar: output.Progress) -> None:
        self._bar = bar

    def progress(self, progress: Progress) -> None:
        self._bar.update(progress_line(progress), progress.done_bytes, progress.total_bytes or None)

    def note(self, line: str) -> None:
        output.note(line)

    def warn(self, line: str) -> None:
        output.warn(line)


def carry(inv: Invocation, client: ClusterClient, journal: Journal, act: Callable[[Run], None]) -> None:
    """Let `act` go on with the journal's run, and show what came of it."""
    from kctl.reassign.run.outcome import result_of
    from kctl.reassign.run.run_state import open_run

    with undone_when_terminated(), output.progress("reassigning", bar_width=_BAR, lines_every_s=_LINES_EVERY_S) as bar:
        run = open_run(client, journal, _Terminal(bar))
        with _interruptible(run):
            act(run)
            result = result_of(run)
    show(inv, result)


@contextmanager
def _interruptible(run: Run) -> Iterator[None]:
    """Ctrl-C says what goes on, and how to go on."""
    from kctl.reassign.run.run_state import WAYS_OUT

    try:
        yield
    except KeyboardInterrupt:
        if run.state.outcome is None:
            output.note(run.situation())
            output.note(WAYS_OUT)
        raise


def pause_run(inv: Invocation, client: ClusterClient, journal: Journal, *, now: bool) -> None:
    """Bring the journal's run to its pause, where that was not done yet, and show where it stands."""
    from kctl.reassign.run.outcome import result_of
    from kctl.reassign.run.run import pause
    from kctl.reassign.run.run_state import open_run

    with undone_when_terminated(), output.progress("pausing", bar_width=_BAR, lines_every_s=_LINES_EVERY_S) as bar:
        run = open_run(client, journal, _Terminal(bar))
        if run.state.outcome is None:
            with _interruptible(run):
                pause(run, now=now)
        result = result_of(run)
    inv.emit(result, lambda: tables(result), changed=True)
    if result.outcome == "paused":
        output.note("`kctl topic reassign resume` goes on")
    else:
        output.note("the run had ended before it could be paused")


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
    tell_status(status)
    return status


def tell_status(status: Status) -> None:
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
