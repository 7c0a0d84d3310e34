"""Waiting with a limit, and telling what for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """What a long operation tells while it runs."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


class NoProgress:
    """For callers that do not show any."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        pass


class Deadline:
    """A moment on the monotonic clock, made from seconds from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds that are left; 0 when it has passed."""
        return max(self._at - time.monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        return self.left_s == 0.0


def wait_until(check: Callable[[], bool], deadline: Deadline, *, every_s: float = 0.1) -> bool:
    """Poll until `check()` holds: True; False when the deadline passes first. It is asked at least once."""
    while True:
        if check():
            return True
        if deadline.passed:
            return False
        time.sleep(min(every_s, deadline.left_s))
