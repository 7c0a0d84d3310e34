"""Check the arguments of built-in steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kctl.errors import KctlError
from kctl.playbook.builtin_step_table import BUILTIN_STEPS, BuiltinArgument
from kctl.playbook.expressions.syntax import is_expression
from kctl.playbook.lint.problems import Problems
from kctl.playbook.model import RESERVED_NAMES, Step
from kctl.playbook.read import IDENTIFIER


def check_builtin_arguments(problems: Problems, step: Step) -> None:
    """Report invalid arguments of a built-in step."""
    builtin = BUILTIN_STEPS[step.kind]
    arguments: Any = step.arguments
    if builtin.free:
        _names(problems, step)
        return
    problems.unknown_keys(arguments, [each.name for each in builtin.arguments], step.kind)
    for argument in builtin.arguments:
        if argument.required and arguments.get(argument.name) is None:
            problems.key(step.body, step.kind, f"{step.kind} needs {argument.name}", argument.help)
        elif arguments.get(argument.name) is not None:
            _check(problems, arguments, argument)
    present = [name for name in builtin.one_of if arguments.get(name) is not None]
    if builtin.one_of and len(present) != 1:
        verb = "needs one of" if not present else "accepts only one of"
        problems.key(step.body, step.kind, f"{step.kind} {verb} {', '.join(builtin.one_of)}")
    if step.kind == "wait" and "duration" in present:
        for name in ("every", "timeout"):
            if name in arguments:
                problems.key(arguments, name, f"{name} requires wait with until")


def _names(problems: Problems, step: Step) -> None:
    """Check the variable names of `set`."""
    arguments: Mapping[Any, Any] = step.arguments
    if not arguments:
        problems.key(step.body, step.kind, "set defines no variables", "e.g. set: {name: value}")
    for name in arguments:
        if not isinstance(name, str) or not IDENTIFIER.fullmatch(name):
            hint = "use at most 64 lowercase letters, digits and _"
            problems.key(step.arguments, name, f"{name!r} is not a valid name for a variable", hint)
        elif name in RESERVED_NAMES:
            problems.key(step.arguments, name, f"{name} is reserved: {RESERVED_NAMES[name]}", "rename the variable")


def _check(problems: Problems, arguments: Any, argument: BuiltinArgument) -> None:
    value = arguments[argument.name]
    if argument.literal and is_expression(value):
        problems.value(arguments, argument.name, f"{argument.name} cannot contain expressions")
        return
    if argument.kind == "texts" or (argument.many and isinstance(value, list)):
        _items(problems, arguments, argument)
    else:
        _one(problems, arguments, argument.name, argument)


def _items(problems: Problems, arguments: Any, argument: BuiltinArgument) -> None:
    value: Any = arguments[argument.name]
    if not isinstance(value, list):
        if not is_expression(value):
            hint = f"[{', '.join(value.split())}]: there is no shell to split it" if isinstance(value, str) else None
            problems.value(arguments, argument.name, f"{argument.name} must be a list", hint)
        return
    if not value:
        problems.value(arguments, argument.name, f"{argument.name} is empty")
    for index, each in enumerate(value):
        if argument.kind == "condition":
            _one(problems, value, index, argument)
        elif isinstance(each, bool) or not isinstance(each, (str, int, float)):
            problems.value(value, index, f"items of {argument.name} must be strings, not {each!r}", "put it in quotes")


def _one(problems: Problems, holder: Any, key: Any, argument: BuiltinArgument) -> None:
    value, name = holder[key], argument.name
    if argument.kind == "condition":
        if not isinstance(value, (str, bool)):
            problems.value(holder, key, f"{name} must be an expression", "e.g. health.exit_code == 0")
    elif argument.kind == "flag":
        if not isinstance(value, bool):
            problems.value(holder, key, f"{name} must be true or false, not {value!r}")
    elif argument.kind == "mapping":
        if not isinstance(value, Mapping) and not is_expression(value):
            problems.value(holder, key, f"{name} must be a mapping", f"e.g. {name}: {{name: value}}")
    elif argument.kind == "duration":
        _duration(problems, holder, key, name)
    elif not isinstance(value, str):
        problems.value(holder, key, f"{name} must be a string, not {value!r}", "put it in quotes")
    elif argument.choices and value not in argument.choices and not is_expression(value):
        problems.value(holder, key, f"{name} must be one of {', '.join(argument.choices)}, not {value!r}")


def _duration(problems: Problems, holder: Any, key: Any, name: str) -> None:
    from kctl.base.units import parse_duration_ms

    value = holder[key]
    if is_expression(value):
        return
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise KctlError(f"{name} must be a duration", hint="e.g. 500ms, 30s or 5m")
        parse_duration_ms(str(value))
    except KctlError as exc:
        problems.value(holder, key, exc.message, exc.hint)
