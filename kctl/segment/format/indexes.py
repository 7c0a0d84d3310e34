"""The index files of a segment, read like a broker reads them.

The .index and .timeindex of an active segment are preallocated: zeros follow the entries. Zeros read as an entry with
the base offset, so after the first entry, such an entry marks the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar, overload

from kctl.base.binary_layout import INT16, INT32, INT64, Layout
from kctl.segment.log.source import Source

# An entry of a .index (OffsetIndex).
OFFSET_LAYOUT = Layout(
    relative_offset=INT32,  # offset - base offset of the segment
    position=INT32,  # of the offset's batch in the log
)
# An entry of a .timeindex (TimeIndex).
TIME_LAYOUT = Layout(
    timestamp=INT64,  # ms
    relative_offset=INT32,
)
# An entry of a .txnindex (AbortedTxn, KIP-98).
TXN_LAYOUT = Layout(
    version=INT16,
    producer_id=INT64,
    first_offset=INT64,
    last_offset=INT64,
    last_stable_offset=INT64,
)
OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE, TXN_ENTRY_SIZE = OFFSET_LAYOUT.size, TIME_LAYOUT.size, TXN_LAYOUT.size
_PIECE_ENTRIES = 1024


class OffsetEntry(NamedTuple):
    """An entry of a .index. offset: absolute; position: of the offset's batch in the log file."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """An entry of a .timeindex: no record up to `offset` has a later timestamp than `timestamp` (ms)."""

    timestamp: int
    offset: int


class AbortedTransaction(NamedTuple):
    """An entry of a .txnindex: read_committed consumers skip this producer's records from first_offset to last_offset.

    version: as stored, in two bytes.
    """

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    @property
    def version_read(self) -> int:
        """Return the version for brokers: AbortedTxn reads only the first byte. Brokers reject versions above 0."""
        return self.version >> 8


Entry = TypeVar("Entry", OffsetEntry, TimeEntry, AbortedTransaction)


class Slots(Sequence[Entry], Generic[Entry]):
    """All whole entries of an index file, including zeros after the last one; read piece by piece on demand."""

    layout: Layout

    def __init__(self, source: Source, base_offset: int) -> None:
        """Read entries from `source`. base_offset: of the segment."""
        self._source, self._base = source, base_offset
        self._piece, self._first = b"", 0
        self.size_bytes = source.size

    def __len__(self) -> int:
        return self.size_bytes // self.layout.size

    @overload
    def __getitem__(self, number: int) -> Entry: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Entry]: ...

    def __getitem__(self, number: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        number, size = range(len(self))[number], self.layout.size
        offset = (number - self._first) * size
        if not 0 <= offset < len(self._piece):
            piece = self._source.peek(number * size, _PIECE_ENTRIES * size)
            self._piece, self._first, offset = piece[: len(piece) // size * size] or bytes(size), number, 0
        return self._entry(*self.layout.unpack_from(self._piece, offset))

    def __iter__(self) -> Iterator[Entry]:
        for number in range(len(self)):
            yield self[number]

    def _entry(self, *fields: int) -> Entry:
        raise NotImplementedError


class OffsetSlots(Slots[OffsetEntry]):
    """The entries of a .index."""

    layout = OFFSET_LAYOUT

    def _entry(self, *fields: int) -> OffsetEntry:
        return OffsetEntry(self._base + fields[0], fields[1])


class TimeSlots(Slots[TimeEntry]):
    """The entries of a .timeindex."""

    layout = TIME_LAYOUT

    def _entry(self, *fields: int) -> TimeEntry:
        return TimeEntry(fields[0], self._base + fields[1])


class TransactionSlots(Slots[AbortedTransaction]):
    """The entries of a .txnindex."""

    layout = TXN_LAYOUT

    def _entry(self, *fields: int) -> AbortedTransaction:
        return AbortedTransaction(*fields)


def offset_index_problem(path: str, entries: OffsetSlots, base_offset: int) -> str | None:
    """Return the error of OffsetIndex.sanityCheck; None if there is none.

    On errors, a starting broker rebuilds the index.
    """
    if entries and entries[-1].offset < base_offset:
        return (
            f"Corrupt index found, index file ({path}) has non-zero size but the last offset is {entries[-1].offset} "
            f"which is less than the base offset {base_offset}."
        )
    return _odd_length(f"Index file {path}", entries.size_bytes, OFFSET_ENTRY_SIZE)


def time_index_problem(path: str, entries: TimeSlots, base_offset: int) -> str | None:
    """Return the error of TimeIndex.sanityCheck; None if there is none."""
    if entries:
        first, last = entries[0], entries[-1]
        prefix = f"Corrupt time index found, time index file ({path}) has non-zero size but the last"
        if last.timestamp < first.timestamp:
            return f"{prefix} timestamp is {last.timestamp} which is less than the first timestamp {first.timestamp}"
        if last.offset < base_offset:
            return f"{prefix} offset is {last.offset} which is less than the first offset {base_offset}"
    return _odd_length(f"Time index file {path}", entries.size_bytes, TIME_ENTRY_SIZE)


def _odd_length(subject: str, length: int, entry: int) -> str | None:
    if length % entry == 0:
        return None
    return f"{subject} is corrupt, found {length} bytes which is neither positive nor a multiple of {entry}."
