"""The selection of batches and records of a dump. Batches that the header rules out are never decoded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kctl.segment.format.batch import V2_HEADER, Batch
from kctl.segment.format.compression import BadPayload, decompress
from kctl.segment.format.legacy import legacy_records
from kctl.segment.format.record import StoredRecord, records_of

MAX_MESSAGE_BYTES = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Query:
    """A selection of batches and records.

    first, last: offsets, inclusive. since_ms, until_ms: record timestamps; until_ms is exclusive. key: a whole key.
    key_pattern: searched in the bytes of the key; pattern: in those of key, value and headers. transactional, control:
    True for only such batches, False for only others.
    """

    first: int | None = None
    last: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    key: bytes | None = None
    key_pattern: re.Pattern[bytes] | None = None
    pattern: re.Pattern[bytes] | None = None
    producer_id: int | None = None
    transactional: bool | None = None
    control: bool | None = None

    def wants_batch(self, batch: Batch) -> bool:
        """Return True if the header does not rule out all records."""
        # With an unknown magic, only the position is known.
        if self.first is not None and batch.last_offset < self.first and batch.magic >= 0 and not batch.unnumbered:
            return False
        # A compressed batch of magic 0 or 1 has the offset of its last record; its first offset is unknown.
        if self.last is not None and batch.base_offset > self.last and not (batch.legacy and batch.codec):
            return False
        if self.since_ms is not None and batch.magic != 0 and batch.max_timestamp < self.since_ms:
            return False
        if self.producer_id is not None and batch.producer_id != self.producer_id:
            return False
        if self.transactional is not None and batch.transactional != self.transactional:
            return False
        return self.control is None or batch.control == self.control

    def wants_all_of(self, batch: Batch) -> bool:
        """Return True if, by the header, all records of a matching batch match."""
        if self.about_records or self.since_ms is not None:
            return False
        if self.first is not None and batch.base_offset < self.first:
            return False
        return self.last is None or batch.last_offset <= self.last

    def wants_record(self, record: StoredRecord) -> bool:
        """Return True if a record of a matching batch matches."""
        if self.first is not None and record.offset < self.first:
            return False
        if self.last is not None and record.offset > self.last:
            return False
        if self.since_ms is not None and record.timestamp < self.since_ms:
            return False
        if self.until_ms is not None and record.timestamp >= self.until_ms:
            return False
        if self.key is not None and record.key != self.key:
            return False
        if self.key_pattern is not None and not (record.key is not None and self.key_pattern.search(record.key)):
            return False
        return self.pattern is None or self._occurs(record, self.pattern)

    @property
    def about_records(self) -> bool:
        """Return True if it has conditions on single records."""
        return not (self.until_ms is None and self.key is None and self.key_pattern is None and self.pattern is None)

    @staticmethod
    def _occurs(record: StoredRecord, pattern: re.Pattern[bytes]) -> bool:
        texts = (record.key, record.value, *(text for header in record.headers for text in header))
        return any(pattern.search(text) for text in texts if text is not None)


class MatchingBatch(NamedTuple):
    """A matching batch. content: all its bytes, valid until the next batch is read. valid: the CRC matches."""

    batch: Batch
    content: memoryview
    valid: bool


def find_records(match: MatchingBatch, query: Query, *, limit: int = MAX_MESSAGE_BYTES) -> Iterator[StoredRecord]:
    """Yield the matching records. limit: bytes of a record. Raises BadRecords, BadPayload after the readable ones."""
    return filter(query.wants_record, all_records(match.batch, match.content, limit=limit, keep_last=True))


def all_records(
    batch: Batch,
    content: memoryview,
    *,
    limit: int = MAX_MESSAGE_BYTES,
    keep_last: bool = False,
    lenient: bool = False,
) -> Iterator[StoredRecord]:
    """Yield every record of a batch. content: the whole batch; keep_last: see records_of; lenient: see legacy_records.

    Raises BadRecords, BadPayload.
    """
    if batch.legacy:
        return legacy_records(batch, content, limit=limit, lenient=lenient)
    payload = content[V2_HEADER:]
    pieces = decompress(batch.codec, payload, magic=batch.magic, limit=limit) if batch.codec else [payload]
    return records_of(batch, pieces, limit=limit, keep_last=keep_last)


def wrong_inner_crc(record: StoredRecord) -> str:
    """Return the problem of an inner message whose own CRC is wrong."""
    return f"the CRC of the inner message at offset {record.offset} does not match"


def may_hold(batch: Batch, content: memoryview, key: bytes, *, limit: int = MAX_MESSAGE_BYTES) -> bool:
    """Return False if the bytes do not occur in a batch; much faster than reading records. True for damaged batches."""
    if batch.legacy:
        return bool(batch.codec) or key in bytes(content)
    payload = content[V2_HEADER:]
    pieces = decompress(batch.codec, payload, magic=batch.magic, limit=limit) if batch.codec else [payload]
    tail = b""
    try:
        for piece in pieces:
            data = tail + bytes(piece)
            if key in data:
                return True
            tail = data[-len(key) :] if key else b""
    except BadPayload:
        return True
    return False
