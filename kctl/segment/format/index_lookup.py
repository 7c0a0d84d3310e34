"""Look up an entry in an index file by binary search, reading only the entries needed.

Rules: AbstractIndex.largestLowerBoundSlotFor, OffsetIndex.lookup, TimeIndex.lookup. Zeros after the entries, which a
broker cuts off when it closes an index, are not searched.
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


class IndexHit(NamedTuple):
    """The result of a lookup.

    number: of the entry, from 0; None: all entries are above the target. entries: number of entries in use; odd_bytes:
    bytes after the last whole entry.
    """

    number: int | None
    entries: int
    odd_bytes: int


def offset_lookup(source: Source, base_offset: int, offset: int) -> tuple[OffsetEntry | None, IndexHit]:
    """Return the last entry of a .index at or below `offset`."""
    slots = OffsetSlots(source, base_offset)
    count = _used(slots, OffsetEntry(base_offset, 0))
    number = bisect_right(slots, offset, hi=count, key=lambda entry: entry.offset) - 1
    odd_bytes = source.size % OFFSET_ENTRY_SIZE
    return (
        (None, IndexHit(None, count, odd_bytes)) if number < 0 else (slots[number], IndexHit(number, count, odd_bytes))
    )


def time_lookup(source: Source, base_offset: int, timestamp: int) -> tuple[TimeEntry | None, IndexHit]:
    """Return the last entry of a .timeindex at or before `timestamp` (ms)."""
    slots = TimeSlots(source, base_offset)
    count = _used(slots, TimeEntry(0, base_offset))
    number = bisect_right(slots, timestamp, hi=count, key=lambda entry: entry.timestamp) - 1
    odd_bytes = source.size % TIME_ENTRY_SIZE
    return (
        (None, IndexHit(None, count, odd_bytes)) if number < 0 else (slots[number], IndexHit(number, count, odd_bytes))
    )


def _used(slots: Sequence[object], nothing: object) -> int:
    """Return the number of entries before the zeros. Entries grow, so only the first entry may equal `nothing`."""
    return bisect_left(range(len(slots)), True, key=lambda number: slots[number] == nothing)
