"""A parser for sasl.jaas.config that splits words like Kafka's JaasConfig, which uses java.io.StreamTokenizer.

An entry has the class of a login module, a control flag, options as key=value, and a semicolon. The rules of
StreamTokenizer decide which passwords need quotes. A word that begins with a digit, a dot or a dash is read as a
number, and its text is lost. A slash outside quotes begins a comment. A quoted text ends at the end of its line if the
closing quote is missing. In quotes, a backslash escapes. tests/data/jaas_forms.json records Java's result for each
form.

kctl also accepts two forms that Java rejects, because their meaning is clear: a section of a JAAS file (KafkaClient { …
};) and a value that is quoted as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

CONTROL_FLAGS = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
_SECTION = "KafkaClient"

_SPACE_OR_COMMENT = re.compile(
    r"""[\x00-\x20]+
    | //[^\r\n]*
    | /\*.*?(?:\*/|\Z)    # an unclosed comment extends to the end
    | /[^*/]?[^\r\n]*     # any other slash also begins a comment
    """,
    re.DOTALL | re.VERBOSE,
)
_WORD = re.compile(r"[A-Za-z_$\xa0-\U0010ffff][A-Za-z0-9_$.\-\xa0-\U0010ffff]*")
_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]*)")
_QUOTED = re.compile(r"""(["'])((?:\\.|(?!\1)[^\\\r\n])*)(?:\1|(?=[\r\n])|\\?\Z)""", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """The text is not a login module. The message never contains part of the text, which may be a secret."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One entry of a JAAS configuration. StreamTokenizer turns a numeric key into None, which is never looked up."""

    name: str
    flag: str
    options: dict[str | None, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Token:
    """A token. text: the word or the quoted text. symbol: any other character; "" for a number."""

    text: str | None
    symbol: str = ""


def parse_login_module(text: str) -> LoginModule:
    """Return the login module of a value that has exactly one.

    It may be in a section, in quotes, or in both. Raises JaasError.
    """
    try:
        modules = parse_entries(text)
    except JaasError:
        inner = _unwrapped(text)
        if inner is None:
            _reject_braces(text)
            raise
        inner = _unwrapped(inner) or inner
        _reject_braces(inner)
        modules = parse_entries(inner)
    if len(modules) != 1:
        raise JaasError(f"it has {len(modules)} login modules instead of one")
    return modules[0]


def _reject_braces(text: str) -> None:
    """Raise JaasError for braces that are not a single KafkaClient section.

    Without this check, the error would be about the word after the braces.
    """
    if any(token.symbol in {"{", "}"} for token in _tokens(text)):
        raise JaasError(f"it has braces that are not one section {_SECTION} {{ … }};")


def parse_entries(text: str) -> list[LoginModule]:
    """Return the entries exactly as org.apache.kafka.common.security.JaasConfig reads them. Raises JaasError."""
    tokens = _tokens(text)
    entries: list[LoginModule] = []
    for token in tokens:
        if not token.text:
            raise JaasError("it does not begin with the class of a login module")
        entries.append(_entry(token.text, tokens))
    if not entries:
        raise JaasError("it has no login module")
    return entries


def _entry(name: str, tokens: Iterator[_Token]) -> LoginModule:
    flag = next(tokens, None)
    if flag is None or flag.text is None or flag.text.upper() not in CONTROL_FLAGS:
        raise JaasError("`required` is missing after the class of the login module")
    options: dict[str | None, str] = {}
    for token in tokens:
        if token.symbol == ";":
            return LoginModule(name, flag.text.upper(), options)
        equals, value = next(tokens, None), next(tokens, None)
        if equals is None or equals.symbol != "=" or value is None or value.text is None:
            raise JaasError('an option is not key="value"')
        options[token.text] = value.text
    raise JaasError("it does not end in a semicolon")


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        if blank := _SPACE_OR_COMMENT.match(text, position):
            position = blank.end()
        elif quoted := _QUOTED.match(text, position):
            position = quoted.end()
            yield _Token(_ESCAPE.sub(_unescape, quoted[2]))
        elif word := _WORD.match(text, position):
            position = word.end()
            yield _Token(word[0])
        elif number := _NUMBER.match(text, position):
            position = number.end()
            yield _Token(None)
        else:
            yield _Token(None, text[position])
            position += 1


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)


def _unwrapped(text: str) -> str | None:
    """Return the text inside the braces of a section or inside the quotes around the whole value, else None."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        inner = text[1:-1]
        return re.sub(r'\\(["\'])', r"\1", inner) if f"\\{text[0]}" in inner else inner
    section = re.fullmatch(_SECTION + r"\s*\{(.*)\}\s*;?", text, re.DOTALL)
    return section[1] if section else None
