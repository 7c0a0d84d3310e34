"""Jinja's sandbox, which compiles and runs expressions.

A tree is rewritten before it is compiled: names, conditions, comparisons, lists and strings are handled by `values`.
The environment intercepts all other operations. Compiled code reaches no attribute, method or function of Python. It
calls only the environment's hooks, and the filters and tests in their tables.
"""
# ruff: noqa: N802, N815 - Jinja names visitors after nodes

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import nodes
from jinja2.environment import TemplateExpression
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from kctl.playbook.expressions import values
from kctl.playbook.expressions.filters import FILTERS, FUNCTIONS
from kctl.playbook.expressions.limits import ExpressionError, check_size, evaluation
from kctl.playbook.expressions.parser import tree_of
from kctl.playbook.expressions.value_tests import TESTS
from kctl.playbook.expressions.values import Undefined

_TESTS: dict[str, Any] = {**TESTS}
# Names in parentheses implement rewritten nodes. Expressions cannot use them, as a filter's name has no parentheses.
_FILTERS: dict[str, Any] = {
    **FILTERS,
    "(name)": values.variable,
    "(require)": values.require,
    "(truth)": lambda value: values.truth(values.require(value)),
    "(key)": lambda value: values.text(values.require(value)),
    "(compare)": lambda *chain: values.compare(*map(values.require, chain)),
    "(slice)": lambda *parts: values.slice_of(*map(values.require, parts)),
    "(concat)": lambda *parts: values.join_texts(map(values.require, parts)),
    "(no else)": lambda _: Undefined(hint="the condition is false and the `if` has no `else`"),
    **{f"{name}()": lambda _, *each, call=call, **named: call(*each, **named) for name, call in FUNCTIONS.items()},
}


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)
    intercepted_unops = frozenset(ImmutableSandboxedEnvironment.default_unop_table)

    def __init__(self) -> None:
        # Without the optimizer, which would evaluate constant parts of an expression at compile time.
        super().__init__(undefined=Undefined, optimized=False, cache_size=0)
        self.filters, self.tests, self.globals = _FILTERS, _TESTS, {}

    def getattr(self, obj: Any, attribute: str) -> Any:
        return values.member(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return values.member(obj, values.require(argument))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002
        return values.arithmetic(operator, values.require(left), values.require(right))

    def call_unop(self, context: Context, operator: str, arg: Any) -> Any:  # noqa: ARG002
        value = values.number(values.require(arg))
        return check_size(-value) if operator == "-" else value

    def call(__self, __context: Context, __obj: Any, *_: Any, **__: Any) -> NoReturn:  # noqa: N805
        raise ExpressionError("functions cannot be called here")

    def handle_exception(self, source: str | None = None) -> NoReturn:  # noqa: ARG002
        raise  # noqa: PLE0704 - the original error, without a traceback for templates


class _Rewriter(NodeTransformer):
    """A visitor that replaces nodes of a tree with the functions in parentheses."""

    def visit_Name(self, node: nodes.Name) -> nodes.Node:
        return _apply("(name)", nodes.Const(node.name))

    def visit_Call(self, node: nodes.Call) -> nodes.Node:
        arguments = [self.visit(each) for each in node.args]
        keywords = [nodes.Keyword(each.key, self.visit(each.value)) for each in node.kwargs]
        assert isinstance(node.node, nodes.Name)
        return nodes.Filter(nodes.Const(None), f"{node.node.name}()", arguments, keywords, None, None)

    def visit_List(self, node: nodes.List | nodes.Tuple) -> nodes.Node:
        return nodes.List([self._require(each) for each in node.items])

    visit_Tuple = visit_List

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        return nodes.Pair(_apply("(key)", self.visit(node.key)), self._require(node.value))

    def visit_And(self, node: nodes.And | nodes.Or) -> nodes.Node:
        return type(node)(_apply("(truth)", self.visit(node.left)), _apply("(truth)", self.visit(node.right)))

    visit_Or = visit_And

    def visit_Not(self, node: nodes.Not) -> nodes.Node:
        return nodes.Not(_apply("(truth)", self.visit(node.node)))

    def visit_CondExpr(self, node: nodes.CondExpr) -> nodes.Node:
        otherwise = self.visit(node.expr2) if node.expr2 else _apply("(no else)", nodes.Const(None))
        choice = nodes.CondExpr(_apply("(truth)", self.visit(node.test)), self.visit(node.expr1), otherwise)
        return _apply("(require)", choice)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        chain = [part for each in node.ops for part in (nodes.Const(each.op), self.visit(each.expr))]
        return _apply("(compare)", self.visit(node.expr), *chain)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        return _apply("(concat)", *[self.visit(each) for each in node.nodes])

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        if not isinstance(node.arg, nodes.Slice):
            return self.generic_visit(node)
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        return _apply("(slice)", self.visit(node.node), *[self.visit(each or nodes.Const(None)) for each in bounds])

    def _require(self, node: nodes.Expr) -> nodes.Expr:
        return node if isinstance(node, nodes.Const) else _apply("(require)", self.visit(node))


def _apply(rule: str, first: nodes.Expr, *others: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(first, rule, list(others), [], None, None)


_SANDBOX = _Sandbox()


@lru_cache(maxsize=1024)
def _compiled(source: str) -> TemplateExpression:
    expression = _Rewriter().visit(tree_of(source))
    template = nodes.Template([nodes.Assign(nodes.Name("result", "store"), expression, lineno=1)], lineno=1)
    template.set_environment(_SANDBOX)
    return TemplateExpression(_SANDBOX.from_string(template), undefined_to_none=False)


def compute(source: str, variables: Mapping[str, Any]) -> Any:
    """Return the value of a parsed expression. Raises ExpressionError."""
    with evaluation(variables):
        try:
            return values.require(_compiled(source)())
        except (RecursionError, SyntaxError, MemoryError):  # from Python's compiler, whose limits vary by version
            raise ExpressionError("the expression is too complex", hint="use `set` for parts of it") from None
