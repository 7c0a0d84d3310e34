"""Operations: what a step of a playbook can do. Each is a command of kctl, so a playbook cannot drift from the CLI.

`topic.create` is `kctl topic create`, its arguments are that command's arguments and options by their names in
snake_case, its result is what `-o json` prints. The commands are found by name, in the one module that knows their
tree; this is the only place where the library reaches for `kctl.commands`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from kctl.errors import KctlError
from kctl.playbook.own_steps import OWN_STEPS

if TYPE_CHECKING:
    from kctl.playbook.model import Step

Kind = Literal["text", "integer", "number", "flag"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an operation.

    many: takes a list; of texts like KEY=VALUE (`pairs`) a mapping as well. default: None when there is none.
    positional: stands without an option on the command line. choices: empty when any value goes.
    """

    name: str
    kind: Kind
    required: bool
    many: bool
    pairs: bool
    positional: bool
    default: Any
    metavar: str
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Operation:
    """name: "topic.create". command: ("topic", "create"). changes: it changes something when it is not a dry run.
    dry_run: it can tell what it would do. changes_with: the argument without which it changes nothing."""

    name: str
    command: tuple[str, ...]
    summary: str
    arguments: tuple[Argument, ...]
    changes: bool
    dry_run: bool
    changes_with: str | None = None

    def can_change(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether it may change something with these arguments."""
        return self.changes and (self.changes_with is None or arguments.get(self.changes_with) not in (None, False))

    def argument(self, name: str) -> Argument | None:
        return next((each for each in self.arguments if each.name == name), None)


@dataclass(frozen=True, slots=True)
class Where:
    """The cluster and the limits of one step, as the options that every command has. None: not given."""

    context: str | None = None
    bootstrap_server: str | None = None
    zookeeper: str | None = None
    command_config: str | None = None
    timeout: str | None = None
    confirm_cluster: str | None = None
    ignore_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an operation: the exit code that its command has, what it printed as JSON (JSON Lines as a list,
    None for nothing), and the error that ended it.

    changed: whether it changed something or, in a dry run, would; None if its command did not report that.
    """

    exit_code: int
    value: Any
    error: KctlError | None = None
    changed: bool | None = None


class Operations(Protocol):
    """What kctl.commands.terminal.operations offers."""

    def names(self) -> Iterable[str]:
        """All operations, without their arguments: cheap."""

    def aliases(self) -> Mapping[str, str]:
        """Second names of operations, and whose they are."""

    def find(self, name: str) -> Operation:
        """One operation. Raises NotFound, with what was probably meant."""

    def check(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        """Parse the arguments as the command line does, and do nothing. Raises UsageError."""

    def run(
        self,
        operation: Operation,
        arguments: Mapping[str, Any],
        where: Where,
        *,
        dry_run: bool = False,
        stdin: bytes = b"",
        note: Callable[[str], None],
    ) -> Outcome:
        """Carry it out, confirmed; note: each line that it says on stderr. Raises KeyboardInterrupt only."""


def step_can_change(step: Step, known: Operations) -> bool:
    """Return whether a step, other than an include, may change something."""
    own = OWN_STEPS.get(step.kind)
    if own is not None:
        return own.changes
    return not step.dry_run and known.find(step.kind).can_change(step.arguments)


@lru_cache(maxsize=1)
def operations() -> Operations:
    """The commands of kctl as operations."""
    return cast("Operations", import_module("kctl.commands.terminal.operations"))
