"""Parse and format timestamps, in milliseconds since 1970, as in Kafka."""

from __future__ import annotations

import re
import time
from datetime import date, datetime, timezone

from kctl.base.units import parse_duration_ms
from kctl.errors import UsageError

MAX_MS = 253_402_300_799_999  # the last millisecond of the year 9999

_NUMBER = re.compile(r"[0-9]{10,19}")
# Digits alone that may be a date: 20260101000000, as ms, would be in the year 2612.
_LIKE_A_DATE = re.compile(
    r"(?:19|20|21)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[01][0-9]|2[0-4])[0-5][0-9](?:[0-5][0-9])?"
)
# Calendar and week dates of ISO 8601, basic and extended; lowercase letters and blanks of RFC 3339. Python's
# datetime.fromisoformat accepts different forms in each Python version.
_DATE = (
    r"(?P<year>[0-9]{4})(?P<dash>-?)"
    r"(?:(?P<month>[0-9]{2})(?P=dash)(?P<day>[0-9]{2})|W(?P<week>[0-9]{2})(?:(?P=dash)(?P<weekday>[1-7]))?)"
)
_TIME = (
    r"(?P<hour>[0-9]{2})(?:(?P<colon>:?)(?P<minute>[0-9]{2})"
    r"(?:(?P=colon)(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,18}))?)?)?"
)
_ZONE = r" ?(?P<zone>[Zz]|UTC|GMT|(?P<sign>[-+\u2212])(?P<zone_hour>[0-9]{2})(?::?(?P<zone_minute>[0-9]{2}))?)"
_ISO = re.compile(f"{_DATE}(?:[Tt ]{_TIME})?(?:{_ZONE})?")
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_AGO = re.compile(r"-\s*([0-9][0-9.]*[a-z]+)|([0-9][0-9.]*\s*[a-z]+)\s+ago")


def parse_timestamp(text: str, *, now_ms: int | None = None) -> int:
    """Return a time in ms: ISO 8601 (UTC if no zone is given), ms, seconds of ten digits, `now`, `-90m` or `90m ago`.

    now_ms: the base of relative times (default: the clock). Raises UsageError, also for times before 1970: to brokers,
    -1 and -2 mean the ends of the log.
    """
    if _LIKE_A_DATE.fullmatch(text):
        raise UsageError(
            f"{text!r} may be a date or milliseconds", hint=f"write a date with a T: {text[:8]}T{text[8:]}Z"
        )
    if _NUMBER.fullmatch(text) and int(text) <= MAX_MS:  # a request field has 64 bits, but datetime has a smaller range
        return int(text) if len(text) > 10 else int(text) * 1000
    now = round(time.time() * 1000) if now_ms is None else now_ms
    if text == "now":
        return now
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            moment_ms = now - parse_duration_ms(ago[1] or ago[2])
            if moment_ms < 0:
                raise ValueError(text)
            return moment_ms
        return _iso_ms(text)
    except (ValueError, OverflowError, OSError, UsageError):
        raise UsageError(f"{text!r} is not a time", hint=_hint(text)) from None


def _iso_ms(text: str) -> int:
    """Return an ISO 8601 time in ms. Raises ValueError, OverflowError.

    24:00 is the next day's 00:00. A leap second, 23:59:60 UTC, is the second after it.
    """
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError(text)
    part = {name: int(digits) for name, digits in match.groupdict().items() if digits and digits.isdigit()}
    if "week" in part:
        day = date.fromisocalendar(part["year"], part["week"], part.get("weekday", 1))
    else:
        day = date(part["year"], part["month"], part["day"])
    hour, minute, second = (part.get(name, 0) for name in ("hour", "minute", "second"))
    micros = int((match["fraction"] or "0")[:6].ljust(6, "0"))
    zone = part.get("zone_hour", 0) * 60 + part.get("zone_minute", 0)
    if part.get("zone_hour", 0) > 23 or part.get("zone_minute", 0) > 59 or hour > 24 or minute > 59 or second > 60:
        raise ValueError(text)
    if hour == 24 and (minute or second or micros):
        raise ValueError(text)
    seconds = (day.toordinal() - _EPOCH_DAY) * 86_400 + hour * 3600 + minute * 60 + second
    seconds -= zone * 60 * (1 if match["sign"] == "+" else -1)
    if second == 60 and seconds % 86_400:
        raise ValueError(text)
    ms = seconds * 1000 + (micros + 500) // 1000
    if not 0 <= ms <= MAX_MS:
        raise ValueError(text)
    return ms


def _hint(text: str) -> str:
    """Return a hint about the format: for a duration, how to write a relative time."""
    duration = text.strip().lower()
    try:
        parse_duration_ms(duration)
    except UsageError:
        duration = ""
    if _AGO.fullmatch(f"-{duration}"):
        return f"for a relative time, use -{duration} or '{duration} ago'"
    return "use 2024-05-01T12:00:00Z, 2024-05-01, milliseconds, now, -90m or '90m ago'"


def format_timestamp(ms: int) -> str | None:
    """Return ISO 8601 UTC; None for -1. Years before 0 and after 9999 have a sign and six or more digits."""
    if ms == -1:
        return None
    if not 0 <= ms <= MAX_MS:
        return _far(ms)
    moment = datetime.fromtimestamp(ms // 1000, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def _far(ms: int) -> str:
    """Format a time outside of Python's range, in eras of 400 years (proleptic Gregorian) that begin on March 1."""
    days, in_day = divmod(ms, 86_400_000)
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    months = (5 * day_of_year + 2) // 153  # since March
    day = day_of_year - (153 * months + 2) // 5 + 1
    month = months + 3 if months < 10 else months - 9
    year = year_of_era + era * 400 + (month <= 2)
    seconds, milliseconds = divmod(in_day, 1000)
    year_text = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+07d}"
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{year_text}-{month:02d}-{day:02d}T{clock}.{milliseconds:03d}Z"
