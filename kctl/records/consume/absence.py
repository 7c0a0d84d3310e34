"""Topics that metadata do not name: a broker that has just started may not know them yet, so that one answer is no
proof that a topic was deleted."""

from __future__ import annotations

import time

GONE_S = 5.0  # missing for so long, in every answer, is deleted


class Absence:
    """What was missing, and since when."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def lasts(self, topic: str, *, missing: bool) -> bool:
        """After a look: whether the topic has been missing in all looks for GONE_S by now."""
        if not missing:
            self._since.pop(topic, None)
            return False
        now = time.monotonic()
        return now - self._since.setdefault(topic, now) >= GONE_S

    def __bool__(self) -> bool:
        """Something was missing at the last look."""
        return bool(self._since)
