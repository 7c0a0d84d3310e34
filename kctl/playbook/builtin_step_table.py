"""The built-in steps of playbooks, as a table for the reader, lint, the schema and the docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BuiltinArgumentKind = Literal["text", "duration", "condition", "texts", "mapping", "flag", "choice"]


@dataclass(frozen=True, slots=True)
class BuiltinArgument:
    """An argument of a built-in step.

    kind: "condition" is an expression without braces; with `many` also a list of them. literal: expressions are not
    allowed.
    """

    name: str
    kind: BuiltinArgumentKind
    help: str
    required: bool = False
    many: bool = False
    literal: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BuiltinStep:
    """A built-in step.

    short: the argument set by a value that is not a mapping. one_of: exactly one of these arguments is required. free:
    accepts any names (`set`). changes: it may change something.
    """

    name: str
    summary: str
    arguments: tuple[BuiltinArgument, ...]
    short: str | None = None
    one_of: tuple[str, ...] = ()
    free: bool = False
    changes: bool = False

    def argument(self, name: str) -> BuiltinArgument | None:
        return next((each for each in self.arguments if each.name == name), None)


_ALL = (
    BuiltinStep(
        "wait",
        "Wait for a duration, or until a condition is true.",
        (
            BuiltinArgument("duration", "duration", "How long to wait, e.g. 30s."),
            BuiltinArgument("until", "condition", "Wait until this condition is true."),
            BuiltinArgument("every", "duration", "Time between evaluations of `until` (default: 1s)."),
            BuiltinArgument(
                "timeout", "duration", "The step fails if `until` is not true after this time (default: 5m)."
            ),
        ),
        short="duration",
        one_of=("duration", "until"),
    ),
    BuiltinStep(
        "assert",
        "Fail with exit code 1 unless all conditions are true.",
        (
            BuiltinArgument("that", "condition", "A condition, or a list of them.", required=True, many=True),
            BuiltinArgument("message", "text", "Error message if a condition is false."),
        ),
        short="that",
    ),
    BuiltinStep(
        "confirm",
        "Ask for confirmation; without a terminal, --yes is required.",
        (BuiltinArgument("message", "text", "The question.", required=True),),
        short="message",
    ),
    BuiltinStep(
        "run",
        "Run a program, without a shell.",
        (
            BuiltinArgument("argv", "texts", "The program and its arguments.", required=True, many=True),
            BuiltinArgument("env", "mapping", "Environment variables to add."),
            BuiltinArgument("cwd", "text", "Working directory (default: the playbook's folder)."),
            BuiltinArgument("repeatable", "flag", "The program may run again when the run is resumed.", literal=True),
            BuiltinArgument("parse", "choice", "Format of the output (default: text).", choices=("text", "json")),
        ),
        short="argv",
        changes=True,
    ),
    BuiltinStep(
        "include",
        "Run the steps of another playbook.",
        (
            BuiltinArgument("playbook", "text", "Shipped playbook, or path relative to this file.", True, literal=True),
            BuiltinArgument("parameters", "mapping", "Parameters of the included playbook."),
        ),
        short="playbook",
        changes=True,
    ),
    BuiltinStep("set", "Set variables.", (), free=True),
    BuiltinStep(
        "tell",
        "Print a one-line message, and include it in the report.",
        (BuiltinArgument("message", "text", "The message.", required=True),),
        short="message",
    ),
)
BUILTIN_STEPS: dict[str, BuiltinStep] = {step.name: step for step in _ALL}
