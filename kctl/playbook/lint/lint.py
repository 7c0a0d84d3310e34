"""Lint a readable playbook: invalid arguments, undefined names, and steps without the intended effect."""

from __future__ import annotations

from typing import Any

from kctl.base.strict_yaml import YamlList, YamlMap
from kctl.errors import KctlError
from kctl.playbook.expressions.syntax import is_expression
from kctl.playbook.lint.builtin_steps import check_builtin_arguments
from kctl.playbook.lint.configs import check_configs
from kctl.playbook.lint.include import Included
from kctl.playbook.lint.names import Scope, sites_of
from kctl.playbook.lint.operation import check_arguments
from kctl.playbook.lint.problems import Problems, in_order
from kctl.playbook.lint.types import check_types
from kctl.playbook.model import Playbook, Problem, Step
from kctl.playbook.operations import Operations, operations
from kctl.playbook.run.wait_reads import reads_before_wait

# Keys that apply only to some steps → these steps.
_ONLY = {
    "until": "operations and run",
    "retries": "operations and run",
    "delay": "operations and run",
    "accept": "operations and run",
    "stdin": "operations and run",
    "timeout": "operations and run",
    "register": "operations, run and assert",
    "context": "operations and include",
}


def lint(
    playbook: Playbook,
    *,
    definitions: Operations | None = None,
    trail: tuple[str, ...] = (),
    cache: Included | None = None,
) -> list[Problem]:
    """Return all problems by position. trail: including playbooks, outermost first. cache: playbooks linted so far."""
    definitions = definitions or operations()
    linter = _Linter(playbook, definitions, trail, cache or Included(definitions, lint))
    linter.all()
    return in_order([*linter.problems.rows, *linter.included])


class _Linter:
    def __init__(self, playbook: Playbook, definitions: Operations, trail: tuple[str, ...], cache: Included) -> None:
        self._playbook = playbook
        self._definitions = definitions
        self._trail = trail
        self._cache = cache
        self.problems = Problems(playbook.file)
        self.included: list[Problem] = []
        self._scope = Scope(playbook, self.problems)

    def all(self) -> None:
        for step in self._playbook.steps:
            self._step(step)
        self._scope.in_handlers = True
        for step in (*self._playbook.on_failure, *self._playbook.finally_):
            self._step(step)
        self._scope.unused()

    def _step(self, step: Step) -> None:
        if self.problems.full:
            return
        self._keys(step)
        _keys_without_expressions(self.problems, step.arguments)
        if step.is_operation:
            check_arguments(self.problems, step, self._definitions)
            check_configs(self.problems, step)
        else:
            check_builtin_arguments(self.problems, step)
        if step.kind == "wait":
            self._waits(step)
        if step.kind == "include":
            self.included += self._cache.check(self.problems, self._playbook, step, self._trail)
        for site in sites_of(step):
            self._scope.site(step, site)
        check_types(self.problems, step, self._playbook, self._scope.registers(step))
        self._scope.secrets(step)
        self._scope.declare(step)

    def _waits(self, step: Step) -> None:
        """Check that the condition of a wait can change."""
        if not isinstance(step.arguments.get("until"), str) or self._playbook.unread is not None:
            return
        try:
            changing = reads_before_wait(self._playbook, step, self._definitions)
        except KctlError:  # reported elsewhere
            return
        if not changing:
            self.problems.value(
                step.arguments, "until", "the condition cannot change during the wait",
                "use the register of an earlier read-only operation: register: health, until: health.value.healthy",
            )  # fmt: skip

    def _keys(self, step: Step) -> None:
        """Check keys that have no effect on this kind of step."""
        fits = {"operations": step.is_operation, "run": step.kind == "run", "include": step.kind == "include",
                "assert": step.kind == "assert"}  # fmt: skip
        for key, kinds in _ONLY.items():
            if key in step.body and not any(fits[kind] for kind in kinds.replace(", ", " and ").split(" and ")):
                self.problems.key(step.body, key, f"{step.kind} does not support {key}", f"it applies to {kinds}")
        if "delay" in step.body and "retries" not in step.body and step.until is None:
            self.problems.key(step.body, "delay", "delay has no effect", "it requires until or retries")
        if step.dry_run and not (step.is_operation and self._definitions.find(step.kind).dry_run):
            self.problems.key(step.body, "dry_run", f"{step.kind} has no dry run", "remove dry_run")
        if step.until is not None and step.register is None and (step.is_operation or step.kind == "run"):
            self.problems.key(
                step.body,
                "until",
                "until needs the result of the step",
                "set register: result, then use until: result.value…",
            )


def _keys_without_expressions(problems: Problems, value: Any) -> None:
    """Report expressions in keys, which are not evaluated."""
    if isinstance(value, YamlMap):
        for key, each in value.items():
            if is_expression(key):
                problems.key(value, key, "expressions in keys are not evaluated", "use the expression as a value")
            _keys_without_expressions(problems, each)
    elif isinstance(value, (YamlList, list)):
        for each in value:
            _keys_without_expressions(problems, each)
