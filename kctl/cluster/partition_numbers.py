"""Partition numbers as people write them: «0,3-5», as kafka-get-offsets takes ranges, both ends included; and what is
said of those that are not there."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from kctl.errors import NotFound, UsageError

MOST = 100_000  # of a topic: 200 million took a controller's memory, although it should only check them
_NAMED = 5
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


def parse_each(texts: Sequence[str] | None) -> list[int] | None:
    """The numbers of all texts, sorted; None for none given. Raises UsageError."""
    return sorted(frozenset[int]().union(*map(parse_numbers, texts))) if texts else None


def no_partition(topic: str, missing: Collection[int], count: int) -> NotFound:
    """The error for partitions that a topic of so many has not got."""
    named = ", ".join(map(str, sorted(missing)[:_NAMED]))
    more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
    there = f"it has 0 to {count - 1}" if count > 1 else "it has 0 alone" if count else None
    return NotFound(f"topic {topic} has no partition {named}{more}", hint=there)
