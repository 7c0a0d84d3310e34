"""Looking something up in an index file without reading it: a binary search that reads the entries it needs.

Rules: AbstractIndex.largestLowerBoundSlotFor, OffsetIndex.lookup, TimeIndex.lookup. The files' layout: indexes.py.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Generic, TypeVar, overload

from kctl.segment.indexes import OFFSET_ENTRY, TIME_ENTRY, OffsetEntry, TimeEntry
from kctl.segment.source import Source

_OFFSET = struct.Struct(">ii")
_TIME = struct.Struct(">qi")
Entry = TypeVar("Entry", OffsetEntry, TimeEntry)


class _Entries(Sequence[Entry], Generic[Entry]):
    """The entries of an index file as a sequence; each is read when it is asked for.

    Zeros behind the entries, as a broker allocates them for the active segment, do not count.
    """

    entry_bytes: int

    def __init__(self, source: Source, base_offset: int) -> None:
        """base_offset: of the segment."""
        self._source = source
        self._base = base_offset
        self.slots = source.size // self.entry_bytes
        # Entries grow, so that the first unused slot can be searched for: only the first entry may be all zeros.
        self._length = bisect_left(range(self.slots), True, key=self._is_unused)  # noqa: FBT003 - what is searched for

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, number: int) -> Entry: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Entry]: ...

    def __getitem__(self, number: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(number, slice):
            return [self._entry(each) for each in range(self._length)[number]]
        return self._entry(range(self._length)[number])

    @property
    def odd_bytes(self) -> int:
        """Behind the last whole entry; a broker builds such an index anew when it starts."""
        return self._source.size % self.entry_bytes

    def _raw(self, number: int) -> bytes:
        data = self._source.peek(number * self.entry_bytes, self.entry_bytes)
        return data if len(data) == self.entry_bytes else bytes(self.entry_bytes)  # the file became shorter

    def _is_unused(self, number: int) -> bool:
        return not any(self._raw(number))

    def _entry(self, number: int) -> Entry:
        raise NotImplementedError


class OffsetEntries(_Entries[OffsetEntry]):
    """Of a .index."""

    entry_bytes = OFFSET_ENTRY

    def _entry(self, number: int) -> OffsetEntry:
        relative, position = _OFFSET.unpack(self._raw(number))
        return OffsetEntry(self._base + relative, position)

    def last_up_to(self, offset: int) -> int | None:
        """The number of the last entry that is not behind `offset`."""
        return _before(bisect_right(self, offset, key=lambda entry: entry.offset))


class TimeEntries(_Entries[TimeEntry]):
    """Of a .timeindex."""

    entry_bytes = TIME_ENTRY

    def _entry(self, number: int) -> TimeEntry:
        timestamp, relative = _TIME.unpack(self._raw(number))
        return TimeEntry(timestamp, self._base + relative)

    def last_up_to(self, timestamp: int) -> int | None:
        """The number of the last entry that is not younger than `timestamp` (ms)."""
        return _before(bisect_right(self, timestamp, key=lambda entry: entry.timestamp))


def _before(number: int) -> int | None:
    return number - 1 if number else None
