"""Syntax of expressions, alone and in texts.

The syntax is Jinja's (https://jinja.palletsprojects.com/templates/#expressions), without statements and comments.

An expression stands alone (`when`, `until`, `that`) or between braces in a text. `{{ x }}` that is the whole text keeps
its type; otherwise the value is inserted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from kctl.playbook.expressions.limits import MAX_CHARACTERS, MAX_TEXT_EXPRESSIONS, ExpressionError

if TYPE_CHECKING:
    from jinja2 import nodes

    from kctl.playbook.expressions.rules import Member, NameUse


@dataclass(frozen=True, slots=True)
class Expression:
    """source: as it was written. names: the variables in it; members: what is asked of them directly. Each node's
    `lineno` is its offset in the source."""

    source: str
    tree: nodes.Expr
    names: tuple[NameUse, ...]
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class TextExpression:
    """An expression between braces. offset: of its first character within the text."""

    expression: Expression
    offset: int


@lru_cache(maxsize=1024)
def parse(source: str) -> Expression:
    """Return an expression that stands alone. Raises ExpressionError."""
    from kctl.playbook.expressions.parser import tree_of  # these import jinja2
    from kctl.playbook.expressions.rules import check_tree

    if len(source) > MAX_CHARACTERS:
        raise ExpressionError(f"an expression of {len(source):,} characters; {MAX_CHARACTERS:,} is the most")
    if not source.strip():
        raise ExpressionError("an empty expression")
    if source.lstrip().startswith("{{"):
        raise ExpressionError("an expression stands here without braces", hint=_without_braces(source.strip()))
    tree = tree_of(source)
    names, members = check_tree(tree)
    return Expression(source, tree, names, members)


def _without_braces(source: str) -> str:
    inner = source.removeprefix("{{").removesuffix("}}")
    return "take the braces away" if "{{" in inner or "}}" in inner else f"write {inner.strip()}"


@lru_cache(maxsize=4096)
def parse_text(text: str) -> tuple[str | TextExpression, ...]:
    """A text and the expressions in it, in their order. Raises ExpressionError, its offset within the text."""
    parts: list[str | TextExpression] = []
    position = literal = 0  # `literal`: where the text begins that is not among the parts yet
    while (start := text.find("{", position)) >= 0:
        opening = text[start : start + 2]
        if opening in {"{%", "{#"}:
            what = "statements" if opening == "{%" else "comments"
            raise ExpressionError(
                f"{opening}: only expressions are taken, no {what}",
                start,
                hint=f"for the text itself: {{{{ '{opening}' }}}}",
            )
        if opening != "{{":
            position = start + 1
            continue
        if len(parts) > 2 * MAX_TEXT_EXPRESSIONS:
            raise ExpressionError(f"more than {MAX_TEXT_EXPRESSIONS:,} expressions in one text", start)
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
    """Where the }} is that closes the {{ at `start`: outside of quotes, and of braces opened within."""
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
    raise ExpressionError("{{ without }}", start, hint="for the text itself: {{ '{{' }}")


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
    """Whether a value is a text with an expression in it, and so has another type or text at run time."""
    return isinstance(value, str) and "{{" in value


def expressions_in(text: str) -> list[TextExpression]:
    """Those between braces. Raises ExpressionError."""
    return [part for part in parse_text(text) if isinstance(part, TextExpression)]
