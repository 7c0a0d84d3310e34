"""Check the names in a playbook's expressions: undefined and unused names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kctl.base.strict_yaml import YamlList, YamlMap
from kctl.base.suggestions import did_you_mean
from kctl.playbook.builtin_step_table import BUILTIN_STEPS
from kctl.playbook.expressions.limits import ExpressionError
from kctl.playbook.expressions.syntax import Expression, TextExpression, parse, parse_text
from kctl.playbook.lint.problems import Problems
from kctl.playbook.model import FAILURE_FIELDS, REGISTER_FIELDS, RESERVED_NAMES, Playbook, Step

_TEXTS = ("loop", "retries", "delay", "timeout", "context", "stdin")


class Site(NamedTuple):
    """A string that may contain expressions: the value of a key or an item. alone: an expression without braces."""

    holder: Any
    key: Any
    text: str
    alone: bool


def sites_of(step: Step) -> Iterator[Site]:
    """Yield all sites of a step."""
    body = step.body
    for key in ("when", "until"):
        if isinstance(body.get(key), str):
            yield Site(body, key, body[key], alone=True)
    for key in _TEXTS:
        if key in body:
            yield from sites_within(body, key, body[key])
    builtin = BUILTIN_STEPS.get(step.kind)
    for key, value in step.arguments.items():
        argument = builtin.argument(key) if builtin else None
        if argument is not None and argument.kind == "condition":
            yield from (site._replace(alone=True) for site in sites_within(step.arguments, key, value))
        else:
            yield from sites_within(step.arguments, key, value)


def sites_within(holder: Any, key: Any, value: Any) -> Iterator[Site]:
    """Yield the sites in the value of a key or item."""
    if isinstance(value, str):
        yield Site(holder, key, value, alone=False)
    elif isinstance(value, YamlMap):
        for inner in value:
            yield from sites_within(value, inner, value[inner])
    elif isinstance(value, YamlList):
        for index, each in enumerate(value):
            yield from sites_within(value, index, each)


class Scope:
    """The variables declared so far, and their uses."""

    def __init__(self, playbook: Playbook, problems: Problems) -> None:
        self._playbook = playbook
        self._problems = problems
        self._variables: dict[str, tuple[Step, Any, Any]] = {}  # name → its step, and holder and key of its position
        self._looped: set[str] = set()
        self._registers: set[str] = set()
        self._used: set[str] = set()
        self._secret = {each.name for each in playbook.parameters if each.secret}
        self.in_handlers = False

    def declare(self, step: Step) -> None:
        """Declare the variables that the step defines."""
        if step.register is not None:
            self._add(step.register, step, step.body, "register")
            self._registers.add(step.register)
            (self._looped.add if step.loop is not None else self._looped.discard)(step.register)
        if step.kind == "set":
            for name, value in step.arguments.items():
                self._add(str(name), step, step.arguments, name)
                self._registers.discard(str(name))
                if self._names(step.arguments, name, value) & self._secret:
                    self._secret.add(str(name))

    def _add(self, name: str, step: Step, holder: Any, key: Any) -> None:
        if self._playbook.parameter(name) is not None:
            report = self._problems.value if key == "register" else self._problems.key
            report(holder, key, f"{name} is already a parameter", "choose another name")
        self._variables[name] = (step, holder, key)

    def _names(self, holder: Any, key: Any, value: Any) -> set[str]:
        names: set[str] = set()
        for site in sites_within(holder, key, value):
            try:
                names |= {used.name for each, _ in expressions_of(site) for used in each.names}
            except ExpressionError:
                continue
        return names

    def site(self, step: Step, site: Site) -> None:
        """Check the expressions of one site."""
        try:
            expressions = expressions_of(site)
        except ExpressionError as exc:
            self._problems.value(site.holder, site.key, exc.message, exc.hint, exc.offset)
            return
        for expression, offset in expressions:
            for used in expression.names:
                self._name(step, site, used.name, offset + used.offset)
            for member in expression.members:
                self._member(step, site, member.name, member.member, offset + member.offset)

    def registers(self, step: Step) -> frozenset[str]:
        """Return registers with one result, not the list of a loop; including the step's register, for `until`."""
        of_step = {step.register} if step.register is not None and step.loop is None else set()
        return frozenset((self._registers - self._looped) | of_step)

    def _defined(self, step: Step) -> set[str]:
        names = {each.name for each in self._playbook.parameters} | set(self._variables) | {"run_id"}
        if step.loop is not None:
            names |= {"item", "index"}
        if self.in_handlers:
            names.add("failure")
        return names

    def _name(self, step: Step, site: Site, name: str, offset: int) -> None:
        self._used.add(name)
        defined = self._defined(step)
        if name in defined or name in (self._playbook.unread or ()) or (name == step.register and site.key == "until"):
            return
        if name in {"item", "index"}:
            hint = "it exists only in a step with `loop`"
        elif name in RESERVED_NAMES:
            hint = "it exists only in on_failure and finally"
        elif any(each.register == name or (each.kind == "set" and name in each.arguments) for each in self._all()):
            hint = "a later step defines it"
        else:
            hint = did_you_mean(name, defined) or "no parameter or earlier step defines it"
        self._problems.value(site.holder, site.key, f"{name} is not defined", hint, offset)

    def _all(self) -> tuple[Step, ...]:
        return self._playbook.all_steps()

    def _member(self, step: Step, site: Site, name: str, member: str, offset: int) -> None:
        is_own_until = name == step.register and site.key == "until"
        if name == "failure" and self.in_handlers:
            fields: tuple[str, ...] = FAILURE_FIELDS
        elif is_own_until or (name in self._registers and name not in self._looped):
            fields = REGISTER_FIELDS
        else:
            return
        if member not in fields:
            near = did_you_mean(member, fields)
            inside = f"the output of the operation is in {name}.value" if fields is REGISTER_FIELDS else None
            hint = near or inside or f"valid fields: {', '.join(fields)}"
            self._problems.value(site.holder, site.key, f"{name} has no {member}", hint, offset)

    def secrets(self, step: Step) -> None:
        """Report secrets in a program's arguments, which all users of the machine can see."""
        if step.kind != "run":
            return
        argv = step.arguments.get("argv")
        for site in sites_within(step.arguments, "argv", argv):
            exposed = self._names(site.holder, site.key, site.text) & self._secret
            if exposed:
                self._problems.value(
                    site.holder, site.key, f"the secret {min(exposed)} on a command line is visible to other users",
                    f"pass it with env: {{{min(exposed).upper()}: …}} or stdin",
                )  # fmt: skip

    def unused(self) -> None:
        """Report unused parameters, and warn about unused registers and variables; not if a step is unreadable."""
        if self._playbook.unread is not None:
            return
        for parameter in self._playbook.parameters:
            if parameter.name not in self._used:
                self._problems.at(
                    parameter.where.line, parameter.where.column, f"parameter {parameter.name} is not used",
                    f"use {{{{ {parameter.name} }}}} or remove it",
                )  # fmt: skip
        for name, (_, holder, key) in self._variables.items():
            if name not in self._used:
                report = self._problems.value if key == "register" else self._problems.key
                report(holder, key, f"{name} is not used", "remove it, or use it in a later step", warning=True)


def expressions_of(site: Site) -> list[tuple[Expression, int]]:
    """Return the expressions of a site with their offsets. Raises ExpressionError."""
    if site.alone:
        return [(parse(site.text), 0)]
    return [(part.expression, part.offset) for part in parse_text(site.text) if isinstance(part, TextExpression)]
