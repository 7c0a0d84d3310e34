"""Generated payloads: text with a few placeholders, filled in for every record. Nothing is evaluated as code.

{n}          the record's number, from 1
{uuid}       a random UUID
{now}        milliseconds since the epoch
{random:N}   N random base64 characters
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
    """Return a function that renders the payload of a record from its number. Raises UsageError."""
    try:
        parts = [_part(match) for match in _PART.finditer(text)]
    except UsageError as exc:
        raise UsageError(exc.message, hint=f"{_brace_hint(text)}{_HINT}") from None
    if len(parts) == 1:
        return parts[0]
    return lambda number: b"".join([part(number) for part in parts])


def random_text(size: int) -> Render:
    """Return a function that renders `size` random base64 characters. Raises UsageError above MAX_RANDOM."""
    if size > MAX_RANDOM:
        raise UsageError(f"{size} random bytes exceed the maximum of {MAX_RANDOM} per record")
    raw = (size * 3 + 3) // 4
    return lambda _number: b64encode(os.urandom(raw))[:size]


def _brace_hint(text: str) -> str:
    """Return a hint with all braces doubled except those of placeholders; "" if the text already has double braces."""
    if "{{" in text or len(text) > 200:
        return ""
    pieces = _PLACEHOLDER.split(text)
    pieces[::2] = [piece.replace("{", "{{").replace("}", "}}") for piece in pieces[::2]]
    return f"double the braces of JSON: {''.join(pieces)}; "


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
    raise UsageError(f"the template has {{{text}}}, which is not a placeholder")


def _uuid(_number: int) -> bytes:
    text = os.urandom(16).hex()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}".encode()


_SIMPLE: dict[str, Render] = {
    "n": lambda number: b"%d" % number,
    "uuid": _uuid,
    "now": lambda _number: b"%d" % (time.time() * 1000),
}
