"""What people write for offsets, times and keys of a segment."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from kctl.errors import UsageError

_OFFSETS = re.compile(r"([0-9]{0,19})\.\.([0-9]{0,19})")
_NUMBER = re.compile(r"[0-9]{1,19}")
_AGO = re.compile(r"-([0-9]{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


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


def parse_time(text: str, *, now_ms: int | None = None) -> int:
    """A moment in ms since 1970: ISO 8601 (UTC without a zone), milliseconds, or «-90m» for so long before now_ms.

    Raises UsageError.
    """
    if _NUMBER.fullmatch(text) and len(text) >= 10:
        return int(text) if len(text) > 10 else int(text) * 1000
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            now = datetime.now(timezone.utc) if now_ms is None else datetime.fromtimestamp(now_ms / 1000, timezone.utc)
            moment = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is not a time",
            hint="write 2024-05-01T12:00:00Z, 2024-05-01, milliseconds, or -90m for so long ago",
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1000)


def parse_pattern(option: str, text: str) -> re.Pattern[bytes]:
    """A regular expression for bytes. Raises UsageError."""
    try:
        return re.compile(text.encode("utf-8", "surrogateescape"))
    except (re.error, OverflowError, RecursionError) as exc:
        raise UsageError(f"{option} {text!r} is no regular expression: {exc}") from None
