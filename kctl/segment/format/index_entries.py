"""Read index files front to back in constant memory: count the entries, yield the entries.

Formats: kctl.segment.format.indexes. A broker preallocates the indexes of its active segment (segment.index.bytes), so
zeros follow the entries. No real entry is all zeros: the first batch of a segment never gets an entry.
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
NEVER = 1 << 65  # greater than any 64-bit offset, position and timestamp


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of an index file.

    entries: whole entries before the zero tail; tail_bytes: the zero tail; odd_bytes: bytes after the last whole entry.
    """

    entries: int
    tail_bytes: int
    odd_bytes: int


def extent(source: Source, entry_size: int) -> Extent:
    """Return how far an index file is filled."""
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
    """Yield (offset − base offset, position) of the first `count` entries."""
    for chunk in _chunks(source, count * OFFSET_ENTRY_SIZE):
        yield from OFFSET_LAYOUT.iter_unpack(chunk)


def time_entries(source: Source, count: int) -> Iterator[tuple[int, int]]:
    """Yield (timestamp, offset − base offset) of the first `count` entries."""
    for chunk in _chunks(source, count * TIME_ENTRY_SIZE):
        yield from TIME_LAYOUT.iter_unpack(chunk)


def transaction_entries(source: Source, count: int) -> Iterator[AbortedTransaction]:
    """Yield the first `count` entries of a .txnindex."""
    for chunk in _chunks(source, count * TXN_ENTRY_SIZE):
        yield from map(AbortedTransaction._make, TXN_LAYOUT.iter_unpack(chunk))


def _chunks(source: Source, size: int) -> Iterator[bytes]:
    for position in range(0, size, CHUNK_BYTES):
        length = min(CHUNK_BYTES, size - position)
        chunk = bytes(source.read(position, length))
        if len(chunk) < length:  # the file was truncated
            return
        yield chunk
