"""One point in time that several waits share."""

from __future__ import annotations

import time


class Deadline:
    """`seconds` from now, on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds until then; never negative."""
        return max(0.0, self._at - time.monotonic())

    @property
    def expired(self) -> bool:
        return self.left_s <= 0

    def at_most(self, seconds: float) -> Deadline:
        """The earlier of this and `seconds` from now."""
        return Deadline(min(seconds, self.left_s))
