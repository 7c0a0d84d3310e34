"""Not faster than a rate: how many records are due now."""

from __future__ import annotations

import re
import time

from kctl.errors import UsageError

_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(?:/(s|m|h))?")
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600}
_UNBOUNDED = 1 << 30
_BURST_S = 0.1  # what a slow moment left behind is not caught up beyond this


def parse_record_rate(text: str) -> float:
    """«100/s», «100», «6000/m», «10/h» in records per second. Raises UsageError."""
    match = _RATE.fullmatch(text.strip().replace(" ", ""))
    rate = float(match[1]) / _SECONDS[match[2]] if match else 0.0
    if not rate:
        raise UsageError(f"{text!r} is not a rate", hint="write for example 100/s, 6000/m or 10/h")
    return rate


class Pace:
    """per_s: None for no limit."""

    def __init__(self, per_s: float | None) -> None:
        self._per_s = per_s
        self._credit = 1.0
        self._seen = time.monotonic()

    def due(self) -> int:
        """How many records may be taken now."""
        if self._per_s is None:
            return _UNBOUNDED
        now = time.monotonic()
        most = max(1.0, self._per_s * _BURST_S)
        self._credit = min(most, self._credit + (now - self._seen) * self._per_s)
        self._seen = now
        return int(self._credit)

    def took(self, count: int) -> None:
        """So many were taken."""
        if self._per_s is not None:
            self._credit -= count

    def wait_s(self) -> float:
        """How long until the next one is due."""
        return 0.0 if self._per_s is None else max(0.0, (1 - self._credit) / self._per_s)
