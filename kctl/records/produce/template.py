"""Payloads for load: text with a few placeholders, each filled anew for every record. Nothing is ever evaluated.

{n}          the record's number, from 1
{uuid}       a random UUID
{now}        milliseconds since the epoch
{random:N}   N random letters and digits (of base64)
{int:A:B}    a random number from A to B
{{ and }}    the braces themselves
"""

from __future__ import annotations

import os
import random
import re
import time
from base64 import b64encode
from collections.abc import Callable

from kctl.errors import UsageError

MAX_RANDOM = 128 << 20
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")
_PLACEHOLDER = re.compile(r"(\{(?:n|uuid|now|random:[0-9]+|int:-?[0-9]+:-?[0-9]+)\})")
_HINT = "placeholders are {n}, {uuid}, {now}, {random:100} and {int:1:6}; {{ is a brace"

Render = Callable[[int], bytes]


def template(text: str) -> Render:
    """What makes the payload of a record from its number. Raises UsageError."""
    try:
        parts = [_part(match) for match in _PART.finditer(text)]
    except UsageError as exc:
        raise UsageError(exc.message, hint=f"{_doubled(text)}{_HINT}") from None
    if len(parts) == 1:
        return parts[0]
    return lambda number: b"".join([part(number) for part in parts])


def random_text(size: int) -> Render:
    """`size` random characters of base64. Raises UsageError for more than MAX_RANDOM."""
    if size > MAX_RANDOM:
        raise UsageError(f"{size} random bytes are more than {MAX_RANDOM}, the most that a record gets")
    raw = (size * 3 + 3) // 4
    return lambda _number: b64encode(os.urandom(raw))[:size]


def _doubled(text: str) -> str:
    """What to write instead of JSON as it is: its braces doubled, but those of placeholders. "" where it was tried."""
    if "{{" in text or len(text) > 200:
        return ""
    pieces = _PLACEHOLDER.split(text)
    pieces[::2] = [piece.replace("{", "{{").replace("}", "}}") for piece in pieces[::2]]
    return f"braces of JSON are doubled: {''.join(pieces)}; "


def _part(match: re.Match[str]) -> Render:
    text = match.group()
    if match.group(1) is not None:
        return _placeholder(match.group(1))
    if text in ("{", "}"):
        raise UsageError(f"the template has a lone {text}")
    literal = text.replace("{{", "{").replace("}}", "}").encode("utf-8", "surrogateescape")
    return lambda _number: literal


def _placeholder(text: str) -> Render:
    name, *arguments = text.split(":")
    if not arguments and name in _SIMPLE:
        return _SIMPLE[name]
    numbers = [int(a) for a in arguments if re.fullmatch(r"-?[0-9]{1,18}", a)]
    if len(numbers) == len(arguments):
        if name == "random" and len(numbers) == 1 and numbers[0] >= 0:
            return random_text(numbers[0])
        if name == "int" and len(numbers) == 2 and numbers[0] <= numbers[1]:
            low, high = numbers
            return lambda _number: b"%d" % random.randint(low, high)  # noqa: S311 - no secret
    raise UsageError(f"the template has {{{text}}}, which is no placeholder")


def _uuid(_number: int) -> bytes:
    text = os.urandom(16).hex()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}".encode()


_SIMPLE: dict[str, Render] = {
    "n": lambda number: b"%d" % number,
    "uuid": _uuid,
    "now": lambda _number: b"%d" % (time.time() * 1000),
}
