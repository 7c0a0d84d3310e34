"""The steps that playbooks have besides kctl's operations, as a table: reading, lint, schema and docs take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OwnKind = Literal["text", "duration", "condition", "texts", "mapping", "flag", "choice"]


@dataclass(frozen=True, slots=True)
class OwnArgument:
    """kind: «condition» is an expression without braces, or (many) a list of such. literal: no expressions."""

    name: str
    kind: OwnKind
    help: str
    required: bool = False
    many: bool = False
    literal: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnStep:
    """short: the argument that is meant when no mapping is given. one_of: exactly one of these is wanted. free: takes
    any names (`set`). changes: whether it may change something."""

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
        "Waits for a time, or until something holds.",
        (
            OwnArgument("duration", "duration", "How long, for example 30s."),
            OwnArgument("until", "condition", "Or until this is true."),
            OwnArgument("every", "duration", "How often it is looked at; 1s when not given."),
            OwnArgument(
                "timeout", "duration", "The longest wait for it, after which the step fails; 5m when not given."
            ),
        ),
        short="duration",
        one_of=("duration", "until"),
    ),
    OwnStep(
        "assert",
        "Fails with exit code 1 unless all conditions are true.",
        (
            OwnArgument("that", "condition", "A condition, or a list of them.", required=True, many=True),
            OwnArgument("message", "text", "What to say otherwise."),
        ),
        short="that",
    ),
    OwnStep(
        "confirm",
        "Asks before it goes on; without a terminal --yes is wanted.",
        (OwnArgument("message", "text", "The question.", required=True),),
        short="message",
    ),
    OwnStep(
        "run",
        "Runs a program: a list of arguments, no shell.",
        (
            OwnArgument("argv", "texts", "The program and its arguments.", required=True, many=True),
            OwnArgument("env", "mapping", "Variables for its environment, besides kctl's own."),
            OwnArgument("cwd", "text", "The folder that it runs in; the playbook's when not given."),
            OwnArgument("repeatable", "flag", "It may run a second time when a run is resumed.", literal=True),
            OwnArgument(
                "parse", "choice", "What its output is read as; text when not given.", choices=("text", "json")
            ),
        ),
        short="argv",
        changes=True,
    ),
    OwnStep(
        "include",
        "Runs another playbook's steps.",
        (
            OwnArgument(
                "playbook", "text", "A shipped one's name, or a file's path from this one.", required=True, literal=True
            ),
            OwnArgument("parameters", "mapping", "Its parameters."),
        ),
        short="playbook",
        changes=True,
    ),
    OwnStep("set", "Gives names to values.", (), free=True),
    OwnStep(
        "tell",
        "Says something, in one line: while it runs, and in the report.",
        (OwnArgument("message", "text", "What to say.", required=True),),
        short="message",
    ),
)
OWN_STEPS: dict[str, OwnStep] = {step.name: step for step in _ALL}
