"""Decode escapes in a text and keep the position of each part, to find secrets in encoded form.

One round decodes one layer of any of these: percent-encoding of URLs (either case, of any character), character
references of HTML and XML, escapes of JSON, C and Python (`\\u0026`, `\\x26`, `\\n`, `\\"`), and quotes within a quoted
string of a shell, YAML or SQL. Mixed encodings need no special case.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

_PERCENT = r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
_PLUS = r"(?P<plus>\+)"
_REFERENCE = r"(?P<reference>&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
_BACKSLASH = (
    r"(?P<utf16>(?:\\u[0-9A-Fa-f]{4})+)"
    r"|\\u\{(?P<braced>[0-9A-Fa-f]{1,6})\}"
    r"|\\U(?P<utf32>[0-9A-Fa-f]{8})"
    r"|(?P<bytes>(?:\\x[0-9A-Fa-f]{2})+)"
    r"|(?P<octal>(?:\\[0-3][0-7]{2})+)"
    r"|(?P<quote>'\\''|'\"'\"'|'')"
    r"|\\(?P<plain>.)"
)
# All kinds at once, and each kind alone: a secret may contain text that looks like an escape of another kind.
KINDS = {
    "all": re.compile("|".join([_PERCENT, _REFERENCE, _BACKSLASH]), re.DOTALL),
    "form": re.compile("|".join([_PERCENT, _REFERENCE, _BACKSLASH, _PLUS]), re.DOTALL),
    "percent": re.compile(_PERCENT),
    "reference": re.compile(_REFERENCE),
    "backslash": re.compile(_BACKSLASH, re.DOTALL),
}
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b", "0": "\0"}


@dataclass
class Unescaped:
    """Decoded text with the origin of each piece.

    Each piece: its start here, its start in the original, and True if it is unchanged.
    """

    text: str = ""
    _here: list[int] = field(default_factory=list)
    _there: list[int] = field(default_factory=list)
    _same: list[bool] = field(default_factory=list)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of text[start:end] in the original."""
        return self._at(start, after=False), self._at(end - 1, after=True)

    def _at(self, place: int, *, after: bool) -> int:
        piece = bisect_right(self._here, place) - 1
        if self._same[piece]:
            return self._there[piece] + place - self._here[piece] + after
        return self._there[piece + 1] if after else self._there[piece]


def unescape(text: str, kind: str) -> Unescaped | None:
    """Decode one layer of escapes of a kind in KINDS; None if the text has no escapes. form: a plus sign is a space."""
    result, pieces, here, there, changed = Unescaped(), [], 0, 0, False

    def add(piece: str, begin: int, *, same: bool) -> None:
        nonlocal here
        if piece:
            result._here.append(here)  # noqa: SLF001 - this function builds it
            result._there.append(begin)  # noqa: SLF001
            result._same.append(same)  # noqa: SLF001
            pieces.append(piece)
            here += len(piece)

    for token in KINDS[kind].finditer(text):
        parts = _parts(token)
        if parts is None:
            continue
        add(text[there : token.start()], there, same=True)
        there = token.start()
        for piece, length in parts:
            add(piece, there, same=False)
            there += length
        changed = True
    if not changed:
        return None
    add(text[there:], there, same=True)
    result._there.append(len(text))  # noqa: SLF001
    result.text = "".join(pieces)
    return result


def _parts(token: re.Match[str]) -> list[tuple[str, int]] | None:
    """Return the characters of a token, each with the length of its escape; None if the token is not an escape."""
    kind, text = token.lastgroup, token.group()
    if kind == "percent":
        return _of_bytes(bytes.fromhex(text.replace("%", "")), 3)
    if kind == "bytes":
        return _of_bytes(bytes.fromhex(text.replace("\\x", "")), 4)
    if kind == "octal":
        return _of_bytes(bytes(int(text[at + 1 : at + 4], 8) for at in range(0, len(text), 4)), 4)
    if kind == "utf16":
        units = bytes.fromhex(text.replace("\\u", "")).decode("utf-16-be", "surrogatepass")
        return [(char, 12 if char > "\uffff" else 6) for char in units]
    if kind in {"braced", "utf32"}:
        code = int(token[kind], 16)
        return [(chr(code), len(text))] if code < 0x110000 else None
    if kind == "reference":
        if text[1] == "#":
            code = int(text[3:-1], 16) if text[2] in "xX" else int(text[2:-1])
            return [(chr(code), len(text))] if 0 < code < 0x110000 else None
        import html

        decoded = html.unescape(text)
        return None if decoded == text else [(decoded, len(text))]
    if kind == "quote":
        return [("'", len(text))]
    if kind == "plus":
        return [(" ", 1)]
    return [(_SIMPLE.get(token["plain"], token["plain"]), 2)]


def _of_bytes(data: bytes, escape_length: int) -> list[tuple[str, int]]:
    """Decode UTF-8, or Latin-1 if the bytes are not UTF-8. escape_length: characters that encode one byte."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return [(chr(byte), escape_length) for byte in data]
    return [(char, escape_length * len(char.encode())) for char in text]
