"""What an expression may consist of: a white list of the parser's nodes, checked when a playbook is read."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from kctl.base.suggestions import did_you_mean
from kctl.base.text import encodable
from kctl.playbook.expressions.expressions import ExpressionError, Member, Used

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jinja2 import nodes

_NODES = frozenset({
    "Const", "Name", "Getattr", "Getitem", "Slice", "List", "Tuple", "Dict", "Pair", "Keyword", "CondExpr", "Compare",
    "Operand", "And", "Or", "Not", "Neg", "Pos", "Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow", "Concat",
    "Filter", "Test", "Call",
})  # fmt: skip


def checked(tree: nodes.Expr, *, max_nodes: int) -> tuple[tuple[Used, ...], tuple[Member, ...]]:
    """The variables of a tree, and their members. Raises ExpressionError for what is not taken, or too much."""
    names: list[Used] = []
    members: list[Member] = []
    waiting: list[nodes.Node] = [tree]
    count = 0
    while waiting:
        node = waiting.pop()
        count += 1
        if count > max_nodes:
            raise ExpressionError(f"more than {max_nodes} parts in one expression", hint="use `set` for parts of it")
        _check(node)
        kind = type(node).__name__
        if kind == "Name":
            names.append(Used(node.name, node.lineno))  # type: ignore[attr-defined]
        elif kind == "Getattr" and type(node.node).__name__ == "Name":  # type: ignore[attr-defined]
            members.append(Member(node.node.name, node.attr, node.lineno + 1))  # type: ignore[attr-defined]
        waiting.extend(_inner(node))
    return tuple(sorted(names, key=lambda used: used.offset)), tuple(members)


def _inner(node: Any) -> Iterable[nodes.Node]:
    if type(node).__name__ == "Call":  # the function's name is no variable
        return [*node.args, *node.kwargs]
    found: Iterable[nodes.Node] = node.iter_child_nodes()
    return found


def _check(node: Any) -> None:
    kind = type(node).__name__
    if kind not in _NODES:
        raise ExpressionError(f"{kind} is not taken in expressions", node.lineno)
    if kind == "Const" and isinstance(node.value, int) and abs(node.value) >= 2**63:
        raise ExpressionError("a number that does not fit into 64 bits", node.lineno)
    if kind == "Const" and isinstance(node.value, str) and not encodable(node.value):
        raise ExpressionError("a text with half of a surrogate pair, which UTF-8 has not", node.lineno)
    if kind in {"Filter", "Test"}:
        _check_function(node, kind.lower())
    elif kind == "Call":
        _check_call(node)


def _check_function(node: Any, what: str) -> None:
    from kctl.playbook.expressions.filters import FILTERS
    from kctl.playbook.expressions.value_tests import TESTS

    known = FILTERS if what == "filter" else TESTS
    function = known.get(node.name)
    if function is None:
        hint = did_you_mean(node.name, known) or f"there are {', '.join(sorted(known))}"
        raise ExpressionError(f"there is no {what} {node.name}", node.lineno, hint=hint)
    _check_arguments(node, f"the {what} {node.name}", function, 1)


def _check_call(node: Any) -> None:
    from kctl.playbook.expressions.filters import FILTERS, FUNCTIONS

    called = node.node
    if type(called).__name__ == "Name" and called.name in FUNCTIONS:
        _check_arguments(node, called.name, FUNCTIONS[called.name], 0)
        return
    name = getattr(called, "attr", None) or getattr(called, "name", None)
    if type(called).__name__ == "Getattr":
        hint = f"write … | {name}" if name in FILTERS else did_you_mean(str(name), FILTERS)
        raise ExpressionError(f"there are no methods: .{name}()", node.lineno, hint=hint)
    hint = f"write … | {name}" if name in FILTERS else did_you_mean(str(name), FUNCTIONS)
    raise ExpressionError(f"there is no function {name or 'here'}", node.lineno, hint=hint)


def _check_arguments(node: Any, what: str, function: Any, before: int) -> None:
    """Whether they fit the function, which takes the evaluator and `before` values first."""
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        raise ExpressionError(f"{what}: arguments are written out, without *", node.lineno)
    keywords = {each.key: None for each in node.kwargs}
    try:
        inspect.signature(function).bind(None, *[None] * (before + len(node.args)), **keywords)
    except TypeError as exc:
        raise ExpressionError(f"{what}: {exc}", node.lineno) from None
