"""The built-in steps of playbooks, as a table for the reader, lint, the schema and the docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OwnKind = Literal["text", "duration", "condition", "texts", "mapping", "flag", "choice"]


@dataclass(frozen=True, slots=True)
class OwnArgument:
    """An argument of a built-in step. kind: "condition" is an expression without braces; with `many` also a list of
    them. literal: expressions are not allowed."""

    name: str
    kind: OwnKind
    help: str
    required: bool = False
    many: bool = False
    literal: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnStep:
    """A built-in step. short: the argument set by a value that is not a mapping. one_of: exactly one of these arguments
    is required. free: accepts any names (`set`). changes: it may change something."""

    name: str
    summary: str
    arguments: tuple[OwnArgument, ...]
    short: str | None = None
    one_of: tuple[str, ...] = ()
    free: bool = False
    changes: bool = False

    def argument(self, name: str) -> OwnArgument | None:
        return next((each for each in self.arguments if each.name == name), None)


_ALL = (
    OwnStep(
        "wait",
        "Wait for a duration, or until a condition is true.",
        (
            OwnArgument("duration", "duration", "How long to wait, e.g. 30s."),
            OwnArgument("until", "condition", "Wait until this condition is true."),
            OwnArgument("every", "duration", "Time between evaluations of `until` (default: 1s)."),
            OwnArgument("timeout", "duration", "The step fails if `until` is not true after this time (default: 5m)."),
        ),
        short="duration",
        one_of=("duration", "until"),
    ),
    OwnStep(
        "assert",
        "Fail with exit code 1 unless all conditions are true.",
        (
            OwnArgument("that", "condition", "A condition, or a list of them.", required=True, many=True),
            OwnArgument("message", "text", "Error message if a condition is false."),
        ),
        short="that",
    ),
    OwnStep(
        "confirm",
        "Ask for confirmation; without a terminal, --yes is required.",
        (OwnArgument("message", "text", "The question.", required=True),),
        short="message",
    ),
    OwnStep(
        "run",
        "Run a program, without a shell.",
        (
            OwnArgument("argv", "texts", "The program and its arguments.", required=True, many=True),
            OwnArgument("env", "mapping", "Environment variables to add."),
            OwnArgument("cwd", "text", "Working directory (default: the playbook's folder)."),
            OwnArgument("repeatable", "flag", "The program may run again when the run is resumed.", literal=True),
            OwnArgument("parse", "choice", "Format of the output (default: text).", choices=("text", "json")),
        ),
        short="argv",
        changes=True,
    ),
    OwnStep(
        "include",
        "Run the steps of another playbook.",
        (
            OwnArgument("playbook", "text", "Shipped playbook, or path relative to this file.", True, literal=True),
            OwnArgument("parameters", "mapping", "Parameters of the included playbook."),
        ),
        short="playbook",
        changes=True,
    ),
    OwnStep("set", "Set variables.", (), free=True),
    OwnStep(
        "tell",
        "Print a one-line message, and include it in the report.",
        (OwnArgument("message", "text", "The message.", required=True),),
        short="message",
    ),
)
OWN_STEPS: dict[str, OwnStep] = {step.name: step for step in _ALL}
