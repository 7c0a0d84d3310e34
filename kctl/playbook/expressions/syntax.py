"""Syntax of expressions, on their own and in strings.

The syntax is Jinja's (https://jinja.palletsprojects.com/templates/#expressions), without statements and comments.

An expression is either a whole value (`when`, `until`, `that`) or in braces within a string. A string that consists
only of `{{ x }}` keeps the type of x; otherwise the value is inserted as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from kctl.playbook.expressions.limits import MAX_CHARACTERS, MAX_TEXT_EXPRESSIONS, ExpressionError

if TYPE_CHECKING:
    from jinja2 import nodes

    from kctl.playbook.expressions.rules import MemberAccess, NameUse


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression.

    source: as written. names: its variables. members: members accessed directly on variables. The `lineno` of a node is
    its offset in the source.
    """

    source: str
    tree: nodes.Expr
    names: tuple[NameUse, ...]
    members: tuple[MemberAccess, ...]


@dataclass(frozen=True, slots=True)
class TextExpression:
    """An expression in braces. offset: of its first character in the string."""

    expression: Expression
    offset: int


@lru_cache(maxsize=1024)
def parse(source: str) -> Expression:
    """Parse a standalone expression. Raises ExpressionError."""
    from kctl.playbook.expressions.parser import tree_of  # these import jinja2
    from kctl.playbook.expressions.rules import check_tree

    if len(source) > MAX_CHARACTERS:
        raise ExpressionError(f"the expression has {len(source):,} characters, more than {MAX_CHARACTERS:,}")
    if not source.strip():
        raise ExpressionError("the expression is empty")
    if source.lstrip().startswith("{{"):
        raise ExpressionError("expressions are written without braces here", hint=_without_braces(source.strip()))
    tree = tree_of(source)
    names, members = check_tree(tree)
    return Expression(source, tree, names, members)


def _without_braces(source: str) -> str:
    inner = source.removeprefix("{{").removesuffix("}}")
    return "remove the braces" if "{{" in inner or "}}" in inner else f"write {inner.strip()}"


@lru_cache(maxsize=4096)
def parse_text(text: str) -> tuple[str | TextExpression, ...]:
    """Split a string into text and expressions. Raises ExpressionError with the offset in the string."""
    parts: list[str | TextExpression] = []
    position = literal = 0  # `literal`: start of the text that is not in `parts` yet
    while (start := text.find("{", position)) >= 0:
        opening = text[start : start + 2]
        if opening in {"{%", "{#"}:
            what = "statements" if opening == "{%" else "comments"
            raise ExpressionError(
                f"{opening}: {what} are not supported",
                start,
                hint=f"to write it literally: {{{{ '{opening}' }}}}",
            )
        if opening != "{{":
            position = start + 1
            continue
        if len(parts) > 2 * MAX_TEXT_EXPRESSIONS:
            raise ExpressionError(f"the string has more than {MAX_TEXT_EXPRESSIONS:,} expressions", start)
        if start > literal:
            parts.append(text[literal:start])
        end = _closing(text, start)
        parts.append(_text_expression(text[start + 2 : end], start + 2))
        position = literal = end + 2
    if literal < len(text):
        parts.append(text[literal:])
    return tuple(parts)


def _text_expression(source: str, offset: int) -> TextExpression:
    lead = len(source) - len(source.lstrip())
    try:
        return TextExpression(parse(source.strip()), offset + lead)
    except ExpressionError as exc:
        raise ExpressionError(exc.message, offset + lead + exc.offset, hint=exc.hint) from None


def _closing(text: str, start: int) -> int:
    """Return the position of the }} that closes the {{ at `start`, ignoring quotes and inner braces."""
    depth, position = 0, start + 2
    while position < len(text):
        char = text[position]
        if char in "'\"":
            position = _end_of_quotes(text, position)
            if position < 0:
                break
        elif char == "{":
            depth += 1
        elif char == "}":
            if depth == 0 and text.startswith("}}", position):
                return position
            depth -= 1
        position += 1
    raise ExpressionError("{{ without }}", start, hint="to write it literally: {{ '{{' }}")


def _end_of_quotes(text: str, start: int) -> int:
    position = start + 1
    while position < len(text):
        if text[position] == "\\":
            position += 1
        elif text[position] == text[start]:
            return position
        position += 1
    return -1


def is_expression(value: object) -> bool:
    """Return True if a value is a string with an expression, whose type or text is known only at run time."""
    return isinstance(value, str) and "{{" in value


def expressions_in(text: str) -> list[TextExpression]:
    """Return the expressions in braces. Raises ExpressionError."""
    return [part for part in parse_text(text) if isinstance(part, TextExpression)]
