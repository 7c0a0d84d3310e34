"""Infer the types of expressions before the run, and report values whose type does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kctl.base.strict_yaml import YamlList, YamlMap
from kctl.playbook.expressions.limits import ExpressionError
from kctl.playbook.expressions.syntax import TextExpression, is_expression, parse, parse_text
from kctl.playbook.lint.names import Site, sites_of
from kctl.playbook.lint.problems import Problems
from kctl.playbook.model import Playbook, Step
from kctl.playbook.operations import Argument, operations

if TYPE_CHECKING:
    from jinja2 import nodes

_NODE_TYPES = {
    "Compare": "boolean", "And": "boolean", "Or": "boolean", "Not": "boolean", "Test": "boolean",
    "List": "list", "Tuple": "list", "Dict": "mapping", "Concat": "string", "Call": "list",
    "Sub": "number", "Mul": "number", "Div": "number", "FloorDiv": "number", "Mod": "number", "Pow": "number",
    "Neg": "number", "Pos": "number",
}  # fmt: skip
_FILTER_TYPES = {
    **dict.fromkeys(("length", "count", "duration_ms", "size_bytes"), "integer"),
    **dict.fromkeys(("join", "lower", "upper", "trim", "replace", "string", "tojson"), "string"),
    **dict.fromkeys(
        ("list", "map", "select", "reject", "selectattr", "rejectattr", "sort", "unique", "flatten", "difference",
         "intersect", "items", "keys", "values", "split", "lines"),
        "list",
    ),
}  # fmt: skip
_MEMBER_TYPES = {"exit_code": "integer", "changed": "boolean", "status": "string"}
_TYPE_NAMES = {
    "boolean": "true or false", "list": "a list", "mapping": "a mapping", "string": "a string",
    "integer": "an integer", "number": "a number", "duration": "a duration", "size": "a size", "null": "null",
}  # fmt: skip
_SCALARS = frozenset({"string", "integer", "number", "duration", "size", "boolean"})
_ACCEPTED_TYPES = {
    "flag": frozenset({"boolean"}),
    "integer": frozenset({"integer", "number"}),  # the result of a calculation may be an integer
    "number": frozenset({"integer", "number"}),
    "text": _SCALARS,
}
_BOOLEAN = frozenset({"boolean"})
_DURATION = frozenset({"duration", "string", "integer", "number"})
_REQUIRED_TYPES = {"flag": "true or false", "integer": "an integer", "number": "a number", "text": "a string"}
_STEP_KEYS: dict[str, tuple[str, frozenset[str], str | None]] = {
    "loop": ("loop must be a list", frozenset({"list"}), "convert a mapping with `| items`"),
    "retries": ("retries must be an integer", frozenset({"integer", "number"}), None),
    "delay": ("delay must be a duration", _DURATION, None),
    "timeout": ("timeout must be a duration", _DURATION, None),
}


def type_of(tree: nodes.Expr, playbook: Playbook, registers: frozenset[str]) -> str | None:
    """Return the type of an expression: a parameter's type, boolean, …; None if it is unknown before the run."""
    kind = type(tree).__name__
    if kind == "Const":
        return _of_constant(tree.value)  # type: ignore[attr-defined]
    if kind == "Name":
        parameter = playbook.parameter(tree.name)  # type: ignore[attr-defined]
        return None if parameter is None or (parameter.default is None and not parameter.required) else parameter.type
    if kind == "Filter":
        return _FILTER_TYPES.get(tree.name)  # type: ignore[attr-defined]
    if kind == "Getattr":
        is_register = getattr(tree.node, "name", "") in registers  # type: ignore[attr-defined]
        return _MEMBER_TYPES.get(tree.attr) if is_register else None  # type: ignore[attr-defined]
    return _NODE_TYPES.get(kind)


def _of_constant(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    return "null" if value is None else "integer" if isinstance(value, int) else "number"


def fits(argument: Argument, kind: str, *, item: bool) -> bool:
    """Return True if a value of this type is valid for an operation's argument, or for an item of its list."""
    if kind in _ACCEPTED_TYPES[argument.kind]:
        return True
    if item or not argument.many:
        return False
    return kind == "list" or (kind == "mapping" and argument.pairs)


def check_types(problems: Problems, step: Step, playbook: Playbook, registers: frozenset[str]) -> None:
    """Report types that do not fit: conditions, loops, an operation's arguments.

    registers: those of steps without a loop.
    """
    check = _Check(problems, playbook, registers)
    for site in sites_of(step):
        if site.alone:
            hint = "compare it, e.g. `… | length > 0`"
            name = site.key if isinstance(site.key, str) else "that"
            check.site(site, f"{name} must be true or false", _BOOLEAN, hint)
        elif site.holder is step.body and site.key in _STEP_KEYS:
            check.site(site, *_STEP_KEYS[site.key])
    if step.is_operation:
        _arguments(check, step)


def _arguments(check: _Check, step: Step) -> None:
    operation = operations().find(step.kind)
    for name, value in step.arguments.items():
        argument = operation.argument(str(name))
        if argument is None:
            continue
        rule = f"{argument.name} must be {_REQUIRED_TYPES[argument.kind]}"
        if isinstance(value, str):
            check.argument(step.arguments, name, argument, rule, item=False)
        elif argument.many and isinstance(value, (YamlMap, YamlList)):
            for key in value if isinstance(value, YamlMap) else range(len(value)):
                check.argument(value, key, argument, rule, item=True)


class _Check:
    def __init__(self, problems: Problems, playbook: Playbook, registers: frozenset[str]) -> None:
        self._problems = problems
        self._playbook = playbook
        self._registers = registers

    def site(self, site: Site, rule: str, expected: frozenset[str], hint: str | None) -> None:
        """Check the type of an expression."""
        kind = self._kind(site)
        if kind is not None and kind not in expected:
            self._problems.value(site.holder, site.key, f"{rule}, not {_TYPE_NAMES[kind]}", hint)

    def argument(self, holder: Any, key: Any, argument: Argument, rule: str, *, item: bool) -> None:
        """Check the type of an argument with expressions. Other arguments were already checked."""
        text = holder[key]
        if not is_expression(text):
            return
        kind = self._kind(Site(holder, key, text, alone=False))
        if kind is not None and not fits(argument, kind, item=item):
            self._problems.value(holder, key, f"{rule}, not {_TYPE_NAMES[kind]}")

    def _kind(self, site: Site) -> str | None:
        try:
            if site.alone:
                return type_of(parse(site.text).tree, self._playbook, self._registers)
            parts = parse_text(site.text)
        except ExpressionError:  # already reported
            return None
        if len(parts) == 1 and isinstance(parts[0], TextExpression):
            return type_of(parts[0].expression.tree, self._playbook, self._registers)
        return "string"
