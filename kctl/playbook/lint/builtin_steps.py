"""Whether the arguments of playbooks' own steps fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kctl.errors import KctlError
from kctl.playbook.expressions.syntax import is_expression
from kctl.playbook.lint.problems import Problems
from kctl.playbook.model import GIVEN, Step
from kctl.playbook.own_steps import OWN_STEPS, OwnArgument
from kctl.playbook.read import IDENTIFIER


def check_own_arguments(problems: Problems, step: Step) -> None:
    """Add what does not fit."""
    own = OWN_STEPS[step.kind]
    given: Any = step.arguments
    if own.free:
        _names(problems, step)
        return
    problems.unknown_keys(given, [each.name for each in own.arguments], step.kind)
    for argument in own.arguments:
        if argument.required and given.get(argument.name) is None:
            problems.key(step.written, step.kind, f"{step.kind} needs {argument.name}", argument.help)
        elif given.get(argument.name) is not None:
            _check(problems, given, argument)
    chosen = [name for name in own.one_of if given.get(name) is not None]
    if own.one_of and len(chosen) != 1:
        said = "needs one of" if not chosen else "takes only one of"
        problems.key(step.written, step.kind, f"{step.kind} {said} {', '.join(own.one_of)}")
    if step.kind == "wait" and "duration" in chosen:
        for name in ("every", "timeout"):
            if name in given:
                problems.key(given, name, f"{name} is for wait with until")


def _names(problems: Problems, step: Step) -> None:
    """Variables of `set`."""
    given: Mapping[Any, Any] = step.arguments
    if not given:
        problems.key(step.written, step.kind, "set names nothing", "set: {name: value}")
    for name in given:
        if not isinstance(name, str) or not IDENTIFIER.fullmatch(name):
            problems.key(step.arguments, name, f"{name!r} is not a name for a variable", "small letters, digits and _")
        elif name in GIVEN:
            problems.key(step.arguments, name, f"{name} is {GIVEN[name]}", "give the variable another name")


def _check(problems: Problems, given: Any, argument: OwnArgument) -> None:
    value = given[argument.name]
    if argument.literal and is_expression(value):
        problems.value(given, argument.name, f"{argument.name} is written out, without expressions")
        return
    if argument.kind == "texts" or (argument.many and isinstance(value, list)):
        _items(problems, given, argument)
    else:
        _one(problems, given, argument.name, argument)


def _items(problems: Problems, given: Any, argument: OwnArgument) -> None:
    value: Any = given[argument.name]
    if not isinstance(value, list):
        if not is_expression(value):
            hint = f"[{', '.join(value.split())}]: no shell splits it" if isinstance(value, str) else None
            problems.value(given, argument.name, f"{argument.name} is a list", hint)
        return
    if not value:
        problems.value(given, argument.name, f"{argument.name} is empty")
    for index, each in enumerate(value):
        if argument.kind == "condition":
            _one(problems, value, index, argument)
        elif isinstance(each, bool) or not isinstance(each, (str, int, float)):
            problems.value(value, index, f"an item of {argument.name} is text, not {each!r}", "put it in quotes")


def _one(problems: Problems, holder: Any, key: Any, argument: OwnArgument) -> None:
    value, name = holder[key], argument.name
    if argument.kind == "condition":
        if not isinstance(value, (str, bool)):
            problems.value(holder, key, f"{name} is an expression", "for example health.exit_code == 0")
    elif argument.kind == "flag":
        if not isinstance(value, bool):
            problems.value(holder, key, f"{name} is true or false, not {value!r}")
    elif argument.kind == "mapping":
        if not isinstance(value, Mapping) and not is_expression(value):
            problems.value(holder, key, f"{name} is a mapping", f"{name}: {{name: value}}")
    elif argument.kind == "duration":
        _duration(problems, holder, key, name)
    elif not isinstance(value, str):
        problems.value(holder, key, f"{name} is text, not {value!r}", "put it in quotes")
    elif argument.choices and value not in argument.choices and not is_expression(value):
        problems.value(holder, key, f"{name} is one of {', '.join(argument.choices)}, not {value!r}")


def _duration(problems: Problems, holder: Any, key: Any, name: str) -> None:
    from kctl.base.units import parse_duration_ms

    value = holder[key]
    if is_expression(value):
        return
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise KctlError(f"{name} is a duration", hint="for example 500ms, 30s or 5m")
        parse_duration_ms(str(value))
    except KctlError as exc:
        problems.value(holder, key, exc.message, exc.hint)
