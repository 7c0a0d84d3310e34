"""One playbook while it runs: its values, and where it is. An included one has a frame of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kctl.errors import Refused
from kctl.playbook.lint.names import expressions_of, sites_of
from kctl.playbook.model import Playbook, Step
from kctl.playbook.operations import Where
from kctl.playbook.run.states import Failure, Result, skipped_result


@dataclass
class Frame:
    """variables: parameters, registers, what `set` named. confirmed: context → the name that confirms a change of its
    cluster. prefix: of the keys of its steps. trail: the playbooks that led here. lost: registers of which the journal
    has no values any more, and their steps. in_handler: it is within a final step. secret: names of secret variables.
    """

    playbook: Playbook
    variables: dict[str, Any] = field(repr=False)
    where: Where
    confirmed: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    trail: tuple[str, ...] = ()
    lost: dict[str, str] = field(default_factory=dict)
    in_handler: bool = False
    secret: frozenset[str] = frozenset()

    @property
    def depth(self) -> int:
        return len(self.trail)

    def where_of(self, context: str | None) -> Where:
        """The cluster of a step: the run's, or that of the context that it names."""
        if context is None:
            return self.where
        return Where(context=context, confirm_cluster=self.confirmed.get(context), timeout=self.where.timeout)

    def enter_handlers(self, failure: Failure | None) -> None:
        """From here on `failure` is known, and what steps that were not done would have left behind."""
        self.variables["failure"] = None if failure is None else failure.registered()
        for step in (*self.playbook.steps, *self.playbook.on_failure):
            self.leave_out(step)

    def leave_out(self, step: Step, result: Result | None = None) -> None:
        """A step was not done: what it would have left is there, and says so. A value from before stays."""
        if step.register is not None:
            self.variables.setdefault(step.register, (result or skipped_result("")).registered())
        if step.kind == "set":
            for name in step.arguments:
                self.variables.setdefault(str(name), None)

    def check_lost(self, step: Step) -> None:
        """Raise Refused when the step asks for a value that the journal does not have."""
        for name in names_in(step):
            if name in self.lost:
                raise Refused(
                    f"the journal does not have all of {name}: it was very large, or had a secret in it",
                    hint=f"kctl playbook resume --redo {self.lost[name]} does its step again",
                )


def names_in(step: Step) -> Iterator[str]:
    """The names in all expressions of a step."""
    for site in sites_of(step):
        for expression, _ in expressions_of(site):
            yield from (used.name for used in expression.names)


def of_item(variables: Mapping[str, Any], item: Any, index: int) -> dict[str, Any]:
    """The variables within a loop."""
    return {**variables, "item": item, "index": index}
