"""Evaluate expressions, on their own and in strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kctl.playbook.expressions.limits import MAX_TEXT, ExpressionError, SizeBudget, limit_cpu, text_too_long
from kctl.playbook.expressions.syntax import Expression, TextExpression, parse, parse_text


def evaluate(source: str, variables: Mapping[str, Any]) -> Any:
    """Return the value of a standalone expression. Raises ExpressionError."""
    with limit_cpu():
        return SizeBudget().take(value_of(parse(source), variables))


def condition(source: str | bool, variables: Mapping[str, Any]) -> bool:
    """Return the value of a condition. Raises ExpressionError, also if it is not a boolean."""
    value = source if isinstance(source, bool) else evaluate(source, variables)
    if not isinstance(value, bool):
        from kctl.playbook.expressions.values import kind_of

        hint = "compare it, e.g. `… | length > 0`"
        raise ExpressionError(f"{source} is {kind_of(value)}, not true or false", hint=hint)
    return value


def render(value: Any, variables: Mapping[str, Any]) -> Any:
    """Return `value` with the expressions in its strings evaluated; keys are not. Raises ExpressionError."""
    size = SizeBudget()

    def replaced(each: Any) -> Any:
        if isinstance(each, str):
            return size.take(_render_text(each, variables))
        if isinstance(each, Mapping):
            return {key: replaced(inner) for key, inner in each.items()}
        if isinstance(each, (list, tuple)):
            return [replaced(inner) for inner in each]
        return each

    with limit_cpu():
        return replaced(value)


def value_of(expression: Expression, variables: Mapping[str, Any]) -> Any:
    """Return the value of an expression. Raises ExpressionError."""
    from kctl.playbook.expressions.sandbox import compute  # imports jinja2

    return compute(expression.source, variables)


def _render_text(text: str, variables: Mapping[str, Any]) -> Any:
    parts = parse_text(text)
    if len(parts) == 1 and isinstance(parts[0], TextExpression):
        return value_of(parts[0].expression, variables)
    texts: list[str] = []
    size = 0
    for part in parts:
        texts.append(part if isinstance(part, str) else _inserted_text(part.expression, variables))
        size += len(texts[-1])
        if size > MAX_TEXT:
            raise text_too_long()
    return "".join(texts)


def _inserted_text(expression: Expression, variables: Mapping[str, Any]) -> str:
    from kctl.playbook.expressions.values import as_text  # imports jinja2

    return as_text(value_of(expression, variables), expression.source)
