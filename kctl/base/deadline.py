"""A deadline shared by several waits."""

from __future__ import annotations

import time


class Deadline:
    """A point in time, `seconds` from now on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Return the seconds until the deadline; never negative."""
        return max(0.0, self._at - time.monotonic())

    @property
    def expired(self) -> bool:
        return self.left_s <= 0

    def at_most(self, seconds: float) -> Deadline:
        """Return the earlier of this deadline and `seconds` from now."""
        return Deadline(min(seconds, self.left_s))
