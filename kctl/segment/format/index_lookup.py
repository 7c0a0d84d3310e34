"""Looking something up in an index file: a binary search that reads only the entries it needs.

Rules: AbstractIndex.largestLowerBoundSlotFor, OffsetIndex.lookup, TimeIndex.lookup. What is read here may have
zeros behind the entries, which a broker cuts off when it closes an index: they are not searched.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from kctl.segment.format.indexes import (
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    OffsetEntry,
    OffsetSlots,
    TimeEntry,
    TimeSlots,
)
from kctl.segment.log.source import Source


class Hit(NamedTuple):
    """number: of the entry, from 0; None: all entries are behind what was looked for. entries: how many are in use;
    odd_bytes: behind the last whole entry."""

    number: int | None
    entries: int
    odd_bytes: int


def offset_lookup(source: Source, base_offset: int, offset: int) -> tuple[OffsetEntry | None, Hit]:
    """The last entry of a .index that is not behind `offset`."""
    slots = OffsetSlots(source, base_offset)
    count = _used(slots, OffsetEntry(base_offset, 0))
    number = bisect_right(slots, offset, hi=count, key=lambda entry: entry.offset) - 1
    odd_bytes = source.size % OFFSET_ENTRY_SIZE
    return (None, Hit(None, count, odd_bytes)) if number < 0 else (slots[number], Hit(number, count, odd_bytes))


def time_lookup(source: Source, base_offset: int, timestamp: int) -> tuple[TimeEntry | None, Hit]:
    """The last entry of a .timeindex that is not younger than `timestamp` (ms)."""
    slots = TimeSlots(source, base_offset)
    count = _used(slots, TimeEntry(0, base_offset))
    number = bisect_right(slots, timestamp, hi=count, key=lambda entry: entry.timestamp) - 1
    odd_bytes = source.size % TIME_ENTRY_SIZE
    return (None, Hit(None, count, odd_bytes)) if number < 0 else (slots[number], Hit(number, count, odd_bytes))


def _used(slots: Sequence[object], nothing: object) -> int:
    """How many entries there are before the zeros: entries grow, and so only the first may be all zeros."""
    return bisect_left(range(len(slots)), True, key=lambda number: slots[number] == nothing)
