"""Make untrusted text safe for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Parts of a regex's class. C0 and C1 controls, DEL, line and paragraph separators, marks and overrides of the text
# direction (they reorder what a person reads: CVE-2021-42574) and lone surrogates. Tab and newline are escaped as well:
# a cell is one line.
STEERING = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
# Invisible characters, which can make two names look alike: format characters, joiners, fillers, variation selectors
# and tags (Unicode's Default_Ignorable_Code_Point), and annotations.
INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
UNSAFE = STEERING + INVISIBLE
_UNSAFE = re.compile(f"[{UNSAFE}]")
_HALF = re.compile("[\ud800-\udfff]")
_NOT_ASCII = re.compile("[^\x00-\x7f]+")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text: str) -> str:
    """Return the text with control and invisible characters as escapes, e.g. `\\x1b`, `\\u202e`, `\\u200b`."""
    return _UNSAFE.sub(_escape, text)


def printable_json(text: str) -> str:
    """Return equal JSON with control and invisible characters as JSON escapes (`\\u001b`). Keeps line breaks."""
    return _UNSAFE.sub(lambda match: match.group() if match.group() == "\n" else _utf16_escapes(match), text)


def ascii_json(text: str) -> str:
    """Return equal JSON with non-ASCII characters as JSON escapes, which any encoding can represent."""
    return text if text.isascii() else _NOT_ASCII.sub(_utf16_escapes, text)


def _utf16_escapes(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def encodable(text: str) -> bool:
    """Return True if UTF-8 can encode the text. JSON and Python can contain half of a surrogate pair; UTF-8 cannot."""
    return text.isascii() or not _HALF.search(text)


def with_escapes(text: str) -> str:
    """Return the text with characters that UTF-8 cannot encode as escapes (`\\ud800`, as JSON has them)."""
    return text if encodable(text) else text.encode("utf-8", "backslashreplace").decode()


def some_of(names: Sequence[str], limit: int = 5) -> str:
    """Return the names, e.g. "a, b and 7 more"."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def counted(number: int | None, noun: str, plural: str | None = None) -> str:
    """Return "1 partition", "1,200 partitions", "3 batches" or "? partitions". plural: an irregular plural."""
    many = plural or (f"{noun}es" if noun.endswith("ch") else f"{noun}s")
    return f"? {many}" if number is None else f"{number:,} {noun if number == 1 else many}"
