"""A rate limit for records."""

from __future__ import annotations

import re
import time

from kctl.errors import UsageError

_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(?:/(s|m|h))?")
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600}
_UNBOUNDED = 1 << 30
_BURST_S = 0.1  # the maximum backlog that is caught up after a delay


def parse_record_rate(text: str) -> float:
    """Parse "100/s", "100", "6000/m" or "10/h" into records per second. Raises UsageError."""
    match = _RATE.fullmatch(text.strip().replace(" ", ""))
    rate = float(match[1]) / _SECONDS[match[2]] if match else 0.0
    if not rate:
        raise UsageError(f"{text!r} is not a rate", hint="use e.g. 100/s, 6000/m or 10/h")
    return rate


class Pace:
    """A rate limit. per_s: None for no limit."""

    def __init__(self, per_s: float | None) -> None:
        self._per_s = per_s
        self._credit = 1.0
        self._updated = time.monotonic()

    def due(self) -> int:
        """Return how many records may be sent now."""
        if self._per_s is None:
            return _UNBOUNDED
        now = time.monotonic()
        burst = max(1.0, self._per_s * _BURST_S)
        self._credit = min(burst, self._credit + (now - self._updated) * self._per_s)
        self._updated = now
        return int(self._credit)

    def took(self, count: int) -> None:
        """Count records that were sent."""
        if self._per_s is not None:
            self._credit -= count

    def wait_s(self) -> float:
        """Return the time until the next record is due."""
        return 0.0 if self._per_s is None else max(0.0, (1 - self._credit) / self._per_s)
