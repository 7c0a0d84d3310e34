"""What a playbook is, once it has been read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

VERSION = 1
MAX_INCLUDE_DEPTH = 8

ParameterType = Literal["string", "integer", "number", "boolean", "list", "mapping", "duration", "size"]
PARAMETER_TYPES: tuple[ParameterType, ...] = (
    "string", "integer", "number", "boolean", "list", "mapping", "duration", "size",
)  # fmt: skip
OnError = Literal["fail", "continue"]

# What a registered step has, and `failure` in on_failure and finally.
REGISTERED = ("value", "exit_code", "status", "error", "changed")
FAILURE = ("step", "message", "exit_code")
# Names that the run gives; no parameter, register or variable may be called like them.
GIVEN = {
    "item": "the item of the loop",
    "index": "its number in the loop, from 0",
    "run_id": "the run's own name, also when it is resumed",
    "failure": "what failed: step, message, exit_code; null when nothing did",
}


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, where, and what was probably meant. warning: it runs all the same."""

    file: str
    line: int
    column: int
    message: str
    hint: str | None = None
    warning: bool = False

    @property
    def position(self) -> Position:
        return Position(self.file, self.line, self.column)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that a run is given. default: None when there is none, and then it is required, unless it is null
    itself. secret: never stored, never shown."""

    name: str
    type: ParameterType
    default: Any
    required: bool
    secret: bool
    description: str
    choices: tuple[Any, ...]
    minimum: float | None
    maximum: float | None
    where: Position


@dataclass(frozen=True, slots=True)
class Step:
    """One step. kind: an operation («topic.create»), or one of kctl.playbook.own_steps. arguments: as written, with
    their expressions; a short form written out (`wait: 5s` is {duration: 5s}).

    when, until: expressions without braces. loop: a list, or a text that is one expression. retries, delay_s, timeout,
    context, stdin: a text may have expressions in it; see kctl.playbook.run.step_settings. accept: exit codes that are
    no failure. dry_run: the operation only tells what it would do.
    """

    id: str
    name: str
    kind: str
    arguments: Mapping[str, Any]
    when: str | bool | None
    loop: Any
    register: str | None
    until: str | bool | None
    retries: int | str
    delay_s: float | str
    timeout: str | None
    on_error: OnError
    accept: tuple[int, ...]
    context: str | None
    stdin: str | None
    dry_run: bool
    where: Position
    written: Mapping[str, Any] = field(repr=False, compare=False)  # the step's own mapping, for places

    @property
    def is_operation(self) -> bool:
        """Whether it is an operation of kctl, and no step of playbooks' own."""
        from kctl.playbook.own_steps import OWN_STEPS

        return self.kind not in OWN_STEPS


@dataclass(frozen=True, slots=True)
class Playbook:
    """source: the file; None for what came from elsewhere. text: as it was read; digest: its SHA-256 in hex. unread:
    what steps that could not be read would register; None when all could be."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    steps: tuple[Step, ...]
    on_failure: tuple[Step, ...]
    finally_: tuple[Step, ...]
    source: Path | None
    file: str
    text: str = field(repr=False)
    digest: str
    unread: frozenset[str] | None = None

    def all_steps(self) -> tuple[Step, ...]:
        """Those of all three parts."""
        return (*self.steps, *self.on_failure, *self.finally_)

    def parameter(self, name: str) -> Parameter | None:
        return next((each for each in self.parameters if each.name == name), None)
