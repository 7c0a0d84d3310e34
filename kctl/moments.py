"""Points in time as people write them, and back. Milliseconds since 1970 everywhere, as Kafka has them."""

from __future__ import annotations

import re
import time
from datetime import datetime, timezone

from kctl.errors import UsageError
from kctl.units import parse_duration_ms

MAX_MS = 253_402_300_799_999  # the last millisecond of the year 9999

_NUMBER = re.compile(r"[0-9]{10,19}")
_AGO = re.compile(r"-\s*([0-9][0-9.]*[a-z]+)|([0-9][0-9.]*\s*[a-z]+)\s+ago")


def parse_moment(text: str, *, now_ms: int | None = None) -> int:
    """A moment in ms: ISO 8601 (UTC without a zone), ms, seconds of ten digits, `now`, «-90m» or «90m ago».

    now_ms: from where so long ago is counted; the clock without. Raises UsageError.
    """
    if _NUMBER.fullmatch(text) and int(text) <= MAX_MS:  # requests have 64 bits for it, and datetime less
        return int(text) if len(text) > 10 else int(text) * 1000
    now = round(time.time() * 1000) if now_ms is None else now_ms
    if text == "now":
        return now
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            moment_ms = now - parse_duration_ms(ago[1] or ago[2])
            datetime.fromtimestamp(moment_ms / 1000, timezone.utc)  # is there such a moment?
            return moment_ms
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError, OSError, UsageError):
        raise UsageError(f"{text!r} is not a time", hint=_hint(text)) from None


def _hint(text: str) -> str:
    """What was meant: with a duration, so long ago."""
    duration = text.strip().lower()
    try:
        parse_duration_ms(duration)
    except UsageError:
        duration = ""
    if _AGO.fullmatch(f"-{duration}"):
        return f"for so long ago write -{duration} or '{duration} ago'"
    return "write 2024-05-01T12:00:00Z, 2024-05-01, milliseconds, now, or for so long ago -90m or '90m ago'"


def moment_text(ms: int) -> str | None:
    """ISO 8601 UTC; None for −1. Years before 0 and after 9999 have a sign and six digits or more."""
    if ms == -1:
        return None
    if not 0 <= ms <= MAX_MS:
        return _far(ms)
    moment = datetime.fromtimestamp(ms // 1000, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def _far(ms: int) -> str:
    """By the days of the proleptic Gregorian calendar, in eras of 400 years that begin on the first of March."""
    days, in_day = divmod(ms, 86_400_000)
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    months = (5 * day_of_year + 2) // 153  # since March
    day = day_of_year - (153 * months + 2) // 5 + 1
    month = months + 3 if months < 10 else months - 9
    year = year_of_era + era * 400 + (month <= 2)
    seconds, milliseconds = divmod(in_day, 1000)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+07d}"
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{shown}-{month:02d}-{day:02d}T{clock}.{milliseconds:03d}Z"
