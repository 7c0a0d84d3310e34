"""The format of the journals that the producer and the consumer of a validation write.

    header (40 bytes)  magic «KCTLVAL1», run (8 bytes), wall clock and monotonic clock at the beginning (int64 ns),
                       4 bytes of zeros, CRC-32 of what is before it
    entry (40 bytes)   uint8 kind, 3 bytes of zeros, uint32 partition, uint32 records, int64 sequence, int64 offset,
                       int64 moment (ns, monotonic clock), CRC-32 of what is before it; all little endian

An entry is about so many records whose sequences follow each other from `sequence` on, and their offsets from `offset`
on; −1 where there is none. CLOCK_MONOTONIC is one for all processes of a machine, so moments of the journals and of
faults can be compared; the header ties them to the calendar.

    SENT     is about to be sent: a record that may be in the log has such an entry, whatever happens to the process
    ACKED    offset: where the broker says that they are; −1 when it does not tell (acks=0)
    FAILED   they are not in the log, as far as brokers tell     UNKNOWN  sent, and no answer came
    READ     delivered to the consumer, in the order of the journal; sequence FOREIGN: not of this run
    STOPPING asked to stop, or left alone                        ENDED    an orderly end: nothing follows
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

SENT, ACKED, FAILED, UNKNOWN, READ, STOPPING, ENDED = range(1, 8)
KINDS = frozenset(range(SENT, ENDED + 1))
MAGIC = b"KCTLVAL1"
SIZE = 40
MAX_RECORDS = 1 << 24
_HEADER = struct.Struct("<8s8sqq4x")
_ENTRY = struct.Struct("<B3xIIqqq")
_CRC = struct.Struct("<I")


class Entry(NamedTuple):
    """See the module."""

    kind: int
    partition: int
    records: int
    sequence: int
    offset: int
    at_ns: int


class Header(NamedTuple):
    """run: 16 hex digits. wall_ns, monotonic_ns: both clocks at the same moment."""

    run: str
    wall_ns: int
    monotonic_ns: int


def encode(entry: Entry) -> bytes:
    data = _ENTRY.pack(*entry)
    return data + _CRC.pack(zlib.crc32(data))


def decode(data: bytes | memoryview) -> Entry | None:
    """None when its checksum is wrong or it makes no sense."""
    if _CRC.unpack_from(data, SIZE - 4)[0] != zlib.crc32(data[: SIZE - 4]):
        return None
    entry = Entry(*_ENTRY.unpack_from(data))
    return entry if entry.kind in KINDS and entry.records <= MAX_RECORDS else None


def encode_header(header: Header) -> bytes:
    data = _HEADER.pack(MAGIC, bytes.fromhex(header.run), header.wall_ns, header.monotonic_ns)
    return data + _CRC.pack(zlib.crc32(data))


def decode_header(data: bytes) -> Header | None:
    """None when it is none."""
    if len(data) != SIZE or _CRC.unpack_from(data, SIZE - 4)[0] != zlib.crc32(data[: SIZE - 4]):
        return None
    magic, run, wall_ns, monotonic_ns = _HEADER.unpack_from(data)
    return Header(run.hex(), wall_ns, monotonic_ns) if magic == MAGIC else None
