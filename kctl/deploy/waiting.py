"""Waits with a time limit and progress messages."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from kctl.base.deadline import Deadline


class ProgressReporter(Protocol):
    """A receiver of the progress of a long operation."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


class NoProgress:
    """A reporter that shows nothing."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        pass


def wait_until(check: Callable[[], bool], deadline: Deadline, *, every_s: float = 0.1) -> bool:
    """Poll until `check()` returns True. Return False if the deadline passes first. Checks at least once."""
    while True:
        if check():
            return True
        if deadline.expired:
            return False
        time.sleep(min(every_s, deadline.left_s))
