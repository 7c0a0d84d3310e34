"""Decode messages of magic 0 and 1: single messages, or several compressed as the value of a wrapper message.

Format: org.apache.kafka.common.record.LegacyRecord and AbstractLegacyRecordBatch (KIP-31, KIP-32). In a wrapper of
magic 1, offsets are relative, and the wrapper's offset is that of the last message. In magic 0, offsets are absolute. A
wrapper of either magic can contain messages of both. Sizes and the wrapper's offset are validated before the first
message is returned, everything else message by message, as in DumpLogSegments and consumers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from kctl.base.binary_layout import INT32, INT64
from kctl.segment.format.batch import (
    BATCH_START,
    CODEC_MASK,
    CODECS,
    LOG_OVERHEAD,
    MESSAGE_V0,
    MESSAGE_V1,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    V0_OVERHEAD,
    Batch,
    wrap_long,
)
from kctl.segment.format.compression import ZSTD, decompress
from kctl.segment.format.record import BadRecords, StoredRecord

# Positions in a message, counted from the end of its offset and size.
_MAGIC_AT, _ATTRIBUTES_AT = MESSAGE_V0.offset("magic"), MESSAGE_V0.offset("attributes")
_CRC_COVERS, _TIMESTAMP_AT = MESSAGE_V0.end("crc"), MESSAGE_V1.offset("timestamp")
_BUFFERED_BYTES = 8 << 20  # of a wrapper's messages; a larger wrapper is decompressed twice


def legacy_records(batch: Batch, content: memoryview, *, limit: int, lenient: bool = False) -> Iterator[StoredRecord]:
    """Yield the records of a batch of magic 0 or 1. content: the whole batch; limit: maximum bytes of a message.

    lenient: yield a record whose key or value does not fit into its message, with `legacy_problem` set. Raises
    BadRecords or BadPayload if the rest cannot be decoded.
    """
    if batch.magic not in {0, 1}:
        raise BadRecords(f"magic {batch.magic}")
    message = content[LOG_OVERHEAD:]
    if not batch.codec:
        yield _record(batch, batch.base_offset, message, lenient=lenient)
        return
    if batch.codec == ZSTD:
        raise BadRecords(f"zstd in a message of magic {batch.magic}")
    _, (start, length) = _fields(message)
    if length < 0:
        raise BadRecords("a compressed message without a value")
    if start + length > len(message):
        raise BadRecords(_too_long("value", length, len(message) - start))
    for offset, inner in _absolute(batch, message[start : start + length], limit):
        codec = inner[_ATTRIBUTES_AT] & CODEC_MASK
        if codec:
            name = CODECS[codec] if codec < len(CODECS) else f"unknown compression type {codec}"
            raise BadRecords(f"a compressed message within a compressed message: {name}")
        yield _record(batch, offset, memoryview(inner), lenient=lenient)


def _absolute(batch: Batch, value: memoryview, limit: int) -> Iterator[tuple[int, bytes]]:
    """Yield (absolute offset, message) for each message in a wrapper."""
    buffered: list[tuple[int, bytes]] = []
    last, size = None, 0
    for last, message in _entries(batch, value, limit):
        size += len(message)
        if size <= _BUFFERED_BYTES:
            buffered.append((last, message))
    if last is None:
        raise BadRecords("a compressed message without messages in it")
    base = _base(batch, last)
    entries = buffered if size <= _BUFFERED_BYTES else _entries(batch, value, limit)
    return ((wrap_long(base + offset), message) for offset, message in entries)


def _base(batch: Batch, last: int) -> int:
    """Return what to add to the offsets in a wrapper. last: the stored offset of its last message."""
    if batch.magic == 0 or batch.base_offset == 0:  # old versions of librdkafka left the wrapper's offset at 0
        return 0
    if batch.base_offset < last:
        raise BadRecords(f"the last message in the wrapper at offset {batch.base_offset} has offset {last}")
    return wrap_long(batch.base_offset - last)


def _entries(batch: Batch, value: memoryview, limit: int) -> Iterator[tuple[int, bytes]]:
    """Yield (stored offset, message) for each message in a wrapper."""
    pieces = decompress(batch.codec, value, magic=batch.magic, limit=limit)
    data, position = b"", 0
    total = 0
    while True:
        data, position, complete = _filled(data, position, LOG_OVERHEAD, pieces)
        if not complete:  # like Java: an incomplete header ends the wrapper
            return
        offset, size = BATCH_START.unpack_from(data, position)
        if size < V0_OVERHEAD or size > limit:
            raise BadRecords(f"an inner message of {size} bytes")
        total += size
        if total > limit * 8:
            raise BadRecords(f"a compressed message with more than {limit * 8} bytes")
        data, position, complete = _filled(data, position, LOG_OVERHEAD + size, pieces)
        if not complete:
            return
        yield offset, data[position + LOG_OVERHEAD : position + LOG_OVERHEAD + size]
        position += LOG_OVERHEAD + size


def _filled(data: bytes, position: int, need: int, pieces: Iterable[bytes]) -> tuple[bytes, int, bool]:
    """Append pieces until `need` bytes are at `position`. Return data, position, and False if there are too few."""
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


def _record(batch: Batch, offset: int, message: memoryview, *, lenient: bool) -> StoredRecord:
    """Convert a message to a record. batch: the message itself, or its wrapper."""
    crc, magic, _ = MESSAGE_V0.unpack_from(message)
    (key_at, key_length), (value_at, value_length) = _fields(message)
    size, problem = len(message), None
    if key_at + key_length > size:
        problem = _too_long("key", key_length, size - key_at)
    elif value_at + value_length > size:
        problem = _too_long("value", value_length, size - value_at)
    if problem and not lenient:
        raise BadRecords(problem)
    key = None if key_length < 0 or problem else bytes(message[key_at : key_at + key_length])
    value = None if value_length < 0 or problem else bytes(message[value_at : value_at + value_length])
    return StoredRecord(
        offset, _timestamp(batch, magic, message), NO_SEQUENCE, key, value, (), crc,
        zlib.crc32(message[_CRC_COVERS:]) == crc, (key_length, value_length), problem,
    )  # fmt: skip


def _timestamp(batch: Batch, magic: int, message: memoryview) -> int:
    if magic == 0:
        return NO_TIMESTAMP
    if magic == 1 and batch.magic and batch.log_append_time:
        return batch.max_timestamp
    value: int = INT64.unpack_from(message, _TIMESTAMP_AT)[0]
    return value


def _fields(message: memoryview) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return (start, length) of the key and of the value, unchecked. Raises BadRecords if a length is missing."""
    start = (MESSAGE_V0 if message[_MAGIC_AT] == 0 else MESSAGE_V1).size + INT32.size
    key = start, _length(message, start)
    start += max(key[1], 0) + INT32.size
    return key, (start, _length(message, start))


def _length(message: memoryview, end: int) -> int:
    if end > len(message):
        raise BadRecords("a message ends too early")
    length: int = INT32.unpack_from(message, end - INT32.size)[0]
    return length


def _too_long(name: str, length: int, available: int) -> str:
    return f"a {name} of {length} bytes, but only {available} bytes are left"
