"""Decode the records of a batch of magic 2 one by one (org.apache.kafka.common.record.DefaultRecord, KIP-82, KIP-98).

    length varint | attributes i8 | timestampDelta varlong | offsetDelta varint | key length varint, key |
    value length varint, value | header count varint | headers: key length varint, key, value length varint, value

Varints are zigzag (Protocol Buffers' sint32 and sint64); a length of -1 is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kctl.segment.format.batch import NO_SEQUENCE, Batch, increment_sequence, wrap_long

Header = tuple[bytes, bytes | None]


class BadRecords(ValueError):
    """The rest of a batch's records cannot be decoded. The message is the reason."""


class StoredRecord(NamedTuple):
    """A record. timestamp: ms; sequence: NO_SEQUENCE without a producer id.

    legacy_…: for magic 0 and 1 only. legacy_crc, legacy_valid: the message's CRC, and whether it matches;
    legacy_lengths: the stored lengths of key and value; legacy_problem: what is wrong with them.
    """

    offset: int
    timestamp: int
    sequence: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    legacy_crc: int = -1
    legacy_valid: bool = True
    legacy_lengths: tuple[int, int] | None = None
    legacy_problem: str | None = None


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return a zigzag varint of at most 10 bytes, and the position after it. Raises IndexError at the end of `data`."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise BadRecords("a varint is too long")


def records_of(
    batch: Batch, pieces: Iterable[bytes | memoryview], *, limit: int, keep_last: bool = False
) -> Iterator[StoredRecord]:
    """Yield the records of `batch`. pieces: the decompressed bytes after its header.

    limit: maximum bytes of a record. keep_last: if there are bytes after the last record, yield that record before
    raising; Kafka does not return it. Raises BadRecords if the rest cannot be decoded; the records yielded before are
    valid. Also raises the errors of `pieces`.
    """
    if batch.record_count < 0:
        raise BadRecords(f"the record count is {batch.record_count}")
    stream = _Stream(pieces)
    for number in range(batch.record_count):
        last = number == batch.record_count - 1
        body = stream.record(limit)
        if last and not keep_last:
            stream.check_end()
        yield _parse(batch, body)
        if last and keep_last:
            stream.check_end()


class _Stream:
    """A stream of byte pieces that is cut into records."""

    def __init__(self, pieces: Iterable[bytes | memoryview]) -> None:
        self._pieces = iter(pieces)
        self._data: bytes | memoryview = b""
        self._position = 0

    def record(self, limit: int) -> bytes | memoryview:
        """Return the next record without its length field. Raises BadRecords."""
        length, start = self._length()
        if length < 0 or length > limit:
            raise BadRecords(f"a record of {length} bytes")
        if start + length > len(self._data):
            before = self._position
            if not self._more(start + length - before):
                remaining = len(self._data) - (start - before + self._position)
                raise BadRecords(f"a record of {length} bytes, but only {remaining} bytes are left")
            start -= before
        body = self._data[start : start + length]
        self._position = start + length
        return body

    def check_end(self) -> None:
        """Raise BadRecords if bytes are left."""
        if self._position < len(self._data) or self._more():
            raise BadRecords("there are bytes after the last record")

    def _length(self) -> tuple[int, int]:
        while True:
            try:
                return read_varint(self._data, self._position)
            except IndexError:
                if not self._more():
                    raise BadRecords("the records end too early") from None

    def _more(self, need: int = 0) -> bool:
        """Append at least one piece, and more until there are `need` bytes. Return False if there are too few.

        Drops consumed bytes first: positions start at 0 again.
        """
        parts: list[bytes | memoryview] = [self._data[self._position :]] if self._position < len(self._data) else []
        have = initial = len(self._data) - self._position
        for piece in self._pieces:
            if len(piece):
                parts.append(piece)
                have += len(piece)
                if have >= need:
                    break
        self._data = parts[0] if len(parts) == 1 else b"".join(parts)
        self._position = 0
        return have > initial and have >= need


def _parse(batch: Batch, body: bytes | memoryview) -> StoredRecord:
    try:
        timestamp_delta, position = read_varint(body, 1)
        offset_delta, position = read_varint(body, position)
        key, position = _bytes(body, position)
        value, position = _bytes(body, position)
        headers, position = parse_headers(body, position)
    except IndexError:
        raise BadRecords("a record ends too early") from None
    if position != len(body):
        raise BadRecords(f"a record of {len(body)} bytes whose fields take {position} bytes")
    timestamp = batch.max_timestamp if batch.log_append_time else wrap_long(batch.base_timestamp + timestamp_delta)
    sequence = NO_SEQUENCE if batch.base_sequence < 0 else increment_sequence(batch.base_sequence, offset_delta)
    return StoredRecord(wrap_long(batch.base_offset + offset_delta), timestamp, sequence, key, value, headers)


def _bytes(body: bytes | memoryview, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(body, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(body):
        raise BadRecords(f"a key or value of {length} bytes, but only {len(body) - position} bytes are left")
    return bytes(body[position:end]), end


def parse_headers(body: bytes | memoryview, position: int) -> tuple[tuple[Header, ...], int]:
    """Return a record's headers and the position after them. Raises BadRecords, and IndexError at the end of `body`."""
    count, position = read_varint(body, position)
    if count == 0:
        return (), position
    if count < 0 or count > len(body) - position:
        raise BadRecords(f"{count} headers in {len(body) - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        key, position = _bytes(body, position)
        if key is None:
            raise BadRecords("a header without a key")
        value, position = _bytes(body, position)
        headers.append((key, value))
    return tuple(headers), position
