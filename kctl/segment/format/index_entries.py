"""Index files read from front to back, in little memory: how many entries they have, whether they are in order.

Formats: kctl.segment.format.indexes. Zeros behind the entries are what a broker preallocates for its active segment
(segment.index.bytes): no index has an entry of zeros, for the first batch never gets one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kctl.segment.format.indexes import (
    OFFSET_ENTRY_SIZE,
    OFFSET_LAYOUT,
    TIME_ENTRY_SIZE,
    TIME_LAYOUT,
    TXN_ENTRY_SIZE,
    TXN_LAYOUT,
    AbortedTransaction,
)
from kctl.segment.log.source import Source

CHUNK_BYTES = 8 * 12 * 17 * 40  # whole entries of each kind
NEVER = 1 << 65  # behind every offset, position and timestamp, those of garbage too


@dataclass(frozen=True, slots=True)
class Extent:
    """entries: whole ones before the zero tail; tail_bytes: that tail; odd_bytes: behind the last whole entry."""

    entries: int
    tail_bytes: int
    odd_bytes: int


def extent(source: Source, entry_size: int) -> Extent:
    """How far an index file is filled."""
    filled, position = 0, source.next_data(0)
    while position < source.size:
        data = bytes(source.read(position, CHUNK_BYTES)).rstrip(b"\0")
        if data:
            filled = position + len(data)
        position = source.next_data(position + CHUNK_BYTES)
    whole = source.size - source.size % entry_size
    entries = min(-(-filled // entry_size), whole // entry_size)
    return Extent(entries, whole - entries * entry_size, source.size - whole)


def offset_entries(source: Source, count: int) -> Iterator[tuple[int, int]]:
    """(offset − base, position) of the first `count` entries."""
    for chunk in _chunks(source, count * OFFSET_ENTRY_SIZE):
        yield from OFFSET_LAYOUT.iter_unpack(chunk)


def time_entries(source: Source, count: int) -> Iterator[tuple[int, int]]:
    """(timestamp, offset − base) of the first `count` entries."""
    for chunk in _chunks(source, count * TIME_ENTRY_SIZE):
        yield from TIME_LAYOUT.iter_unpack(chunk)


def transaction_entries(source: Source, count: int) -> Iterator[AbortedTransaction]:
    """The first `count` entries of a .txnindex."""
    for chunk in _chunks(source, count * TXN_ENTRY_SIZE):
        yield from map(AbortedTransaction._make, TXN_LAYOUT.iter_unpack(chunk))


def _chunks(source: Source, size: int) -> Iterator[bytes]:
    for position in range(0, size, CHUNK_BYTES):
        length = min(CHUNK_BYTES, size - position)
        chunk = bytes(source.read(position, length))
        if len(chunk) < length:  # the file became shorter
            return
        yield chunk
