"""Timestamps of records, for people."""

from __future__ import annotations

from datetime import datetime, timezone

MAX_MS = 253_402_300_799_999  # the last millisecond of the year 9999


def timestamp_text(ms: int) -> str | None:
    """ISO 8601 UTC; None for −1; a number outside of years 1 to 9999 stays a number of milliseconds."""
    if ms == -1:
        return None
    if not 0 <= ms <= MAX_MS:
        return f"{ms} ms"
    moment = datetime.fromtimestamp(ms // 1000, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
