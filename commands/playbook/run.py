"""`kctl playbook run`, and the parts that `resume` shares with it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.playbook.before import (
    RunTarget,
    ask_once,
    forget_parameters,
    header_of,
    require_terminal,
    resolve_run_target,
    uses_own_cluster,
)
from kctl.commands.playbook.report import LiveLines, tables, title
from kctl.commands.terminal import confirm, output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
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
    from kctl.playbook.run.report import RunReport, StepReport
    from kctl.playbook.run.run_environment import StepChoice
    from kctl.playbook.run.run_journal import RecordedRun
    from kctl.playbook.run.run_settings import RunOutcome, RunSettings
    from kctl.protocol.security import Security

_GRACE_S = 5.0  # for a program to exit after its timeout or an interrupt; then kctl kills it
_CLASSES = {1: NotHealthy, 2: UsageError, 3: ConnectionFailed, 4: Refused}

Secret = Annotated[
    list[str] | None, typer.Option("--secret", metavar="NAME=@FILE", help="Secret from a file or pipe; @- is stdin.")
]
Diff = Annotated[bool, typer.Option("--diff", help="Show the plan of each step before it runs.")]
Ask = Annotated[bool, typer.Option("--step", help="Ask before each step.")]
JUnit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write a JUnit XML report for CI.")]


def run(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="PLAYBOOK", help="Name of a shipped playbook, or a file.")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="Set a parameter; repeatable.")
    ] = None,
    parameters: Annotated[
        Path | None, typer.Option("--parameters", metavar="FILE", help="YAML or JSON file with parameters; - is stdin.")
    ] = None,
    secret: Secret = None,
    check: Annotated[
        bool, typer.Option("--check", "--dry-run", help="Show what the run would do; change nothing.")
    ] = False,
    diff: Diff = False,
    step: Ask = False,
    from_: Annotated[str | None, typer.Option("--from", metavar="STEP", help="Start at this step.")] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="STEP", help="Run only this step and the final steps; repeatable."),
    ] = None,
    junit: JUnit = None,
) -> None:
    """Run a playbook.

    Shows the steps that change something and asks once for confirmation. A journal records each step; after a crash or
    a failure, `kctl playbook resume` resumes the run. Exits 1 if a check of the playbook failed.

    # Preview a shipped playbook with two parameters
    kctl playbook run topic-audit -p replication_factor=1 -p min_insync_replicas=1 --check
    """
    from kctl.playbook.load import load_playbook
    from kctl.playbook.parameters import collect, misspelled, read_values
    from kctl.playbook.run import run_journal
    from kctl.playbook.run.run_settings import RunSettings
    from kctl.playbook.run.selection import selection

    inv = invocation(ctx)
    ask_to_replace(inv, junit, "--junit", like=JUNIT_REPORT)
    playbook = load_playbook(name)
    file_values = None if parameters is None else read_values(playbook, parameters, warn=output.warn)
    for line in misspelled(playbook, os.environ):
        output.warn(line)
    values = collect(
        playbook, parameter or (), file=file_values, secrets=secret or (), environment=os.environ, warn=output.warn
    )
    forget_parameters()
    selected = selection(playbook, from_, limit or ())
    require_terminal(ask=step)
    with hidden(values.redactor):
        run_target = resolve_run_target(inv, uses_own_cluster(playbook))
        confirmed = {} if check else ask_once(inv, playbook, values, run_target, selected.first, selected.only)
        settings = RunSettings(check, diff, step, selected, confirmed)
        header = None if check else header_of(playbook, values, run_target, selected.first, selected.only)
        file = None if header is None else run_journal.begin(header)
        try:
            carry_out(inv, playbook, values, run_target, settings, file, None, junit)
        finally:
            if file is not None:
                file.close()


# --- the run ----------------------------------------------------------------------------------------------------------


class TerminalPrompt:
    """A user at the terminal."""

    def __init__(self, inv: Invocation) -> None:
        self._inv = inv

    def confirm(self, question: str) -> None:
        try:
            confirm.confirm(question, yes=self._inv.yes)
        except NotConfirmed as exc:
            if confirm.interactive():  # the answer was no; earlier steps may have changed something
                raise NotConfirmed("not confirmed", hint="") from exc
            raise

    def choose(self, report: StepReport) -> StepChoice:
        from kctl.playbook.run.run_environment import StepChoice

        do, skip, stop = StepChoice.DO, StepChoice.SKIP, StepChoice.STOP
        answers = {"d": do, "do": do, "y": do, "yes": do, "s": skip, "skip": skip, "e": stop, "end": stop, "": stop}
        while True:
            answer = confirm.ask_word(f"{report.operation}: [d]o it, [s]kip it, or [E]nd the run? ").lower()
            if answer in answers:
                return answers[answer]


class hidden:  # noqa: N801 - used as a function
    """A context manager that removes secrets from errors that leave the block."""

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


def carry_out(
    inv: Invocation,
    playbook: Playbook,
    values: Values,
    run_target: RunTarget,
    settings: RunSettings,
    file: Journal | None,
    state: RecordedRun | None,
    junit: Path | None,
) -> None:
    """Run the playbook and print the report. Raises the error for the exit code."""
    from functools import partial

    from kctl.deploy.process import run as run_program
    from kctl.playbook.operations import operations
    from kctl.playbook.run.engine import Engine
    from kctl.playbook.run.report_junit import junit as as_junit
    from kctl.playbook.run.run_environment import RealClock, RunEnvironment
    from kctl.playbook.run.run_journal import RunJournal

    clock = RealClock()
    environment = RunEnvironment(
        operations(), clock, partial(run_program, grace_s=_GRACE_S), TerminalPrompt(inv), LiveLines()
    )
    secrets = [] if run_target.target is None else sorted(_readable_secrets(run_target.target.security))
    engine = Engine(environment, RunJournal(file, state), settings, secrets=secrets)
    where = replace(run_target.where, confirm_cluster=settings.confirmed.get(run_target.key))
    started_at, start_s = clock.wall(), clock.now_s()
    with interrupt_when_terminated():
        outcome = engine.run(playbook, values, where)
    for each in outcome.steps:
        each.hide(engine.redactor)
    report = _report(
        playbook, values, run_target, settings, file, outcome, engine.redactor, started_at, clock.now_s() - start_s
    )
    unwritten = None
    try:
        if junit is not None:
            write_whole(junit, as_junit(report))
    except KctlError as exc:
        unwritten = exc
    try:
        if inv.output in output.FOR_PEOPLE and inv.output != "wide":  # LiveLines has printed the steps
            output.write_line(title(report))
        else:
            inv.emit(report, lambda: tables(report), lambda: report.steps)
        sys.stdout.flush()
    except BrokenPipeError:  # the exit code must still be the run's
        output.discard(sys.stdout)
    _raise(report, outcome, engine.redactor)
    if unwritten is not None:
        raise unwritten


def _readable_secrets(security: Security) -> frozenset[str]:
    """Return the secrets to hide. Unreadable ones are omitted, as no step can read them either."""
    try:
        return security.secrets
    except UsageError:
        return frozenset()


def _report(
    playbook: Playbook,
    values: Values,
    run_target: RunTarget,
    settings: RunSettings,
    file: Journal | None,
    outcome: RunOutcome,
    redactor: Redactor,
    started_at: Any,
    seconds: float,
) -> RunReport:
    from datetime import timedelta

    from kctl.playbook.run.report import RunReport, counts_of, status_of

    def iso(timestamp: Any) -> str:
        return str(timestamp.isoformat(timespec="milliseconds").replace("+00:00", "Z"))

    failure = outcome.failure
    return RunReport(
        run=None if file is None else file.path.stem,
        playbook=playbook.name,
        file=playbook.file,
        digest=playbook.digest,
        target=run_target.name,
        cluster_id=run_target.cluster_id,
        check=settings.check,
        status=status_of(outcome.steps, exit_code=outcome.exit_code, interrupted=outcome.interrupted),
        exit_code=outcome.exit_code,
        message=None if failure is None else redactor.text(f"{failure.step}: {failure.message}"),
        started_at=iso(started_at),
        ended_at=iso(started_at + timedelta(seconds=seconds)),
        duration_ms=round(seconds * 1000),
        parameters=redactor.value(values.public),
        counts=counts_of(outcome.steps),
        steps=outcome.steps,
    )


def _raise(report: RunReport, outcome: RunOutcome, redactor: Redactor) -> None:
    """Raise the error for the run's exit code, with a hint about resuming."""
    resume_hint = None if report.run is None else f"run `kctl playbook resume {report.run}` to resume it"
    if outcome.interrupted:
        if resume_hint is not None:
            output.note(resume_hint)
        raise KeyboardInterrupt
    if outcome.exit_code == ExitCode.OK:
        return
    cause_hint = "" if outcome.failure is None or outcome.failure.hint is None else redactor.text(outcome.failure.hint)
    hint = "\n".join(line for line in (cause_hint, resume_hint) if line)
    error = _CLASSES.get(outcome.exit_code, OperationFailed)
    raise error(f"{report.playbook} failed at {report.message}", hint=hint, details={"run": report.run})
