"""Detect deleted topics.

A broker that has just started may not know all topics yet, so one metadata response without a topic proves nothing.
"""

from __future__ import annotations

import time

DELETED_AFTER_S = 5.0  # a topic that is missing from every response for this long counts as deleted


class Absence:
    """The missing topics, and when each was first found missing."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def lasts(self, topic: str, *, missing: bool) -> bool:
        """Record one check of a topic. Return True if the topic has been missing for DELETED_AFTER_S."""
        if not missing:
            self._since.pop(topic, None)
            return False
        now = time.monotonic()
        return now - self._since.setdefault(topic, now) >= DELETED_AFTER_S

    def __bool__(self) -> bool:
        """Return True if a topic was missing at its last check."""
        return bool(self._since)
