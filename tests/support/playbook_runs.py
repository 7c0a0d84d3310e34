"""Runs of playbooks without a broker: operations, programs, time and the user are simulated, the journal is real."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

from kctl.base import journal
from kctl.base.outcomes import ItemResult
from kctl.commands.terminal import operations as real
from kctl.deploy.process import Completed
from kctl.errors import KctlError, NotConfirmed, TimedOut
from kctl.playbook.load import examine_text
from kctl.playbook.model import Playbook
from kctl.playbook.operations import Operation, OperationResult, Where
from kctl.playbook.parameters import collect
from kctl.playbook.run import run_journal
from kctl.playbook.run.engine import Engine
from kctl.playbook.run.resume import check_names, check_unsure, run_to_resume
from kctl.playbook.run.run_environment import RunEnvironment, StepChoice
from kctl.playbook.run.run_journal import RunJournal
from kctl.playbook.run.run_settings import RunOutcome, RunSettings

Answer = Callable[[Mapping[str, Any]], Any]


class Killed(BaseException):
    """A kill -9, simulated within the process: nothing catches it."""


@dataclass
class World:
    """The simulated state, and what was done to it.

    answers: operation → an Outcome, a value, an error to raise, or a function of the arguments that returns one.
    A list of outcomes is used up, except for its last.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    programs: dict[str, Any] = field(default_factory=dict)
    said: dict[str, list[str]] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    calls: list[tuple[str, dict[str, Any], bool]] = field(default_factory=list)
    wheres: list[Where] = field(default_factory=list)
    stdins: list[bytes] = field(default_factory=list)
    ran: list[list[str]] = field(default_factory=list)
    environments: list[Mapping[str, str]] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    yes: bool = True
    choices: list[StepChoice | KeyboardInterrupt] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def done(self, name: str) -> int:
        """Return how often an operation, or a program by its first word, was executed."""
        operations = sum(called == name and not dry_run for called, _, dry_run in self.calls)
        return operations + sum(argv[0] == name for argv in self.ran)


class FakeOperations:
    """kctl's operations, which change only the World."""

    names = staticmethod(real.names)
    aliases = staticmethod(real.aliases)
    find = staticmethod(real.find)
    command_line = staticmethod(real.command_line)
    check = staticmethod(real.check)

    def __init__(self, world: World) -> None:
        self.world = world

    def run(
        self,
        operation: Operation,
        arguments: Mapping[str, Any],
        where: Where,
        *,
        dry_run: bool = False,
        stdin: bytes = b"",
        note: Callable[[str], None],
    ) -> OperationResult:
        world = self.world
        world.calls.append((operation.name, dict(arguments), dry_run))
        world.wheres.append(where)
        world.stdins.append(stdin)
        for line in world.said.get(operation.name, ()):
            note(line)
        if operation.name in world.answers:
            return _outcome(_next(world.answers, operation.name), arguments)
        if operation.name == "topic.create":
            return _reported([self._create(name, dry_run) for name in arguments["names"]])
        return _reported([])

    def _create(self, name: str, dry_run: bool) -> dict[str, Any]:
        exists = name in self.world.topics
        if not dry_run:
            self.world.topics.add(name)
        said = "exists" if exists else "would create" if dry_run else "created"
        return {"topic": name, "result": said}


def _next(answers: dict[str, Any], name: str) -> Any:
    found = answers[name]
    if isinstance(found, list) and found and all(isinstance(each, (OperationResult, KctlError)) for each in found):
        return found.pop(0) if len(found) > 1 else found[0]
    return found


def _outcome(answer: Any, arguments: Mapping[str, Any]) -> OperationResult:
    if callable(answer):
        answer = answer(arguments)
    if isinstance(answer, KctlError):
        return OperationResult(int(answer.exit_code), None, answer)
    if isinstance(answer, BaseException):
        raise answer
    return answer if isinstance(answer, OperationResult) else _reported(answer)


def _reported(value: Any) -> OperationResult:
    """Return a success whose rows say what has changed, as commands report it; a value without rows says nothing."""
    if not isinstance(value, list):
        return OperationResult(0, value)
    results = [row["result"] for row in value if isinstance(row, dict) and "result" in row]
    return OperationResult(0, value, changed=any(each.changed for each in ItemResult if each in results))


class _Clock:
    def __init__(self, world: World) -> None:
        self.world, self.time = world, 0.0

    def now_s(self) -> float:
        return self.time

    def wall(self) -> datetime:
        return datetime(2026, 11, 22, 10, 0, tzinfo=timezone.utc) + timedelta(seconds=self.time)

    def sleep(self, seconds: float) -> None:
        self.world.slept.append(seconds)
        self.time += seconds


class _Person:
    def __init__(self, world: World) -> None:
        self.world = world

    def confirm(self, question: str) -> None:
        self.world.asked.append(question)
        if not self.world.yes:
            raise NotConfirmed(f"not confirmed: {question}", hint="")

    def choose(self, report: Any) -> StepChoice:
        self.world.asked.append(report.step)
        choice = self.world.choices.pop(0)
        if isinstance(choice, KeyboardInterrupt):
            raise choice
        self.world.lines.append(f"asked {report.step}")
        return choice


class _Lines:
    """An observer that writes each event as a line."""

    def __init__(self, world: World) -> None:
        self.world = world

    def began(self, report: Any) -> None:
        self.world.lines.append(f"began {report.step}")

    def planned(self, report: Any, value: Any) -> None:
        self.world.lines.append(f"planned {report.step} {value}")

    def noted(self, report: Any, line: str) -> None:
        self.world.lines.append(f"noted {report.step} {line}")

    def ended(self, report: Any) -> None:
        self.world.lines.append(f"ended {report.step} {report.state.value}")

    def interrupted(self) -> None:
        self.world.lines.append("interrupted")


def environment_of(world: World) -> RunEnvironment:
    def run_program(
        argv: Sequence[str],
        *,
        timeout_s: float,
        env: Mapping[str, str] | None,
        cwd: Path | None,
        input: bytes | None,  # noqa: A002 - as process.run names it
    ) -> Completed:
        world.ran.append(list(argv))
        world.environments.append(dict(env or {}))
        world.limits.append(timeout_s)
        world.stdins.append(input or b"")
        answer = world.programs.get(argv[0], (0, b"", b""))
        if isinstance(answer, (TimedOut, KctlError, KeyboardInterrupt)):
            raise answer
        code, out, err = answer
        return Completed(tuple(argv), code, out, err)

    return RunEnvironment(
        FakeOperations(world), _Clock(world), run_program, _Person(world), _Lines(world), {"PATH": "/bin"}
    )


@lru_cache(maxsize=8)
def playbook_from(text: str, source: Path | None = None) -> Playbook:
    """Return a playbook that must have no problem."""
    playbook, problems = examine_text(text, source=source, file="p.yaml")
    assert problems == [], problems
    assert playbook is not None
    return playbook


def run(
    text: str,
    world: World,
    *given: str,
    source: Path | None = None,
    settings: RunSettings | None = None,
    secrets: Mapping[str, str] | None = None,
    journaled: bool = False,
    where: Where | None = None,
) -> RunOutcome:
    """Run a playbook to its end. secrets: by parameter. journaled: write the journal to kctl's state folder."""
    playbook = playbook_from(text, source)
    values = collect(playbook, given, environment=_environment(secrets))
    settings = settings or RunSettings()
    if not journaled or settings.check:
        return Engine(environment_of(world), RunJournal(None), settings).run(playbook, values, where or Where())
    header = {
        "name": playbook.name, "file": playbook.file, "source": None if source is None else str(source),
        "text": playbook.text, "digest": playbook.digest, "steps": [each.id for each in playbook.steps],
        "parameters": values.public, "secrets": sorted(values.secrets), "hidden": [], "target": "dev", "where": {},
        "cluster_id": "c1", "from": None, "limit": [], "folder": "/", "version": "0",
    }  # fmt: skip
    with run_journal.begin(header) as held:
        return Engine(environment_of(world), RunJournal(held), settings).run(playbook, values, Where())


def resume(
    world: World,
    *,
    redo: Iterable[str] = (),
    skip: Iterable[str] = (),
    secrets: Mapping[str, str] | None = None,
) -> RunOutcome:
    """Resume the only run. Raises Refused like the command."""
    path = run_to_resume(None)
    with journal.resume(path) as held:
        state = run_journal.replay(held.entries, path.name)
        source = state.header["source"]
        playbook = playbook_from(state.header["text"], None if source is None else Path(source))
        check_names(state, playbook, [*redo, *skip])
        state.prepare_resume(redo, skip)
        check_unsure(state)
        run_journal.record_resume(held, list(redo), list(skip))
        values = collect(playbook, (), file=state.header["parameters"], environment=_environment(secrets))
        return Engine(environment_of(world), RunJournal(held, state), RunSettings()).run(playbook, values, Where())


def _environment(secrets: Mapping[str, str] | None) -> dict[str, str]:
    return {f"KCTL_PARAM_{name.upper()}": value for name, value in (secrets or {}).items()}


def states(ending: RunOutcome) -> dict[str, str]:
    """Return the state of each step."""
    return {each.step: each.state.value if each.state else "" for each in ending.steps}


def messages(ending: RunOutcome) -> dict[str, str | None]:
    return {each.step: each.message for each in ending.steps}
