"""Jinja's parser for one expression. The `lineno` of a node is its offset in the source."""

from __future__ import annotations

from collections.abc import Iterator

from jinja2 import TemplateSyntaxError, nodes
from jinja2.lexer import TokenStream
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kctl.playbook.expressions.limits import ExpressionError

_ENVIRONMENT = ImmutableSandboxedEnvironment(cache_size=0)


def tree_of(source: str) -> nodes.Expr:
    """Return the syntax tree of an expression. Raises ExpressionError."""
    parser = Parser(_ENVIRONMENT, "", state="variable")
    try:
        parser.stream = TokenStream(_ENVIRONMENT.lexer.wrap(_tokens(source)), None, None)
        tree = parser.parse_expression()
        if not parser.stream.eos:
            token = parser.stream.current
            raise ExpressionError(f"unexpected {token.value!r}", token.lineno)
    except TemplateSyntaxError as exc:
        raise ExpressionError(_plain(exc.message or ""), min(exc.lineno, len(source))) from None
    except RecursionError:
        raise ExpressionError("nested too deeply") from None
    return tree


def _tokens(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield the lexer's tokens, with offsets instead of line numbers."""
    offset = 0
    tokens = iter(_ENVIRONMENT.lexer.tokeniter(source, None, None, "variable"))
    while True:
        try:
            _, kind, text = next(tokens)
        except StopIteration:
            return
        except TemplateSyntaxError as exc:
            raise TemplateSyntaxError(exc.message or "", offset) from None
        yield offset, kind, text
        offset += len(text)


def _plain(message: str) -> str:
    """Return the parser's message without terms of templates."""
    message = message.replace("end of print statement", "the end").replace("end of template", "the end")
    return f"invalid expression: {message.rstrip('.')}"
