"""The variables and the position of a running playbook. An included playbook has its own frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kctl.errors import Reason, Refused
from kctl.playbook.lint.names import expressions_of, sites_of
from kctl.playbook.model import Playbook, Step
from kctl.playbook.operations import Where
from kctl.playbook.run.states import Failure, StepResult, skipped_result


@dataclass
class Frame:
    """A running playbook.

    variables: parameters, registers, and variables of `set`. confirmed: context → the name that confirms changes to its
    cluster. prefix: of the step keys. trail: paths of the including playbooks and this one. missing: register whose
    value the journal lacks → its step. in_handler: runs within on_failure or finally. secret: secret variables.
    """

    playbook: Playbook
    variables: dict[str, Any] = field(repr=False)
    where: Where
    confirmed: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    trail: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)
    in_handler: bool = False
    secret: frozenset[str] = frozenset()

    @property
    def depth(self) -> int:
        return len(self.trail)

    def where_of(self, context: str | None) -> Where:
        """Return the target of a step: the cluster of the run, or of the step's context."""
        if context is None:
            return self.where
        return Where(context=context, confirm_cluster=self.confirmed.get(context), timeout=self.where.timeout)

    def enter_handlers(self, failure: Failure | None) -> None:
        """Define `failure`, and the variables of all steps that did not run."""
        self.variables["failure"] = None if failure is None else failure.registered()
        for step in (*self.playbook.steps, *self.playbook.on_failure):
            self.define_skipped(step)

    def define_skipped(self, step: Step, result: StepResult | None = None) -> None:
        """Define the variables of a step that did not run; existing values stay."""
        if step.register is not None:
            self.variables.setdefault(step.register, (result or skipped_result("")).registered())
        if step.kind == "set":
            for name in step.arguments:
                self.variables.setdefault(str(name), None)

    def check_missing(self, step: Step) -> None:
        """Raise Refused if the step uses a value that the journal lacks."""
        for name in names_in(step):
            if name in self.missing:
                raise Refused(
                    f"the journal lacks the full value of {name}: it was too large or contained a secret",
                    hint=f"run its step again: kctl playbook resume --redo {self.missing[name]}",
                    reason=Reason.UNSAFE,
                )


def names_in(step: Step) -> Iterator[str]:
    """Yield the names used in a step's expressions."""
    for site in sites_of(step):
        for expression, _ in expressions_of(site):
            yield from (used.name for used in expression.names)


def of_item(variables: Mapping[str, Any], item: Any, index: int) -> dict[str, Any]:
    """Return the variables for one item of a loop."""
    return {**variables, "item": item, "index": index}
