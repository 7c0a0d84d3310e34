"""Waiting with a limit, and telling what for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from kctl.base.deadline import Deadline


class Progress(Protocol):
    """What a long operation tells while it runs."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


class NoProgress:
    """For callers that do not show any."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        pass


def wait_until(check: Callable[[], bool], deadline: Deadline, *, every_s: float = 0.1) -> bool:
    """Poll until `check()` holds: True; False when the deadline passes first. It is asked at least once."""
    while True:
        if check():
            return True
        if deadline.expired:
            return False
        time.sleep(min(every_s, deadline.left_s))
