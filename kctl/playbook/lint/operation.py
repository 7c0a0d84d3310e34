"""Check the arguments of a step against its operation, as the command line would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kctl.base.suggestions import did_you_mean
from kctl.errors import UsageError
from kctl.playbook.expressions.syntax import is_expression
from kctl.playbook.lint.problems import Problems
from kctl.playbook.model import Step
from kctl.playbook.operations import Argument, Operation, Operations

# Options that every command has → what to use in a playbook.
_COMMON = {
    "context": "set it as a key of the step, next to the operation",
    "timeout": "set it as a key of the step, next to the operation",
    "output": "the result of a step is always the command's JSON",
    "yes": "a run confirms its steps itself",
    "dry_run": "use `kctl playbook run --check`, or the key dry_run of the step",
    "watch": "to repeat a step, use until, retries and delay",
    "follow": "to repeat a step, use until, retries and delay",
    "interval": "set delay as a key of the step, next to the operation",
    "bootstrap_server": "set the cluster for the run: `kctl playbook run … --bootstrap-server`",
    "bootstrap_controller": "set brokers for the run: `kctl playbook run … --bootstrap-server`",
    "zookeeper": "set the cluster for the run: `kctl playbook run … --zookeeper`",
    "command_config": "set the cluster for the run: `kctl playbook run … --command-config`",
    "ignore_unknown": "set it for the run: `kctl playbook run … --ignore-unknown`",
    "confirm_cluster": "set it for the run: `kctl playbook run … --confirm-cluster`",
}
_MUST = {"flag": "true or false", "integer": "an integer", "number": "a number", "text": "a string"}


def check_arguments(problems: Problems, step: Step, definitions: Operations) -> None:
    """Report invalid arguments of an operation."""
    operation = definitions.find(step.kind)
    arguments = step.arguments
    for name in arguments:
        if problems.full:
            return
        argument = operation.argument(str(name))
        if argument is None:
            _unknown(problems, step, operation, str(name))
            continue
        if _shape(problems, arguments, argument):
            _value(problems, step, operation, argument, definitions)
    for argument in operation.arguments:
        if argument.required and arguments.get(argument.name) is None:
            hint = argument.help or f"{argument.name}: {argument.metavar}"
            problems.key(step.body, step.kind, f"{step.kind} needs {argument.name}", hint)


def _unknown(problems: Problems, step: Step, operation: Operation, name: str) -> None:
    names = [each.name for each in operation.arguments]
    hint = _COMMON.get(name) or did_you_mean(name, names) or did_you_mean(name.replace("-", "_"), names)
    if hint is None:
        hint = f"valid arguments: {', '.join(names)}" if names else "it has no arguments"
    problems.key(step.arguments, name, f"{step.kind} has no argument {name}", hint)


def _shape(problems: Problems, arguments: Mapping[str, Any], argument: Argument) -> bool:
    """Return True if the type of the value is valid for the argument."""
    name, value = argument.name, arguments[argument.name]
    if value is None or is_expression(value):
        return False
    if isinstance(value, Mapping):
        if argument.many and argument.pairs:
            fits = [_scalar(problems, value, key, argument) for key in value]
            return all(fits)
        problems.value(arguments, name, f"{name} cannot be a mapping", _example(argument))
        return False
    if isinstance(value, list):
        if argument.many:
            fits = [_scalar(problems, value, index, argument) for index in range(len(value))]
            return all(fits)
        problems.value(arguments, name, f"{name} must be one value, not a list", _example(argument))
        return False
    return _scalar(problems, arguments, name, argument)


def _scalar(problems: Problems, holder: Any, key: Any, argument: Argument) -> bool:
    """Return True if one value is valid; False for expressions, which are checked at run time."""
    value = holder[key]
    if is_expression(value):
        return False
    fits = isinstance(value, (str, int, float))
    if argument.kind == "flag":
        fits = isinstance(value, bool)
    elif argument.kind == "integer":
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif argument.kind == "number":
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not fits:
        problems.value(
            holder, key, f"{argument.name} must be {_MUST[argument.kind]}, not {_text_of(value)}", _example(argument)
        )
    return fits


def _text_of(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else repr(value)


def _example(argument: Argument) -> str | None:
    if argument.many and argument.pairs:
        return f"e.g. {argument.name}: {{name: value}}, or a list of strings like {argument.metavar}"
    return f"e.g. {argument.name}: [{argument.metavar.strip('[]…')}]" if argument.many else None


def _value(problems: Problems, step: Step, operation: Operation, argument: Argument, definitions: Operations) -> None:
    """Check a value with the parser of the command line: choices, ranges, formats."""
    others = {each.name: placeholder(each) for each in operation.arguments if each.required}
    try:
        definitions.check(operation, {**others, argument.name: step.arguments[argument.name]})
    except UsageError as exc:
        text = exc.message.removeprefix(f"{operation.name}: ")
        _, separator, what = text.partition(f"Invalid value for '--{argument.name.replace('_', '-')}': ")
        message = f"{argument.name}: {what}" if separator else text
        hint = did_you_mean(str(step.arguments[argument.name]), argument.choices)
        problems.value(step.arguments, argument.name, message.rstrip("."), hint or exc.hint)


def placeholder(argument: Argument) -> Any:
    """Return a valid value for an argument that is not being checked."""
    if argument.kind == "flag":
        return True
    if argument.kind in {"integer", "number"}:
        return 1
    if argument.choices:
        return argument.choices[0]
    return "a=b" if argument.pairs else "x"
