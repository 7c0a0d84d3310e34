"""The format of the journals that the producer and the consumer of a validation write.

The header and each entry are 40 bytes long.

An entry describes consecutive records, starting at `sequence` and at `offset`; -1 if there is none.
CLOCK_MONOTONIC is the same for all processes of a machine, so times of journals and faults are comparable; the header
relates them to the wall clock.

    SENT     about to be sent; written first, so every record in the log has this entry, even if the process is killed
    ACKED    acknowledged; offset: -1 if the broker reports none (acks=0)
    FAILED   not in the log, according to the brokers            UNKNOWN  sent, but without a response
    READ     delivered to the consumer, in journal order; sequence FOREIGN: not of this run
    STOPPING stop requested, or the parent has exited            ENDED    clean exit: no entry follows
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from kctl.base.binary_layout import INT64, LITTLE_ENDIAN, UINT8, UINT32, UINT32_LE, Layout, fixed_bytes, padding

SENT, ACKED, FAILED, UNKNOWN, READ, STOPPING, ENDED = range(1, 8)
KINDS = frozenset(range(SENT, ENDED + 1))
MAGIC = b"KCTLVAL1"
SIZE = 40
MAX_RECORDS = 1 << 24
# In the file, a CRC-32 of the fields follows each.
_HEADER = Layout(
    LITTLE_ENDIAN,
    magic=fixed_bytes(8),
    run=fixed_bytes(8),
    wall_ns=INT64,  # wall clock at the start of the journal
    monotonic_ns=INT64,  # CLOCK_MONOTONIC at the same time
    unused=padding(4),
)
_ENTRY = Layout(
    LITTLE_ENDIAN,
    kind=UINT8,
    unused=padding(3),
    partition=UINT32,
    records=UINT32,
    sequence=INT64,
    offset=INT64,
    at_ns=INT64,  # CLOCK_MONOTONIC
)
_CRC_AT = SIZE - UINT32_LE.size


class Entry(NamedTuple):
    """An entry of a journal; see the module docstring."""

    kind: int
    partition: int
    records: int
    sequence: int
    offset: int
    at_ns: int


class Header(NamedTuple):
    """The header of a journal. run: 16 hex digits. wall_ns, monotonic_ns: both clocks at the same time."""

    run: str
    wall_ns: int
    monotonic_ns: int


def encode(entry: Entry) -> bytes:
    data = _ENTRY.pack(*entry)
    return data + UINT32_LE.pack(zlib.crc32(data))


def decode(data: bytes | memoryview) -> Entry | None:
    """Return the entry, None if it is invalid."""
    if UINT32_LE.unpack_from(data, _CRC_AT)[0] != zlib.crc32(data[:_CRC_AT]):
        return None
    entry = Entry(*_ENTRY.unpack_from(data))
    return entry if entry.kind in KINDS and entry.records <= MAX_RECORDS else None


def encode_header(header: Header) -> bytes:
    data = _HEADER.pack(MAGIC, bytes.fromhex(header.run), header.wall_ns, header.monotonic_ns)
    return data + UINT32_LE.pack(zlib.crc32(data))


def decode_header(data: bytes) -> Header | None:
    """Return the header, None if it is invalid."""
    if len(data) != SIZE or UINT32_LE.unpack_from(data, _CRC_AT)[0] != zlib.crc32(data[:_CRC_AT]):
        return None
    magic, run, wall_ns, monotonic_ns = _HEADER.unpack_from(data)
    return Header(run.hex(), wall_ns, monotonic_ns) if magic == MAGIC else None
