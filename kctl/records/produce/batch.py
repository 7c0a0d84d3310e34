"""Record batches of magic 2 for Produce requests (layout: kctl.segment.format.batch and .record).

A batch is filled record by record, then closed: its records become one block of bytes, compressed if requested. The
header is built for each attempt to send, because it contains the producer's sequence number.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from kctl.errors import NotSupported
from kctl.records.kafka_python_snappy import prepare_codecs
from kctl.records.produce.outgoing import Headers, Outgoing
from kctl.segment.format.batch import CODECS, NO_SEQUENCE, V2_HEADER, Batch, encode_v2
from kctl.segment.format.record import records_of

MAX_RECORDS = 16_384
_NULL = b"\x01"  # -1 as a varint
_OVERHEAD = 32  # upper bound of a record's other fields: length, attributes, deltas, two lengths, number of headers

Compress = Callable[[bytes], bytes]


def varint(value: int) -> bytes:
    """Encode a number as a zigzag varint: 7 bits per byte, the lowest first."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 0x80:
        return bytes((rest,))
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_DELTAS = [varint(number) for number in range(MAX_RECORDS)]


class _VarintCache(dict[int, bytes]):
    """A cache of varints with the bytes before and after them, by number."""

    def __init__(self, before: bytes, after: bytes) -> None:
        super().__init__()
        self._before, self._after = before, after

    def __missing__(self, number: int) -> bytes:
        encoded = self._before + varint(number) + self._after
        if number < 1 << 16:
            self[number] = encoded
        return encoded


_VALUE_LENGTH = _VarintCache(_NULL, b"")  # after a null key
# Record length, attributes, timestamp delta 0; preceded by the number of headers, 0, of the previous record.
_HEAD = _VarintCache(b"\0", b"\0\0")


def max_record_size(record: Outgoing) -> int:
    """Return an upper bound of the bytes that `record` takes up in a batch."""
    size = _OVERHEAD + len(record.key or b"") + len(record.value or b"")
    return size + sum(10 + len(name) + len(value or b"") for name, value in record.headers)


def smallest_batch(record: Outgoing) -> int:
    """Return the size of a batch with only `record`; max.message.bytes limits this size."""
    return V2_HEADER + len(_encode(record, 0, 0))


def _encode(record: Outgoing, number: int, timestamp_delta: int) -> bytes:
    body = b"".join(
        (
            b"\0", varint(timestamp_delta), varint(number), _sized(record.key), _sized(record.value),
            _headers(record.headers) if record.headers else b"\0",
        )
    )  # fmt: skip
    return varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return _NULL if data is None else varint(len(data)) + data


def _headers(headers: Headers) -> bytes:
    return varint(len(headers)) + b"".join(_sized(name) + _sized(value) for name, value in headers)


class OpenBatch:
    """The batch of one partition that is being filled.

    limit: the size in bytes at which it is full; a single record may be larger. numbers: the input lines of the
    records, for the report. created: monotonic time.
    """

    def __init__(self, partition: int, limit: int) -> None:
        self.partition = partition
        self.count = 0
        self.size = V2_HEADER
        self.content_bytes = 0
        self.created = time.monotonic()
        self._now_ms = int(time.time() * 1000)
        self._base_ms = self._max_ms = self._now_ms
        self._limit = limit
        self._parts: list[bytes] = []
        self.numbers = array("q")

    def add(self, record: Outgoing, number: int) -> bool:
        """Add `record`. Return False if it does not fit."""
        if self.count and (self.size + max_record_size(record) > self._limit or self.count == MAX_RECORDS):
            return False
        timestamp = self._now_ms if record.timestamp_ms is None else record.timestamp_ms
        if not self.count:
            self._base_ms = self._max_ms = timestamp
        data = _encode(record, self.count, timestamp - self._base_ms)
        self._parts.append(data)
        self._max_ms = max(self._max_ms, timestamp)
        self.count += 1
        self.size += len(data)
        self.content_bytes += len(record.key or b"") + len(record.value or b"")
        self.numbers.append(number)
        return True

    def add_values(self, values: Sequence[bytes], start: int, end: int, number: int) -> int:
        """Add values[start:end] as records without keys, as many as fit. Return the index after the last one added.

        number: the input line of values[start]. This is the hot loop of sending lines, so it avoids function calls.
        """
        if self._parts and self._base_ms != self._now_ms:
            return self._add_each(values, start, end, number)
        count, size, limit = self.count, self.size, self._limit - _OVERHEAD
        first, content = count, 0
        pieces: list[bytes] = []
        for value in values[start : min(end, start + MAX_RECORDS - count)]:
            length = len(value)
            if size + length > limit and count:
                break
            delta = _DELTAS[count]
            middle = _VALUE_LENGTH[length]
            body = length + len(delta) + len(middle) + 3
            head = _HEAD[body]
            pieces += (head, delta, middle, value)
            size += body + len(head) - 3
            content += length
            count += 1
        added = count - first
        if added:
            self._parts.append(b"".join(pieces)[1:] + b"\0")
            self.numbers.extend(range(number, number + added))
        self.count, self.size = count, size
        self.content_bytes += content
        return start + added

    def _add_each(self, values: Sequence[bytes], start: int, end: int, number: int) -> int:
        for index in range(start, end):
            if not self.add(Outgoing(None, values[index]), number + index - start):
                return index
        return end

    @property
    def full(self) -> bool:
        """Return True if another record would hardly fit."""
        return self.size + _OVERHEAD >= self._limit or self.count >= MAX_RECORDS

    def close(self, codec: str, compress: Compress | None) -> ClosedBatch:
        """Return the batch in the form in which it is sent."""
        payload = b"".join(self._parts)
        data = compress(payload) if compress else payload
        return ClosedBatch(
            self.partition, self.count, payload, data, CODECS.index(codec), self._base_ms, self._max_ms,
            numbers=self.numbers, content_bytes=self.content_bytes, created=self.created,
        )  # fmt: skip


class ClosedBatch:
    """A batch to be sent until it has an outcome.

    sequence: NO_SEQUENCE until it is assigned; never changed afterwards. perhaps_written: a response was lost, or only
    some replicas have the batch. base_offset: in the log, -1 while unknown; expected_offset: the offset that the
    writer expects, -1 if none. epoch: added to the producer's epoch.
    """

    def __init__(
        self,
        partition: int,
        count: int,
        payload: bytes,
        data: bytes,
        codec: int,
        base_ms: int,
        max_ms: int,
        *,
        numbers: array[int] | None = None,
        content_bytes: int = 0,
        created: float | None = None,
    ) -> None:
        """payload: the records; data: the payload, compressed with `codec`.

        If `records` is never called, payload may be the compressed data as well.
        """
        self.partition, self.count = partition, count
        self.numbers = array("q") if numbers is None else numbers
        self.content_bytes = content_bytes
        self.created = time.monotonic() if created is None else created
        self.size = V2_HEADER + len(payload)
        self.sequence = NO_SEQUENCE
        self.epoch = 0
        self.base_offset = self.expected_offset = -1
        self.sent = False
        self.turn = -1  # the position in the order of first attempts
        self.perhaps_written = False
        self.tries = 0
        self._payload, self._data, self._codec = payload, data, codec
        self._base_ms, self._max_ms = base_ms, max_ms

    def encode(self, producer_id: int, epoch: int) -> tuple[bytes, bytes]:
        """Return the header and the records."""
        header = encode_v2(
            self._data,
            attributes=self._codec,
            last_offset_delta=self.count - 1,
            base_timestamp=self._base_ms,
            max_timestamp=self._max_ms,
            producer_id=producer_id,
            producer_epoch=epoch + self.epoch,
            base_sequence=self.sequence,
            record_count=self.count,
        )
        return header, self._data

    @property
    def wire_bytes(self) -> int:
        return V2_HEADER + len(self._data)

    def records(self) -> Iterator[tuple[int, Outgoing]]:
        """Yield the records with their input lines."""
        batch = Batch(
            position=0, size=self.size, magic=2, base_offset=0, partition_leader_epoch=-1, crc=0, attributes=0,
            last_offset_delta=self.count - 1, base_timestamp=self._base_ms, max_timestamp=self._max_ms, producer_id=-1,
            producer_epoch=-1, base_sequence=NO_SEQUENCE, record_count=self.count,
        )  # fmt: skip
        records = records_of(batch, [self._payload], limit=len(self._payload))
        for number, record in zip(self.numbers, records, strict=True):
            yield number, Outgoing(record.key, record.value, record.headers, record.timestamp, self.partition)


def compressor(codec: str) -> Compress | None:
    """Return the compression function of a codec; None for "none". Raises NotSupported if its library is missing."""
    if codec == "none":
        return None
    prepare_codecs()
    from kafka import codec as codecs

    if not getattr(codecs, f"has_{codec}")():
        raise NotSupported(
            f"the {codec} library is not installed", hint="install kctl with its codecs: pip install 'kctl[codecs]'"
        )
    if codec == "gzip":
        return _gzip
    if codec == "zstd":
        return _zstd()
    encode: Compress = getattr(codecs, f"{codec}_encode")
    return encode


def _gzip(data: bytes) -> bytes:
    import zlib

    stream = zlib.compressobj(6, zlib.DEFLATED, 31)  # the level of Java's producer
    return stream.compress(data) + stream.flush()


def _zstd() -> Compress:
    import zstandard

    compressor = zstandard.ZstdCompressor(level=3)  # the level of Java's producer
    return lambda data: bytes(compressor.compress(data))


def numbers_of(batches: Iterable[ClosedBatch]) -> list[int]:
    """Return the input lines of the records, in order."""
    return sorted(number for batch in batches for number in batch.numbers)
