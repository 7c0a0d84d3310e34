"""Partition numbers as written on a command line: "0,3-5", ranges inclusive, as in kafka-get-offsets."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from kctl.errors import NotFound, UsageError

MOST = 100_000  # per topic: merely validating 200 million exhausted a controller's memory
_NAMED = 5
_PART = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


def parse_numbers(text: str) -> frozenset[int]:
    """Parse a list of partition numbers. Raises UsageError."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last >= MOST:
            raise UsageError(f"{text!r} is not a list of partitions", hint="use numbers and ranges, e.g. 0,3-5")
        numbers.update(range(first, last + 1))
    return frozenset(numbers)


def parse_each(texts: Sequence[str] | None) -> list[int] | None:
    """Return the numbers in all texts, sorted; None if there are no texts. Raises UsageError."""
    return sorted(frozenset[int]().union(*map(parse_numbers, texts))) if texts else None


def no_partition(topic: str, missing: Collection[int], count: int) -> NotFound:
    """Return the error for partitions that a topic with `count` partitions does not have."""
    listed = ", ".join(map(str, sorted(missing)[:_NAMED]))
    more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
    hint = f"it has partitions 0 to {count - 1}" if count > 1 else "it has only partition 0" if count else None
    return NotFound(f"topic {topic} has no partition {listed}{more}", hint=hint)
