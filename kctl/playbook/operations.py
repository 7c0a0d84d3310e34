"""Operations: the commands of kctl as steps of a playbook, so that playbooks cannot drift from the command line.

`topic.create` is `kctl topic create`. Its arguments are the command's arguments and options in snake_case, its result
is the command's JSON output. The library never imports `kctl.commands`, except here: the module is loaded by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from kctl.errors import KctlError
from kctl.playbook.builtin_step_table import BUILTIN_STEPS

if TYPE_CHECKING:
    from kctl.playbook.model import Step

Kind = Literal["text", "integer", "number", "flag"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an operation.

    many: accepts a list; with `pairs` (KEY=VALUE) also a mapping. default: None if there is none. positional: an
    argument, not an option, of the command. choices: empty if any value is valid.
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
    """An operation.

    name: "topic.create". command: ("topic", "create"). changes: it changes something unless it is a dry run. dry_run:
    it supports dry runs. changes_with: the argument without which it changes nothing.
    """

    name: str
    command: tuple[str, ...]
    summary: str
    arguments: tuple[Argument, ...]
    changes: bool
    dry_run: bool
    changes_with: str | None = None

    def can_change(self, arguments: Mapping[str, Any]) -> bool:
        """Return True if the operation may change something with these arguments."""
        return self.changes and (self.changes_with is None or arguments.get(self.changes_with) not in (None, False))

    def argument(self, name: str) -> Argument | None:
        return next((each for each in self.arguments if each.name == name), None)


@dataclass(frozen=True, slots=True)
class Where:
    """The cluster and the limits of one step, as the common options of all commands. None: not set."""

    context: str | None = None
    bootstrap_server: str | None = None
    zookeeper: str | None = None
    command_config: str | None = None
    timeout: str | None = None
    confirm_cluster: str | None = None
    ignore_unknown: bool = False


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The result of an operation.

    exit_code: of the command. value: its JSON output; JSON Lines as a list; None if there is none. error: the error
    that ended it. changed: it changed something (in a dry run: it would change something); None: not reported.
    """

    exit_code: int
    value: Any
    error: KctlError | None = None
    changed: bool | None = None


class Operations(Protocol):
    """The interface of kctl.commands.terminal.operations."""

    def names(self) -> Iterable[str]:
        """Return the names of all operations. Does not load their arguments."""

    def aliases(self) -> Mapping[str, str]:
        """Return alternative names, each with the operation's main name."""

    def find(self, name: str) -> Operation:
        """Return an operation. Raises NotFound with a suggestion."""

    def check(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        """Parse the arguments as the command line does, without running the operation. Raises UsageError."""

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
        """Run the operation, confirmed. note: called with each line for stderr. Raises only KeyboardInterrupt."""


def step_can_change(step: Step, definitions: Operations) -> bool:
    """Return True if a step, other than an include, may change something."""
    builtin = BUILTIN_STEPS.get(step.kind)
    if builtin is not None:
        return builtin.changes
    return not step.dry_run and definitions.find(step.kind).can_change(step.arguments)


@lru_cache(maxsize=1)
def operations() -> Operations:
    """Return the commands of kctl as operations."""
    return cast("Operations", import_module("kctl.commands.terminal.operations"))
