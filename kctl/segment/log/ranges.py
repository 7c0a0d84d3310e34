"""What people write for offsets and keys of a segment."""

from __future__ import annotations

import re

from kctl.errors import UsageError

_OFFSETS = re.compile(r"([0-9]{0,19})\.\.([0-9]{0,19})")
_NUMBER = re.compile(r"[0-9]{1,19}")


def parse_offsets(text: str) -> tuple[int | None, int | None]:
    """«A..B», both included, either left out; «A» alone. Raises UsageError."""
    if _NUMBER.fullmatch(text):
        return int(text), int(text)
    match = _OFFSETS.fullmatch(text)
    if match is None or not (match[1] or match[2]):
        raise UsageError(f"--offsets {text!r} is no range", hint="write A..B, A.. or ..B, for example 1000..2000")
    first, last = (int(part) if part else None for part in match.groups())
    if first is not None and last is not None and first > last:
        raise UsageError(f"--offsets {text}: {first} is behind {last}")
    return first, last


def parse_pattern(option: str, text: str) -> re.Pattern[bytes]:
    """A regular expression for bytes. Raises UsageError."""
    try:
        return re.compile(text.encode("utf-8", "surrogateescape"))
    except (re.error, OverflowError, RecursionError) as exc:
        raise UsageError(f"{option} {text!r} is not a valid regular expression: {exc}") from None
