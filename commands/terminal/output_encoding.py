"""Output on streams whose encoding lacks characters, without errors.

Missing characters are written in ASCII: kctl's own symbols (an ellipsis, arrows, box lines) as similar characters, all
others as escapes (`\\u017c`), so that two names never look alike. A codec error handler does this for every writer. An
error handler that the user chose (PYTHONIOENCODING=latin-1:replace) stays.
"""

from __future__ import annotations

import codecs
import sys
from typing import Any, TextIO

_HANDLER = "kctl.shown"
_LOOK_ALIKES = {
    "…": "...", "→": "->", "←": "<-", "↔": "<->", "⇒": "=>", "\xab": '"', "\xbb": '"', "‹": "'", "›": "'",
    "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "−": "-", "‐": "-", "‑": "-",
    "×": "x", "·": "*", "•": "*", "÷": "/", "±": "+-", "≤": "<=", "≥": ">=", "≈": "~", "≠": "!=",
    "Σ": "sum ", "⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")", "√": "sqrt ", "∉": "not in", "∖": "\\",
    "µ": "u", "μ": "u", "⁰": "^0", "¹": "^1", "²": "^2", "³": "^3", "⁵": "^5", "⁶": "^6", "ⁿ": "^n", "⁻": "^-",
    "\u00a0": " ", "✓": "ok", "✔": "ok", "✗": "x", "✘": "x",
}  # fmt: skip
_LEVELS = dict(zip("▁▂▃▄▅▆▇█", "_.-~=+*#", strict=True))  # as in commands/terminal/sparkline.py


def prepare_streams() -> None:
    """Let stdout and stderr write every character, and stdin read every byte."""
    codecs.register_error(_HANDLER, _replace_unencodable)
    _set_errors(sys.stdout, _HANDLER, {"strict", "surrogateescape"})
    _set_errors(sys.stderr, _HANDLER, {"strict", "backslashreplace"})  # Python's default for stderr
    _set_errors(sys.stdin, "surrogateescape", {"strict"})


def _set_errors(stream: Any, errors: str, instead_of: set[str]) -> None:
    if getattr(stream, "errors", None) in instead_of and hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=errors)


def _replace_unencodable(exc: UnicodeError) -> tuple[str, int]:
    if not isinstance(exc, UnicodeEncodeError):
        raise exc
    return "".join(map(_ascii, exc.object[exc.start : exc.end])), exc.end


def _ascii(char: str) -> str:
    look_alike = _LOOK_ALIKES.get(char) or _LEVELS.get(char)
    if look_alike is not None:
        return look_alike
    if "\u2500" <= char <= "\u257f":
        return "-" if char in "─━┄┅┈┉╌╍═╴╶╸╺╼╾" else "|" if char in "│┃┆┇┊┋╎╏║╵╷╹╻╽╿" else "+"
    if "\u2580" <= char <= "\u259f":
        return "#"
    return char.encode("ascii", "backslashreplace").decode()


def is_utf8(stream: TextIO) -> bool:
    """Return True if the stream can encode every character. A stream without an encoding counts as UTF-8."""
    return (stream.encoding or "utf-8").lower().replace("_", "-") in {"utf-8", "utf8", "cp65001"}


def shown(text: str, stream: TextIO) -> str:
    """Return the text as the stream will write it, so that its width can be measured."""
    return text if text.isascii() or is_utf8(stream) else _through(text, stream, _HANDLER)


def escaped(text: str, stream: TextIO) -> str:
    """Return text for programs: escapes for characters that the encoding lacks, no look-alikes."""
    return text if text.isascii() or is_utf8(stream) else _through(text, stream, "backslashreplace")


def _through(text: str, stream: TextIO, errors: str) -> str:
    try:
        return text.encode(stream.encoding, errors).decode(stream.encoding)
    except (LookupError, UnicodeError):
        return text
