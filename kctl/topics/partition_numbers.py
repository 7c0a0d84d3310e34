"""Partition numbers as people write them: «0,3-5», as kafka-get-offsets takes ranges, both ends included."""

from __future__ import annotations

import re

from kctl.errors import UsageError

MOST = 100_000  # of a topic: 200 million took a controller's memory, although it should only check them
_PART = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


def parse_numbers(text: str) -> frozenset[int]:
    """Raises UsageError."""
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last >= MOST:
            raise UsageError(f"{text!r} is no list of partitions", hint="write for example 0,3-5")
        found.update(range(first, last + 1))
    return frozenset(found)
