"""`kctl playbook run`, and what it shares with `resume`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands import confirm, output
from kctl.commands.interrupts import undone_when_terminated
from kctl.commands.invocation import Invocation, invocation
from kctl.commands.out_file import check_out, write_whole
from kctl.commands.playbook_report import LiveLines, tables
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
    from kctl.context import Target
    from kctl.journal import Journal
    from kctl.playbook.engine import Ending, Settings
    from kctl.playbook.model import Playbook
    from kctl.playbook.operations import Where
    from kctl.playbook.outside import Choice
    from kctl.playbook.parameters import Values
    from kctl.playbook.report import RunReport, StepReport
    from kctl.playbook.run_journal import RunState
    from kctl.secrets import Redactor

_CONNECT_S = 10.0
_SHOWN = 20  # steps in the question
_CLASSES = {1: NotHealthy, 2: UsageError, 3: ConnectionFailed, 4: Refused}

Secret = Annotated[
    list[str] | None, typer.Option("--secret", metavar="NAME=@FILE", help="A secret, from a file of yours alone.")
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
    from kctl.playbook import run_journal
    from kctl.playbook.engine import Settings
    from kctl.playbook.load import load_playbook
    from kctl.playbook.parameters import collect, read_values
    from kctl.playbook.selection import selection

    inv = invocation(ctx)
    check_report(junit)
    playbook = load_playbook(name)
    given = None if parameters is None else read_values(playbook, parameters)
    values = collect(playbook, parameter or (), file=given, secrets=secret or (), environment=os.environ)
    chosen = selection(playbook, from_, limit or ())
    check_person(ask=step)
    with hidden(values.redactor):
        place = place_of(inv, cluster_id_from(playbook))
        confirmed = frozenset[str]() if check else ask_once(inv, playbook, values, place, chosen.first, chosen.only)
        settings = Settings(check, diff, step, chosen, confirmed)
        header = None if check else header_of(playbook, values, place, chosen.first, chosen.only)
        held = None if header is None else run_journal.begin(header)
        try:
            carry(inv, playbook, values, place, settings, held, None, junit)
        finally:
            if held is not None:
                held.close()


# --- before -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """The run's cluster: how operations are told of it. target None: there is none; cluster_id None: it is silent."""

    where: Where
    target: Target | None
    cluster_id: str | None

    @property
    def name(self) -> str | None:
        return None if self.target is None else self.target.name


def check_report(junit: Path | None) -> None:
    """Raise UsageError when the report could not be written."""
    if junit is not None and str(junit) == "-":
        raise UsageError("--junit writes to a file, and «-» is none", hint="-o json writes to stdout")
    if junit is not None:
        check_out(junit)


def check_person(*, ask: bool) -> None:
    """Raise NotConfirmed for --step with nobody to ask."""
    if ask and not confirm.interactive():
        raise NotConfirmed("--step asks before each step, and there is no terminal to ask on", hint="leave --step out")


def cluster_id_from(playbook: Playbook) -> bool:
    """Whether any step is about the run's own cluster, as far as can be seen."""
    return any((each.is_operation and each.context is None) or each.kind == "include" for each in playbook.all_steps())


def place_of(inv: Invocation, ask_cluster: bool) -> Place:
    """The cluster that the options choose; none when nothing does. Raises what is wrong with the options."""
    from kctl.playbook.operations import Where

    try:
        target = inv.target()
    except UsageError:
        if inv.context is not None or inv.bootstrap_server is not None:
            raise
        target = None
    context = inv.context
    if target is not None and inv.bootstrap_server is None:
        context = target.name  # so that no step, and nobody else, can choose another one meanwhile
    where = Where(context, inv.bootstrap_server, inv.zookeeper, _absolute(inv.command_config), inv.timeout)
    return Place(where, target, _cluster_id(inv, target) if ask_cluster and target is not None else None)


def _absolute(path: str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().absolute())


def _cluster_id(inv: Invocation, target: Target) -> str | None:
    """None when it does not answer: a playbook may be what starts it."""
    from kctl.client import connect

    if not target.bootstrap_servers:
        return None
    try:
        with connect(target, timeout_s=min(_CONNECT_S, inv.timeout_s(_CONNECT_S))) as client:
            return client.metadata(()).cluster_id
    except ConnectionFailed:
        return None


def ask_once(
    inv: Invocation, playbook: Playbook, values: Values, place: Place, first: str | None, only: Sequence[str]
) -> frozenset[str]:
    """Say what the run changes, and where; ask. The names of protected contexts that were confirmed."""
    from kctl.playbook.overview import shown
    from kctl.playbook.selection import Selection
    from kctl.playbook.shipped import Found

    overview = shown(Found(playbook.source or Path(playbook.file), playbook.file, shipped=False), playbook)
    chosen = Selection(first, tuple(only))
    left_out = {each.id for each in playbook.steps if chosen.reason_against(playbook, each) is not None}
    steps = [each for each in overview.steps if each.id not in left_out]
    changing = [each for each in steps if each.changes]
    if not changing:
        return frozenset()
    where = f"on {place.name}" if place.name is not None else "on this machine"
    cluster = f" (cluster {place.cluster_id})" if place.cluster_id else ""
    output.note(f"{playbook.name} {where}{cluster}: {len(changing)} of {len(steps)} steps can change something")
    for each in changing[:_SHOWN]:
        part = "" if each.part == "steps" else f" ({each.part.replace('_', ' ')})"
        output.note(f"  {each.id}: {each.operation}{part}{' for each item' if each.loop else ''}")
    if len(changing) > _SHOWN:
        output.note(f"  and {len(changing) - _SHOWN} more")
    confirmed = set()
    inv.confirm(f"Run {playbook.name} {where}?", target=place.target)
    if place.target is not None and place.target.protected:
        confirmed.add(place.target.name)
    for other in _other_protected(playbook, values, place):
        inv.confirm(f"{playbook.name} acts on {other.name} as well. Run it?", target=other)
        confirmed.add(other.name)
    return frozenset(confirmed)


def _other_protected(playbook: Playbook, values: Values, place: Place) -> list[Target]:
    """The protected contexts that steps name, as far as that is known before the run. Others are refused when a step
    comes to them."""
    from kctl.context import resolve_target
    from kctl.playbook.expressions import render

    names = set()
    for step in playbook.all_steps():
        try:
            name = render(step.context, dict(values.values))
        except KctlError:
            continue
        if isinstance(name, str) and name != place.name:
            names.add(name)
    found = []
    for name in sorted(names):
        try:
            target = resolve_target(context=name)
        except KctlError:
            continue
        if target.protected:
            found.append(target)
    return found


def header_of(
    playbook: Playbook, values: Values, place: Place, first: str | None, only: Sequence[str]
) -> dict[str, Any]:
    """What a run's journal begins with."""
    from dataclasses import asdict

    from kctl import __version__

    public = values.public
    shown = values.redactor.value(public)
    return {
        "name": playbook.name,
        "file": playbook.file,
        "source": None if playbook.source is None else str(playbook.source.absolute()),
        "text": playbook.text,
        "digest": playbook.digest,
        "steps": [each.id for each in playbook.steps],
        "parameters": {name: value for name, value in shown.items() if value == public[name]},
        "secrets": sorted(values.secrets),
        "hidden": sorted(name for name, value in shown.items() if value != public[name]),
        "target": place.name,
        "where": {key: value for key, value in asdict(place.where).items() if key != "confirm_cluster"},
        "cluster_id": place.cluster_id,
        "from": first,
        "limit": list(only),
        "folder": str(Path.cwd()),
        "version": __version__,
    }


# --- the run ----------------------------------------------------------------------------------------------------------


class Asking:
    """The person at the terminal."""

    def __init__(self, inv: Invocation) -> None:
        self._inv = inv

    def confirm(self, question: str) -> None:
        confirm.confirm(question, yes=self._inv.yes)

    def choose(self, report: StepReport) -> Choice:
        from kctl.playbook.outside import Choice

        answer = confirm.ask_word(f"{report.operation}: [d]o it, [s]kip it, [e]nd the run? ")
        return {"d": Choice.DO, "do": Choice.DO, "y": Choice.DO, "yes": Choice.DO, "s": Choice.SKIP,
                "skip": Choice.SKIP}.get(answer.lower(), Choice.STOP)  # fmt: skip


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
    from kctl.deploy.process import run as run_program
    from kctl.playbook.engine import Engine
    from kctl.playbook.operations import operations
    from kctl.playbook.outside import Outside, RealClock
    from kctl.playbook.report_junit import junit as as_junit
    from kctl.playbook.run_journal import RunJournal

    clock = RealClock()
    outside = Outside(operations(), clock, run_program, Asking(inv), LiveLines())
    secrets = [] if place.target is None else sorted(place.target.security.secrets)
    engine = Engine(outside, RunJournal(held, state), settings, secrets=secrets)
    where = replace(place.where, confirm_cluster=place.name if place.name in settings.confirmed else None)
    began, started = clock.wall(), clock.now_s()
    with undone_when_terminated():
        ending = engine.run(playbook, values, where)
    report = _report(playbook, values, place, settings, held, ending, engine.redactor, began, clock.now_s() - started)
    if junit is not None:
        write_whole(junit, as_junit(report))
    inv.emit(report, lambda: tables(report), lambda: report.steps)
    _raise(report, ending, engine.redactor)


def _report(
    playbook: Playbook,
    values: Values,
    place: Place,
    settings: Settings,
    held: Journal | None,
    ending: Ending,
    redactor: Redactor,
    began: Any,
    seconds: float,
) -> RunReport:
    from datetime import timedelta

    from kctl.playbook.report import RunReport, counts_of, status_of

    def iso(moment: Any) -> str:
        return str(moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))

    failure = ending.failure
    return RunReport(
        run=None if held is None else held.path.stem,
        playbook=playbook.name,
        file=playbook.file,
        digest=playbook.digest,
        target=place.name,
        cluster_id=place.cluster_id,
        check=settings.check,
        status=status_of(ending.steps, exit_code=ending.exit_code, interrupted=ending.interrupted),
        exit_code=ending.exit_code,
        message=None if failure is None else redactor.text(f"{failure.step}: {failure.message}"),
        started_at=iso(began),
        ended_at=iso(began + timedelta(seconds=seconds)),
        duration_ms=round(seconds * 1000),
        parameters=redactor.value(values.public),
        counts=counts_of(ending.steps),
        steps=ending.steps,
    )


def _raise(report: RunReport, ending: Ending, redactor: Redactor) -> None:
    """End with the run's exit code, and say how it is gone on with."""
    on = None if report.run is None else f"kctl playbook resume {report.run} goes on there"
    if ending.interrupted:
        if on is not None:
            output.note(on)
        raise KeyboardInterrupt
    if ending.exit_code == ExitCode.OK:
        return
    said = "" if ending.failure is None or ending.failure.hint is None else redactor.text(ending.failure.hint)
    hint = "\n".join(line for line in (said, on) if line)
    error = _CLASSES.get(ending.exit_code, OperationFailed)
    raise error(f"{report.playbook} failed at {report.message}", hint=hint, details={"run": report.run})
