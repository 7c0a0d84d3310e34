"""Separators between the key and the value in a line of text."""

from __future__ import annotations

from kctl.errors import UsageError

_ESCAPES = {"\\t": "\t", "\\0": "\0"}


def parse_separator(text: str, option: str = "--key-separator") -> bytes:
    """Return an option's separator as bytes; "\\t" is a tab, "\\0" a NUL. Raises UsageError if it is empty."""
    separator = _ESCAPES.get(text, text).encode("utf-8", "surrogateescape")
    if not separator:
        raise UsageError(f"{option} is empty", hint=f"e.g. {option} : or {option} '\\t'")
    if b"\n" in separator:
        raise UsageError(f"{option} contains a line break")
    return separator
