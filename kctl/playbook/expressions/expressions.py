"""Expressions of playbooks: read, checked, and put into texts.

The syntax is Jinja's (https://jinja.palletsprojects.com/templates/#expressions), and so is the parser; nothing else is:
no statements, no comments, no templates are compiled. What the parser returns is a tree that
`kctl.playbook.expressions.evaluation` walks, in which only values as JSON has them exist: no method, attribute or
function of Python can be reached. Size, depth and work are bounded.

An expression stands alone (`when`, `until`, `that`) or between braces in a text: `{{ x }}` that is all of a text keeps
its type, else it is inserted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import nodes

MAX_CHARACTERS = 4096
MAX_NODES = 500
MAX_TEXT = 1 << 20  # characters of a text with everything inserted
MAX_VALUES = 1_000_000  # in the lists and mappings of a result
MAX_RESULT = 1 << 25  # characters of a result, in all of its texts
MAX_DEPTH = 100  # of lists and mappings in each other
MAX_INSERTED = 1000  # expressions in one text


class ExpressionError(UsageError):
    """An expression that cannot be read, or has no value. offset: of the character where it goes wrong."""

    def __init__(self, message: str, offset: int = 0, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.offset = offset


class Used(NamedTuple):
    """A name in an expression, and where."""

    name: str
    offset: int


class Member(NamedTuple):
    """`name.member` in an expression, and where the member is written."""

    name: str
    member: str
    offset: int


@dataclass(frozen=True, slots=True)
class Expression:
    """source: as it was written. names: the variables in it; members: what is asked of them directly. Each node's
    `lineno` is its offset in the source."""

    source: str
    tree: nodes.Expr
    names: tuple[Used, ...]
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Inserted:
    """An expression between braces. offset: of its first character within the text."""

    expression: Expression
    offset: int


@lru_cache(maxsize=1024)
def parse(source: str) -> Expression:
    """An expression that stands alone. Raises ExpressionError."""
    from jinja2 import TemplateSyntaxError
    from jinja2.lexer import TokenStream
    from jinja2.parser import Parser

    from kctl.playbook.expressions.expression_rules import checked

    if len(source) > MAX_CHARACTERS:
        raise ExpressionError(f"an expression of {len(source):,} characters; {MAX_CHARACTERS:,} is the most")
    if not source.strip():
        raise ExpressionError("an empty expression")
    if source.lstrip().startswith("{{"):
        raise ExpressionError("an expression stands here without braces", hint=_without_braces(source.strip()))
    environment = _environment()
    parser = Parser(environment, "", state="variable")
    try:
        parser.stream = TokenStream(environment.lexer.wrap(_tokens(source)), None, None)
        tree = parser.parse_expression()
        if not parser.stream.eos:
            at = parser.stream.current
            raise ExpressionError(f"{at.value!r} is not expected here", at.lineno)
    except TemplateSyntaxError as exc:
        raise ExpressionError(_plain(exc.message or ""), min(exc.lineno, len(source))) from None
    except RecursionError:
        raise ExpressionError("nested too deeply") from None
    return Expression(source, tree, *checked(tree, max_nodes=MAX_NODES))


def _without_braces(source: str) -> str:
    inner = source.removeprefix("{{").removesuffix("}}")
    return "take the braces away" if "{{" in inner or "}}" in inner else f"write {inner.strip()}"


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(cache_size=0)


def _tokens(source: str) -> Iterator[tuple[int, str, str]]:
    """The lexer's tokens with their offsets where it has their lines."""
    from jinja2 import TemplateSyntaxError

    offset = 0
    tokens = iter(_environment().lexer.tokeniter(source, None, None, "variable"))
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
    """The parser's words, without those of templates."""
    message = message.replace("end of print statement", "the end").replace("end of template", "the end")
    return f"not an expression: {message.rstrip('.')}"


@lru_cache(maxsize=4096)
def parse_text(text: str) -> tuple[str | Inserted, ...]:
    """A text and the expressions in it, in their order. Raises ExpressionError, its offset within the text."""
    parts: list[str | Inserted] = []
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
        if len(parts) > 2 * MAX_INSERTED:
            raise ExpressionError(f"more than {MAX_INSERTED:,} expressions in one text", start)
        if start > literal:
            parts.append(text[literal:start])
        end = _closing(text, start)
        parts.append(_inserted(text[start + 2 : end], start + 2))
        position = literal = end + 2
    if literal < len(text):
        parts.append(text[literal:])
    return tuple(parts)


def _inserted(source: str, offset: int) -> Inserted:
    lead = len(source) - len(source.lstrip())
    try:
        return Inserted(parse(source.strip()), offset + lead)
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


def expressions_in(text: str) -> list[Inserted]:
    """Those between braces. Raises ExpressionError."""
    return [part for part in parse_text(text) if isinstance(part, Inserted)]


def evaluate(source: str, variables: Mapping[str, Any]) -> Any:
    """The value of an expression that stands alone. Raises ExpressionError."""
    from kctl.playbook.expressions.evaluation import value_of

    return Room().take(value_of(parse(source).tree, variables))


def condition(source: str | bool, variables: Mapping[str, Any]) -> bool:
    """The value of a condition, which is true or false and nothing else. Raises ExpressionError."""
    value = source if isinstance(source, bool) else evaluate(source, variables)
    if not isinstance(value, bool):
        raise ExpressionError(
            f"{source} is {_kind(value)}, not true or false", hint="compare it, for example `… | length > 0`"
        )
    return value


def render(value: Any, variables: Mapping[str, Any]) -> Any:
    """`value` with all expressions in its texts replaced; keys of mappings stay. Raises ExpressionError."""
    room = Room()

    def rendered(each: Any) -> Any:
        if isinstance(each, str):
            return room.take(_rendered(each, variables))
        if isinstance(each, Mapping):
            return {key: rendered(inner) for key, inner in each.items()}
        if isinstance(each, (list, tuple)):
            return [rendered(inner) for inner in each]
        return each

    return rendered(value)


def _rendered(text: str, variables: Mapping[str, Any]) -> Any:
    from kctl.playbook.expressions.evaluation import value_of

    parts = parse_text(text)
    if len(parts) == 1 and isinstance(parts[0], Inserted):
        return value_of(parts[0].expression.tree, variables)
    texts: list[str] = []
    size = 0
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        else:
            texts.append(as_text(value_of(part.expression.tree, variables), part.expression.source))
        size += len(texts[-1])
        if size > MAX_TEXT:
            raise ExpressionError(f"a text of more than {MAX_TEXT >> 20} MiB")
    return "".join(texts)


def as_text(value: Any, source: str) -> str:
    """A value within a text: as YAML writes scalars, lists and mappings as JSON. Raises ExpressionError for null."""
    import json

    if value is None:
        raise ExpressionError(f"{source} is null, and cannot be put into a text", hint=f"{source} | default('', true)")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, str)):
        return str(value)
    Room(values=MAX_TEXT, characters=MAX_TEXT).take(value)
    return json.dumps(value, ensure_ascii=False)


class Room:
    """What results may take in all. A list may hold one list, or one long text, many times: each time counts, as it
    does where the result is written down."""

    def __init__(self, *, values: int = MAX_VALUES, characters: int = MAX_RESULT) -> None:
        self.values, self.characters = values, characters  # that are left
        self._most = values, characters

    def take(self, value: Any) -> Any:
        """The value. Raises ExpressionError when it is too much, or nested too deeply."""
        self._count(value, 1)
        return value

    def _count(self, value: Any, depth: int) -> None:
        inner: Iterable[Any] = ()
        if isinstance(value, str):
            self.characters -= len(value)
        elif isinstance(value, (list, tuple)):
            self.values -= len(value)
            inner = value
        elif isinstance(value, Mapping):
            self.values -= len(value)
            inner = (*value, *value.values())
        if self.values < 0:
            raise ExpressionError(f"a result of more than {self._most[0]:,} values")
        if self.characters < 0:
            raise ExpressionError(f"a result of more than {self._most[1]:,} characters")
        if depth > MAX_DEPTH:
            raise ExpressionError(f"a result nested more than {MAX_DEPTH} levels deep")
        for each in inner:
            self._count(each, depth + 1)


def _kind(value: Any) -> str:
    from kctl.playbook.expressions.evaluation import kind_of

    return kind_of(value)
