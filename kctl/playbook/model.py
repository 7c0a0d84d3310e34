"""The model of a playbook."""

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

# The fields of a registered step, and of `failure` in on_failure and finally.
REGISTER_FIELDS = ("value", "exit_code", "status", "error", "changed")
FAILURE_FIELDS = ("step", "message", "exit_code")
# Names defined by the run. Parameters, registers and variables must not use them.
RESERVED_NAMES = {
    "item": "the item of the loop",
    "index": "its index in the loop, starting at 0",
    "run_id": "the id of the run, unchanged when the run is resumed",
    "failure": "the failed step: step, message, exit_code; null if no step failed",
}


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a file. line and column start at 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem and its position. hint: the likely fix. warning: the playbook runs anyway."""

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
    """A parameter of a playbook.

    default: None if the parameter has none, and is therefore required, or if the default is null. secret: never stored
    or displayed.
    """

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
    """A step of a playbook.

    kind: an operation ("topic.create") or a key of kctl.playbook.builtin_step_table. arguments: as in the file, with
    their expressions; the short form is expanded (`wait: 5s` is {duration: 5s}). when, until: expressions without
    braces. loop: a list, or a string with one expression. retries, delay_s, timeout, context, stdin: strings may
    contain expressions; see kctl.playbook.run.step_settings. accept: exit codes that count as success. dry_run: run the
    operation as a dry run.
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
    body: Mapping[str, Any] = field(repr=False, compare=False)  # the step's own mapping, for positions

    @property
    def is_operation(self) -> bool:
        """Return True if the step is an operation of kctl, not a built-in step."""
        from kctl.playbook.builtin_step_table import BUILTIN_STEPS

        return self.kind not in BUILTIN_STEPS


@dataclass(frozen=True, slots=True)
class Playbook:
    """A playbook.

    source: the file; None if it was not read from a file. text: the content as read; digest: its SHA-256 in hex.
    unread: names that unreadable steps would register; None if all steps are readable.
    """

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
        """Return the steps of all three parts."""
        return (*self.steps, *self.on_failure, *self.finally_)

    def parameter(self, name: str) -> Parameter | None:
        return next((each for each in self.parameters if each.name == name), None)
