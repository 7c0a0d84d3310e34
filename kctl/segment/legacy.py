"""Messages of magic 0 and 1: alone, or many of them compressed as the value of a wrapper.

Format: org.apache.kafka.common.record.LegacyRecord and AbstractLegacyRecordBatch (KIP-31, KIP-32). In a wrapper of
magic 1 the offsets inside are relative and the wrapper has the last one's; in magic 0 they are absolute.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

from kctl.segment.batch import LOG_OVERHEAD, NO_SEQUENCE, NO_TIMESTAMP, V0_OVERHEAD, Batch, wrap_long
from kctl.segment.compression import ZSTD, decompress
from kctl.segment.record import BadRecords, Record

_ENTRY = struct.Struct(">qi")
_HEAD = struct.Struct(">Ibb")  # crc, magic, attributes
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")


def legacy_records(batch: Batch, content: memoryview, *, limit: int) -> Iterator[Record]:
    """The records of a batch of magic 0 or 1. content: the whole batch; limit: of one message, in bytes.

    Raises BadRecords and BadPayload where reading on makes no sense.
    """
    if batch.magic not in {0, 1}:
        raise BadRecords(f"magic {batch.magic}")
    message = content[LOG_OVERHEAD:]
    if not batch.codec:
        yield _record(batch.base_offset, message)
        return
    if batch.codec == ZSTD:
        raise BadRecords(f"zstd in a message of magic {batch.magic}")
    value = _fields(message)[1]
    if value is None:
        raise BadRecords("a compressed message without a value")
    yield from _unwrapped(batch, list(_entries(batch, value, limit)))


def _unwrapped(batch: Batch, inner: list[tuple[int, bytes]]) -> Iterator[Record]:
    if not inner:
        raise BadRecords("a compressed message without messages in it")
    base = 0 if batch.magic == 0 else batch.base_offset - inner[-1][0]
    for offset, message in inner:
        record = _record(wrap_long(base + offset), memoryview(message))
        yield record._replace(timestamp=batch.max_timestamp) if batch.log_append_time and batch.magic else record


def _entries(batch: Batch, value: memoryview, limit: int) -> Iterator[tuple[int, bytes]]:
    """(offset as it stands there, message) of each inner message."""
    pieces = decompress(batch.codec, value, magic=batch.magic, limit=limit)
    data, position = b"", 0
    total = 0
    while True:
        data, position, there = _filled(data, position, LOG_OVERHEAD, pieces)
        if not there:  # as Java: what is no whole header any more is the end
            return
        offset, size = _ENTRY.unpack_from(data, position)
        if size < V0_OVERHEAD or size > limit:
            raise BadRecords(f"an inner message of {size} bytes")
        total += size
        if total > limit * 8:
            raise BadRecords(f"a compressed message with more than {limit * 8} bytes")
        data, position, there = _filled(data, position, LOG_OVERHEAD + size, pieces)
        if not there:
            return
        message = data[position + LOG_OVERHEAD : position + LOG_OVERHEAD + size]
        _, magic, attributes = _HEAD.unpack_from(message)
        if magic != batch.magic:
            raise BadRecords(f"a message of magic {magic} in a wrapper of magic {batch.magic}")
        if attributes & 7:
            raise BadRecords("a compressed message within a compressed message")
        yield offset, message
        position += LOG_OVERHEAD + size


def _filled(data: bytes, position: int, need: int, pieces: Iterable[bytes]) -> tuple[bytes, int, bool]:
    """`data` with pieces appended until `need` bytes stand at `position`; false when they end before."""
    if position + need <= len(data):
        return data, position, True
    parts = [data[position:]]
    have = len(parts[0])
    for piece in pieces:
        parts.append(piece)
        have += len(piece)
        if have >= need:
            return b"".join(parts), 0, True
    return b"".join(parts), 0, False


def _record(offset: int, message: memoryview) -> Record:
    crc, magic, _ = _HEAD.unpack_from(message)
    timestamp = _TIMESTAMP.unpack_from(message, 6)[0] if magic == 1 and len(message) >= 14 else NO_TIMESTAMP
    key, value = _fields(message)
    valid = zlib.crc32(message[4:]) == crc
    return Record(
        offset, timestamp, NO_SEQUENCE, None if key is None else bytes(key), None if value is None else bytes(value),
        (), crc, valid,
    )  # fmt: skip


def _fields(message: memoryview) -> tuple[memoryview | None, memoryview | None]:
    """Key and value. Raises BadRecords when they do not fit."""
    position = 14 if message[4] == 1 else 6
    found: list[memoryview | None] = []
    for name in ("key", "value"):
        if position + 4 > len(message):
            raise BadRecords("a message ends too early")
        (length,) = _LENGTH.unpack_from(message, position)
        position += 4
        if length < 0:
            found.append(None)
            continue
        if position + length > len(message):
            raise BadRecords(f"a {name} of {length} bytes, and {len(message) - position} are left")
        found.append(message[position : position + length])
        position += length
    return found[0], found[1]
