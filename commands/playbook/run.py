"""`kctl playbook run`, and what it shares with `resume`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.playbook.before import (
    Place,
    ask_once,
    check_person,
    cluster_id_from,
    forget_parameters,
    header_of,
    place_of,
)
from kctl.commands.playbook.report import LiveLines, tables
from kctl.commands.terminal import confirm, output
from kctl.commands.terminal.interrupts import undone_when_terminated
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.out_file import JUNIT_REPORT, ask_to_replace, write_whole
from kctl.errors import (
    ConnectionFailed,
    ExitCode,
    KctlError,
    NotConfirmed,
    NotHealthy,
    OperationFailed,
    Refused,
    UsageError,
)

if TYPE_CHECKING:
    from kctl.base.journal import Journal
    from kctl.base.secrets import Redactor
    from kctl.playbook.model import Playbook
    from kctl.playbook.parameters import Values
    from kctl.playbook.run.engine import RunOutcome, Settings
    from kctl.playbook.run.report import RunReport, StepReport
    from kctl.playbook.run.run_environment import Choice
    from kctl.playbook.run.run_journal import RunState
    from kctl.protocol.security import Security

_GRACE_S = 5.0  # for a program that takes too long, or is interrupted, to end by itself
_CLASSES = {1: NotHealthy, 2: UsageError, 3: ConnectionFailed, 4: Refused}

Secret = Annotated[
    list[str] | None, typer.Option("--secret", metavar="NAME=@FILE", help="A secret, from a file or pipe; @- is stdin.")
]
Diff = Annotated[bool, typer.Option("--diff", help="Show each step's plan before it acts.")]
Ask = Annotated[bool, typer.Option("--step", help="Ask before each step.")]
JUnit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML, for CI.")]


def run(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="PLAYBOOK", help="A shipped one's name, or a file.")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="A parameter's value.")
    ] = None,
    parameters: Annotated[
        Path | None, typer.Option("--parameters", metavar="FILE", help="Values in YAML or JSON; - for stdin.")
    ] = None,
    secret: Secret = None,
    check: Annotated[
        bool, typer.Option("--check", "--dry-run", help="Show what would be done, change nothing.")
    ] = False,
    diff: Diff = False,
    step: Ask = False,
    from_: Annotated[str | None, typer.Option("--from", metavar="STEP", help="Begin with this step.")] = None,
    limit: Annotated[
        list[str] | None, typer.Option("--limit", metavar="STEP", help="Only these steps, and the final ones.")
    ] = None,
    junit: JUnit = None,
) -> None:
    """Run a playbook.

    It says what it will change and asks once. What it does is in a journal: `kctl playbook resume` goes on after a
    crash or a failure. Exit code: 0, 1 for a check that is not fulfilled, else as everywhere.

    Example: kctl playbook run topic-audit -p replication_factor=1 -p min_insync_replicas=1 --check
    """
    from kctl.playbook.load import load_playbook
    from kctl.playbook.parameters import collect, misspelt, read_values
    from kctl.playbook.run import run_journal
    from kctl.playbook.run.engine import Settings
    from kctl.playbook.run.selection import selection

    inv = invocation(ctx)
    ask_to_replace(inv, junit, "--junit", like=JUNIT_REPORT)
    playbook = load_playbook(name)
    given = None if parameters is None else read_values(playbook, parameters, warn=output.warn)
    for line in misspelt(playbook, os.environ):
        output.warn(line)
    values = collect(
        playbook, parameter or (), file=given, secrets=secret or (), environment=os.environ, warn=output.warn
    )
    forget_parameters()
    chosen = selection(playbook, from_, limit or ())
    check_person(ask=step)
    with hidden(values.redactor):
        place = place_of(inv, cluster_id_from(playbook))
        confirmed = {} if check else ask_once(inv, playbook, values, place, chosen.first, chosen.only)
        settings = Settings(check, diff, step, chosen, confirmed)
        header = None if check else header_of(playbook, values, place, chosen.first, chosen.only)
        held = None if header is None else run_journal.begin(header)
        try:
            carry(inv, playbook, values, place, settings, held, None, junit)
        finally:
            if held is not None:
                held.close()


# --- the run ----------------------------------------------------------------------------------------------------------


class Asking:
    """The person at the terminal."""

    def __init__(self, inv: Invocation) -> None:
        self._inv = inv

    def confirm(self, question: str) -> None:
        try:
            confirm.confirm(question, yes=self._inv.yes)
        except NotConfirmed as exc:
            if confirm.interactive():  # somebody said no; of the steps before it nothing is known here
                raise NotConfirmed("not confirmed", hint="") from exc
            raise

    def choose(self, report: StepReport) -> Choice:
        from kctl.playbook.run.run_environment import Choice

        answers = {"d": Choice.DO, "do": Choice.DO, "y": Choice.DO, "yes": Choice.DO, "s": Choice.SKIP,
                   "skip": Choice.SKIP, "e": Choice.STOP, "end": Choice.STOP, "": Choice.STOP}  # fmt: skip
        while True:
            answer = confirm.ask_word(f"{report.operation}: [d]o it, [s]kip it, or [E]nd the run? ").lower()
            if answer in answers:
                return answers[answer]


class hidden:  # noqa: N801 - used as a function
    """Errors that leave the block have no secrets in them, and no traceback that has."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor

    def __enter__(self) -> hidden:
        return self

    def __exit__(self, _kind: object, exc: BaseException | None, _traceback: object) -> None:
        if isinstance(exc, KctlError):
            exc.message = self.redactor.text(exc.message)
            exc.hint = None if exc.hint is None else self.redactor.text(exc.hint)
            exc.details = self.redactor.value(exc.details)
            exc.args = (exc.message,)
            exc.__cause__ = exc.__context__ = None
        elif isinstance(exc, Exception) and not isinstance(exc, (typer.Exit, BrokenPipeError)):
            raise OperationFailed(self.redactor.text(f"unexpected {type(exc).__name__}: {exc}")) from None


def carry(
    inv: Invocation,
    playbook: Playbook,
    values: Values,
    place: Place,
    settings: Settings,
    held: Journal | None,
    state: RunState | None,
    junit: Path | None,
) -> None:
    """Run it, report it; raises for an exit code that is not 0."""
    from functools import partial

    from kctl.deploy.process import run as run_program
    from kctl.playbook.operations import operations
    from kctl.playbook.run.engine import Engine
    from kctl.playbook.run.report_junit import junit as as_junit
    from kctl.playbook.run.run_environment import RealClock, RunEnvironment
    from kctl.playbook.run.run_journal import RunJournal

    clock = RealClock()
    environment = RunEnvironment(operations(), clock, partial(run_program, grace_s=_GRACE_S), Asking(inv), LiveLines())
    secrets = [] if place.target is None else sorted(_readable_secrets(place.target.security))
    engine = Engine(environment, RunJournal(held, state), settings, secrets=secrets)
    where = replace(place.where, confirm_cluster=settings.confirmed.get(place.key))
    began, started = clock.wall(), clock.now_s()
    with undone_when_terminated():
        outcome = engine.run(playbook, values, where)
    for each in outcome.steps:
        each.hide(engine.redactor)
    report = _report(playbook, values, place, settings, held, outcome, engine.redactor, began, clock.now_s() - started)
    unwritten = None
    try:
        if junit is not None:
            write_whole(junit, as_junit(report))
    except KctlError as exc:
        unwritten = exc
    try:
        inv.emit(report, lambda: tables(report), lambda: report.steps)
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads it; the exit code is the run's all the same
        output.discard(sys.stdout)
    _raise(report, outcome, engine.redactor)
    if unwritten is not None:
        raise unwritten


def _readable_secrets(security: Security) -> frozenset[str]:
    """Return the secrets to hide. An unreadable secret is left out, because no step has it either."""
    try:
        return security.secrets
    except UsageError:
        return frozenset()


def _report(
    playbook: Playbook,
    values: Values,
    place: Place,
    settings: Settings,
    held: Journal | None,
    outcome: RunOutcome,
    redactor: Redactor,
    began: Any,
    seconds: float,
) -> RunReport:
    from datetime import timedelta

    from kctl.playbook.run.report import RunReport, counts_of, status_of

    def iso(moment: Any) -> str:
        return str(moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))

    failure = outcome.failure
    return RunReport(
        run=None if held is None else held.path.stem,
        playbook=playbook.name,
        file=playbook.file,
        digest=playbook.digest,
        target=place.name,
        cluster_id=place.cluster_id,
        check=settings.check,
        status=status_of(outcome.steps, exit_code=outcome.exit_code, interrupted=outcome.interrupted),
        exit_code=outcome.exit_code,
        message=None if failure is None else redactor.text(f"{failure.step}: {failure.message}"),
        started_at=iso(began),
        ended_at=iso(began + timedelta(seconds=seconds)),
        duration_ms=round(seconds * 1000),
        parameters=redactor.value(values.public),
        counts=counts_of(outcome.steps),
        steps=outcome.steps,
    )


def _raise(report: RunReport, outcome: RunOutcome, redactor: Redactor) -> None:
    """End with the run's exit code, and say how it is gone on with."""
    on = None if report.run is None else f"kctl playbook resume {report.run} goes on there"
    if outcome.interrupted:
        if on is not None:
            output.note(on)
        raise KeyboardInterrupt
    if outcome.exit_code == ExitCode.OK:
        return
    said = "" if outcome.failure is None or outcome.failure.hint is None else redactor.text(outcome.failure.hint)
    hint = "\n".join(line for line in (said, on) if line)
    error = _CLASSES.get(outcome.exit_code, OperationFailed)
    raise error(f"{report.playbook} failed at {report.message}", hint=hint, details={"run": report.run})
