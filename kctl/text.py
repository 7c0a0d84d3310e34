"""Text from outside, made safe for a terminal."""

from __future__ import annotations

import re

# C0 and C1 controls, DEL, line and paragraph separators, bidirectional overrides (they reorder what a person
# reads: CVE-2021-42574) and lone surrogates. Tab and newline are escaped as well: a cell is one line.
UNSAFE = "\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"  # for a regex's class
_UNSAFE = re.compile(f"[{UNSAFE}]")
_HALF = re.compile("[\ud800-\udfff]")
_NOT_ASCII = re.compile("[^\x00-\x7f]+")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if char in _SHORT:
        return _SHORT[char]
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"


def printable(text: str) -> str:
    """`text` with every character that could steer a terminal replaced by its escape (`\\x1b`, `\\u202e`, …)."""
    return _UNSAFE.sub(_escape, text)


def printable_json(text: str) -> str:
    """JSON with the same characters as its own escapes (`\\u001b`): the same JSON. Newlines between values stay."""
    return _UNSAFE.sub(lambda match: match.group() if match.group() == "\n" else f"\\u{ord(match.group()):04x}", text)


def ascii_json(text: str) -> str:
    """JSON with all that is not ASCII as its own escapes: the same JSON in any encoding."""
    return text if text.isascii() else _NOT_ASCII.sub(_utf16_escapes, text)


def _utf16_escapes(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def encodable(text: str) -> bool:
    """Whether UTF-8 has it: half of a surrogate pair is in no encoding, though JSON and Python can write one."""
    return text.isascii() or not _HALF.search(text)


def with_escapes(text: str) -> str:
    """The text with what UTF-8 does not have as escapes (`\\ud800`, as JSON has them)."""
    return text if encodable(text) else text.encode("utf-8", "backslashreplace").decode()


def counted(number: int | None, noun: str, plural: str | None = None) -> str:
    """«1 partition», «1,200 partitions», «3 batches», «? partitions». plural: where it is no «s» or «ches»."""
    many = plural or (f"{noun}es" if noun.endswith("ch") else f"{noun}s")
    return f"? {many}" if number is None else f"{number:,} {noun if number == 1 else many}"
