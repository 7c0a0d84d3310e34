"""Look up an entry in an index file by binary search, reading only the entries needed.

Rules: AbstractIndex.largestLowerBoundSlotFor, OffsetIndex.lookup, TimeIndex.lookup. Zeros may follow the entries: a
broker cuts them off only when it closes an index.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

from kctl.segment.format.indexes import Entry, OffsetEntry, OffsetSlots, Slots, TimeEntry, TimeSlots
from kctl.segment.log.source import Source

_WARM_BYTES = 8192  # the part of an index that brokers search first


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
    return _look_up(OffsetSlots(source, base_offset), OffsetEntry(base_offset, 0), _offset, offset)


def time_lookup(source: Source, base_offset: int, timestamp: int) -> tuple[TimeEntry | None, IndexHit]:
    """Return the last entry of a .timeindex at or before `timestamp` (ms)."""
    return _look_up(TimeSlots(source, base_offset), TimeEntry(0, base_offset), lambda entry: entry.timestamp, timestamp)


def position_of(slots: OffsetSlots, offset: int) -> int:
    """Return the position of the last entry at or below `offset`; 0 if there is none.

    Searches the zeros after the entries too, like DumpLogSegments, which opens an index without cutting them off.
    """
    number = _lower_bound(slots, len(slots), _offset, offset)
    return 0 if number is None else slots[number].position


def _offset(entry: OffsetEntry) -> int:
    return entry.offset


def _look_up(
    slots: Slots[Entry], zeros: Entry, value: Callable[[Entry], int], target: int
) -> tuple[Entry | None, IndexHit]:
    """Return the last entry with a value of at most `target`. zeros: an unused entry as it is read."""
    # Entries are ascending, so only the first entry may equal the zeros.
    count = bisect_left(range(len(slots)), True, key=lambda number: slots[number] == zeros)
    number = _lower_bound(slots, count, value, target)
    return None if number is None else slots[number], IndexHit(number, count, slots.size_bytes % slots.layout.size)


def _lower_bound(slots: Slots[Entry], count: int, value: Callable[[Entry], int], target: int) -> int | None:
    """Return the number of the last of `count` entries with a value of at most `target`; None if there is none.

    Returns the broker's result even if entries are out of order: its binary search starts with the last 8 kB.
    """
    if not count:
        return None
    warm = max(0, count - 1 - _WARM_BYTES // slots.layout.size)
    if value(slots[warm]) < target:
        return _search(slots, warm, count - 1, value, target)
    if value(slots[0]) > target:
        return None
    return _search(slots, 0, warm, value, target)


def _search(slots: Slots[Entry], low: int, high: int, value: Callable[[Entry], int], target: int) -> int:
    while low < high:
        middle = (low + high + 1) // 2
        candidate = value(slots[middle])
        if candidate > target:
            high = middle - 1
        elif candidate < target:
            low = middle
        else:
            return middle
    return low
