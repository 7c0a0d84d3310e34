"""Rules for the syntax tree of an expression: the allowed nodes, functions and arguments."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from jinja2 import nodes

from kctl.base.suggestions import did_you_mean
from kctl.base.text import encodable
from kctl.playbook.expressions.filters import FILTERS, FUNCTIONS
from kctl.playbook.expressions.functions import Function
from kctl.playbook.expressions.limits import MAX_NESTING, MAX_NODES, ExpressionError
from kctl.playbook.expressions.value_tests import TESTS

_NODES = frozenset({
    nodes.Const, nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair,
    nodes.Keyword, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos,
    nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow, nodes.Concat, nodes.Filter,
    nodes.Test, nodes.Call,
})  # fmt: skip


class NameUse(NamedTuple):
    """A name in an expression and its position."""

    name: str
    offset: int


class MemberAccess(NamedTuple):
    """`name.member` in an expression and the position of the member."""

    name: str
    member: str
    offset: int


def check_tree(tree: nodes.Expr) -> tuple[tuple[NameUse, ...], tuple[MemberAccess, ...]]:
    """Return the variables of a tree and their members. Raises ExpressionError if the tree breaks a rule."""
    names: list[NameUse] = []
    members: list[MemberAccess] = []
    remaining: list[tuple[Any, int]] = [(tree, 1)]
    count = 0
    while remaining:
        node, depth = remaining.pop()
        count += 1
        if count > MAX_NODES:
            raise ExpressionError(f"the expression has more than {MAX_NODES} parts", hint="use `set` for parts of it")
        if depth > MAX_NESTING:
            raise ExpressionError("nested too deeply", hint="use `set` for parts of it")
        _check(node)
        if isinstance(node, nodes.Name):
            names.append(NameUse(node.name, node.lineno))
        elif isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
            members.append(MemberAccess(node.node.name, node.attr, node.lineno + 1))
        remaining += [(each, depth + 1) for each in _inner(node)]
    return tuple(sorted(names, key=lambda used: used.offset)), tuple(members)


def _inner(node: nodes.Node) -> Iterable[nodes.Node]:
    if isinstance(node, nodes.Call):  # the function's name is not a variable
        return [*node.args, *node.kwargs]
    return node.iter_child_nodes()


def _check(node: Any) -> None:
    if type(node) not in _NODES:
        raise ExpressionError(f"{type(node).__name__} is not supported in expressions", node.lineno)
    if isinstance(node, nodes.Tuple) and any(isinstance(each, nodes.Slice) for each in node.items):
        raise ExpressionError("a slice cannot be combined with other indexes", node.lineno)
    if isinstance(node, nodes.Const):
        _check_constant(node)
    elif isinstance(node, nodes.Filter):
        _check_function(node, "filter", FILTERS)
    elif isinstance(node, nodes.Test):
        _check_function(node, "test", TESTS)
    elif isinstance(node, nodes.Call):
        _check_call(node)


def _check_constant(node: nodes.Const) -> None:
    value = node.value
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ExpressionError("the number does not fit into 64 bits", node.lineno)
    if isinstance(value, float) and not math.isfinite(value):
        raise ExpressionError("the number is not finite", node.lineno)
    if isinstance(value, str) and not encodable(value):
        raise ExpressionError("the string contains an unpaired surrogate, which UTF-8 cannot encode", node.lineno)


def _check_function(node: Any, kind: str, functions: dict[str, Function]) -> None:
    if node.name not in functions:
        hint = did_you_mean(node.name, functions) or f"valid {kind}s: {', '.join(sorted(functions))}"
        raise ExpressionError(f"unknown {kind} {node.name}", node.lineno, hint=hint)
    _check_arguments(node, f"the {kind} {node.name}", functions[node.name], 1)


def _check_call(node: nodes.Call) -> None:
    called = node.node
    if isinstance(called, nodes.Name) and called.name in FUNCTIONS:
        _check_arguments(node, called.name, FUNCTIONS[called.name], 0)
        return
    name = getattr(called, "attr", None) or getattr(called, "name", None)
    is_method = isinstance(called, nodes.Getattr)
    hint = f"use … | {name}" if name in FILTERS else did_you_mean(str(name), FILTERS if is_method else FUNCTIONS)
    message = f"methods cannot be called: .{name}()" if is_method else f"unknown function {name or 'call'}"
    raise ExpressionError(message, node.lineno, hint=hint)


def _check_arguments(node: Any, name: str, function: Function, values: int) -> None:
    """Check that the arguments match the function. values: number of arguments that are passed before them."""
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        raise ExpressionError(f"{name}: * and ** arguments are not supported", node.lineno)
    keywords = [each.key for each in node.kwargs]
    if len(set(keywords)) < len(keywords):
        raise ExpressionError(f"{name}: duplicate argument", node.lineno)
    try:
        inspect.signature(function.call).bind(*[None] * (values + len(node.args)), **dict.fromkeys(keywords))
    except TypeError as exc:
        raise ExpressionError(f"{name}: {exc}", node.lineno) from None
