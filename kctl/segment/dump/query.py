"""Which batches and records a dump is about; what a header rules out is never decoded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kctl.segment.format.batch import V2_HEADER, Batch
from kctl.segment.format.compression import BadPayload, decompress
from kctl.segment.format.legacy import legacy_records
from kctl.segment.format.record import Record, records_of

MAX_MESSAGE_BYTES = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Query:
    """What to show. first, last: offsets; since_ms, until_ms: record timestamps, the second one excluded.

    key: a whole key. key_pattern, pattern: what occurs in the key; in key, value or a header. Those are looked for in
    the bytes. transactional: only such batches, or only others.
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
        """Whether any of its records can be wanted, by the header alone."""
        # Of an unknown magic nothing is known but where it begins.
        if self.first is not None and batch.last_offset < self.first and batch.magic >= 0 and not batch.unnumbered:
            return False
        # A compressed batch of magic 0 or 1 has its last record's offset: where it begins is not known.
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
        """Whether all of the records of a batch that it wants are wanted, by the header alone."""
        if self.about_records or self.since_ms is not None:
            return False
        if self.first is not None and batch.base_offset < self.first:
            return False
        return self.last is None or batch.last_offset <= self.last

    def wants_record(self, record: Record) -> bool:
        """The rest, for a record of a batch that is wanted."""
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
        """Whether it has conditions that only records can meet."""
        return not (self.until_ms is None and self.key is None and self.key_pattern is None and self.pattern is None)

    @staticmethod
    def _occurs(record: Record, pattern: re.Pattern[bytes]) -> bool:
        texts = (record.key, record.value, *(text for header in record.headers for text in header))
        return any(pattern.search(text) for text in texts if text is not None)


class Found(NamedTuple):
    """A batch that is wanted. content: the whole of it, good until the next one is asked for; valid: its CRC."""

    batch: Batch
    content: memoryview
    valid: bool


def find_records(found: Found, query: Query, *, limit: int = MAX_MESSAGE_BYTES) -> Iterator[Record]:
    """The records that are wanted. limit: of one, in bytes. Raises BadRecords, BadPayload behind what can be read."""
    return filter(query.wants_record, all_records(found.batch, found.content, limit=limit, keep_last=True))


def all_records(
    batch: Batch,
    content: memoryview,
    *,
    limit: int = MAX_MESSAGE_BYTES,
    keep_last: bool = False,
    lenient: bool = False,
) -> Iterator[Record]:
    """Every record of a batch. content: the whole batch; keep_last: see records_of; lenient: see legacy_records.

    Raises BadRecords, BadPayload.
    """
    if batch.legacy:
        return legacy_records(batch, content, limit=limit, lenient=lenient)
    payload = content[V2_HEADER:]
    pieces = decompress(batch.codec, payload, magic=batch.magic, limit=limit) if batch.codec else [payload]
    return records_of(batch, pieces, limit=limit, keep_last=keep_last)


def wrong_inner_crc(record: Record) -> str:
    """What is said of a message in a wrapper whose own CRC is wrong."""
    return f"the CRC of the inner message at offset {record.offset} does not match"


def may_hold(batch: Batch, content: memoryview, key: bytes, *, limit: int = MAX_MESSAGE_BYTES) -> bool:
    """False when these bytes are nowhere in a batch: much faster than its records. Damage may hold anything."""
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
