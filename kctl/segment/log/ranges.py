"""Parse offset ranges and key patterns from the command line."""

from __future__ import annotations

import re

from kctl.errors import UsageError

_OFFSETS = re.compile(r"([0-9]{0,19})\.\.([0-9]{0,19})")
_NUMBER = re.compile(r"[0-9]{1,19}")


def parse_offsets(text: str) -> tuple[int | None, int | None]:
    """Parse "A..B" (both included), "A..", "..B" or "A". Raises UsageError."""
    if _NUMBER.fullmatch(text):
        return int(text), int(text)
    match = _OFFSETS.fullmatch(text)
    if match is None or not (match[1] or match[2]):
        raise UsageError(f"--offsets {text!r} is not a range", hint="write A..B, A.. or ..B, e.g. 1000..2000")
    first, last = (int(part) if part else None for part in match.groups())
    if first is not None and last is not None and first > last:
        raise UsageError(f"--offsets {text}: {first} is greater than {last}")
    return first, last


def parse_pattern(option: str, text: str) -> re.Pattern[bytes]:
    """Compile a regular expression for bytes. Raises UsageError."""
    try:
        return re.compile(text.encode("utf-8", "surrogateescape"))
    except (re.error, OverflowError, RecursionError) as exc:
        raise UsageError(f"{option} {text!r} is not a valid regular expression: {exc}") from None
