"""Lines of text that hold a key and a value."""

from __future__ import annotations

from kctl.errors import UsageError

_ESCAPES = {"\\t": "\t", "\\0": "\0"}


def parse_separator(text: str, option: str = "--key-separator") -> bytes:
    """An option's separator as bytes; «\\t» is a tab, «\\0» a NUL. Raises UsageError when it is empty."""
    separator = _ESCAPES.get(text, text).encode("utf-8", "surrogateescape")
    if not separator:
        raise UsageError(f"{option} is empty", hint=f"for example {option} : or {option} '\\t'")
    if b"\n" in separator:
        raise UsageError(f"{option} contains the end of a line")
    return separator
