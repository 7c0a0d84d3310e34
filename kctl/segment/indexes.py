"""The index files beside a log, as brokers map them.

.index      8 bytes an entry: offset − base i32, position i32 (OffsetIndex)
.timeindex  12 bytes: timestamp i64, offset − base i32 (TimeIndex)
.txnindex   34 bytes: version i16, producer id i64, first, last and last stable offset i64 (AbortedTxn, KIP-98)

An active segment's first two are preallocated, with zeros behind the entries; an entry of the base offset ends them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

OFFSET_ENTRY = 8
TIME_ENTRY = 12
TXN_ENTRY = 34
_WARM_BYTES = 8192
_OFFSET = struct.Struct(">ii")
_TIME = struct.Struct(">qi")
_TXN = struct.Struct(">hqqqq")


class OffsetEntry(NamedTuple):
    """offset: absolute; position: of its batch in the log file."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """No record up to `offset` is younger than `timestamp` (ms)."""

    timestamp: int
    offset: int


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted: consumers that read committed data leave out this producer's records."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def offset_entries(data: bytes, base_offset: int) -> list[OffsetEntry]:
    """Every whole entry, zeros behind the last one included."""
    whole = len(data) // OFFSET_ENTRY * OFFSET_ENTRY
    return [OffsetEntry(base_offset + relative, position) for relative, position in _OFFSET.iter_unpack(data[:whole])]


def time_entries(data: bytes, base_offset: int) -> list[TimeEntry]:
    """Every whole entry, zeros behind the last one included."""
    whole = len(data) // TIME_ENTRY * TIME_ENTRY
    return [TimeEntry(timestamp, base_offset + relative) for timestamp, relative in _TIME.iter_unpack(data[:whole])]


def transaction_entries(data: bytes) -> list[AbortedTransaction]:
    """Every whole entry."""
    whole = len(data) // TXN_ENTRY * TXN_ENTRY
    return [AbortedTransaction(*fields) for fields in _TXN.iter_unpack(data[:whole])]


def lookup(entries: Sequence[OffsetEntry], offset: int) -> int:
    """The position of the last entry that is not behind `offset`; 0 when there is none (AbstractIndex.lookup).

    On entries out of order it finds what a broker's binary search finds: the last 8 kB are searched first.
    """
    if not entries:
        return 0
    hot = max(0, len(entries) - 1 - _WARM_BYTES // OFFSET_ENTRY)
    if entries[hot].offset < offset:
        return entries[_search(lambda i: entries[i].offset, offset, hot, len(entries) - 1)].position
    if entries[0].offset > offset:
        return 0
    return entries[_search(lambda i: entries[i].offset, offset, 0, hot)].position


def _search(value: Callable[[int], int], target: int, low: int, high: int) -> int:
    while low < high:
        middle = (low + high + 1) // 2
        found = value(middle)
        if found > target:
            high = middle - 1
        elif found < target:
            low = middle
        else:
            return middle
    return low


def offset_index_problem(path: str, data: bytes, base_offset: int) -> str | None:
    """What OffsetIndex.sanityCheck says: then a broker builds the index anew when it starts."""
    entries = offset_entries(data, base_offset)
    if entries and entries[-1].offset < base_offset:
        return (
            f"Corrupt index found, index file ({path}) has non-zero size but the last offset is {entries[-1].offset} "
            f"which is less than the base offset {base_offset}."
        )
    return _odd_length(f"Index file {path}", len(data), OFFSET_ENTRY)


def time_index_problem(path: str, data: bytes, base_offset: int) -> str | None:
    """What TimeIndex.sanityCheck says."""
    entries = time_entries(data, base_offset)
    if entries:
        first, last = entries[0], entries[-1]
        begin = f"Corrupt time index found, time index file ({path}) has non-zero size but the last"
        if last.timestamp < first.timestamp:
            return f"{begin} timestamp is {last.timestamp} which is less than the first timestamp {first.timestamp}"
        if last.offset < base_offset:
            return f"{begin} offset is {last.offset} which is less than the first offset {base_offset}"
    return _odd_length(f"Time index file {path}", len(data), TIME_ENTRY)


def _odd_length(what: str, length: int, entry: int) -> str | None:
    if length % entry == 0:
        return None
    return f"{what} is corrupt, found {length} bytes which is neither positive nor a multiple of {entry}."
