"""Decode and encode batch headers. A log is a sequence of batches.

Format: org.apache.kafka.common.record.DefaultRecordBatch (magic 2, KIP-98) and LegacyRecord (magic 0 and 1). All
numbers are big-endian.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from kctl.base.binary_layout import INT8, INT16, INT32, INT64, UINT32, Layout

# Every batch begins with these fields.
BATCH_START = Layout(
    base_offset=INT64,  # offset of the first record; of the last one in a compressed batch of magic 0 and 1
    batch_length=INT32,  # bytes after this field
)
# A batch of magic 2. The records follow (kctl.segment.format.record).
BATCH_HEADER = Layout(
    **BATCH_START.fields,
    partition_leader_epoch=INT32,  # set by the leader that appends the batch
    magic=INT8,  # version of the format
    crc=UINT32,  # CRC-32C of everything after this field
    attributes=INT16,  # bits 0-2: codec; the other bits are the masks below
    last_offset_delta=INT32,  # last offset - base offset
    base_timestamp=INT64,  # ms; the records' timestamps are relative to it
    max_timestamp=INT64,  # ms
    producer_id=INT64,  # -1: not idempotent
    producer_epoch=INT16,
    base_sequence=INT32,  # sequence number of the first record
    record_count=INT32,
)
# A message of magic 0 without offset and size. The key and the value follow, each after its size as INT32 (-1: null).
MESSAGE_V0 = Layout(
    crc=UINT32,  # CRC-32 of everything after this field
    magic=INT8,
    attributes=INT8,  # bits 0-2: codec; bit 3, in magic 1: timestamp type
)
# A message of magic 1 without offset and size.
MESSAGE_V1 = Layout(
    **MESSAGE_V0.fields,
    timestamp=INT64,  # ms
)
LEGACY_HEADER = Layout(**BATCH_START.fields, **MESSAGE_V0.fields)
LEGACY_HEADER_V1 = Layout(**BATCH_START.fields, **MESSAGE_V1.fields)

LOG_OVERHEAD = BATCH_START.size
V2_HEADER = BATCH_HEADER.size
V0_OVERHEAD = MESSAGE_V0.size + 2 * INT32.size  # with the sizes of key and value: the smallest batch_length
V1_OVERHEAD = MESSAGE_V1.size + 2 * INT32.size
LENGTH_AT = BATCH_HEADER.offset("batch_length")  # as in magic 0 and 1
MAGIC_AT = BATCH_HEADER.offset("magic")  # as in magic 0 and 1
HEADER_UP_TO_MAGIC = BATCH_HEADER.end("magic")
CRC_COVERS = BATCH_HEADER.end("crc")  # start of the bytes that the CRC covers
LEGACY_CRC_COVERS = LEGACY_HEADER.end("crc")
_TIMESTAMP_AT = LEGACY_HEADER_V1.offset("timestamp")

NO_TIMESTAMP = -1
NO_SEQUENCE = -1

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40

MAX_SEQUENCE = 2**31 - 1
_LONG = 1 << 64


class Batch(NamedTuple):
    """A batch header. position: in the file; size: of the whole batch in bytes.

    Magic 0 and 1 have only base_offset (the last offset of a compressed batch), crc, attributes, and max_timestamp
    (NO_TIMESTAMP in magic 0). The other fields have the values that mean "none".
    """

    position: int
    size: int
    magic: int
    base_offset: int
    partition_leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def legacy(self) -> bool:
        """Return True for magic 0 or 1. Kafka reads every higher magic as 2."""
        return self.magic < 2

    @property
    def unnumbered(self) -> bool:
        """Return True for a wrapper of magic 1 at offset 0 (old librdkafka): its records can have higher offsets."""
        return self.magic == 1 and self.base_offset == 0 and bool(self.codec)

    @property
    def last_offset(self) -> int:
        return wrap_long(self.base_offset + self.last_offset_delta)

    @property
    def next_position(self) -> int:
        return self.position + self.size

    @property
    def codec(self) -> int:
        """Return the id of the codec. CODECS has the names of 0 to 4; other ids are unknown."""
        return self.attributes & CODEC_MASK

    @property
    def codec_name(self) -> str:
        """Return the name of the codec: none, gzip, snappy, lz4, zstd, or "unknown N"."""
        return CODECS[self.codec] if self.codec < len(CODECS) else f"unknown {self.codec}"

    @property
    def log_append_time(self) -> bool:
        """Return True if the broker set the timestamp (all records have max_timestamp), not the producer."""
        return bool(self.attributes & TIMESTAMP_TYPE_MASK)

    @property
    def transactional(self) -> bool:
        return not self.legacy and bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def control(self) -> bool:
        """Return True for transaction markers and KRaft control records. Consumers skip them."""
        return not self.legacy and bool(self.attributes & CONTROL_MASK)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Return the time (ms) from which compaction may remove this batch's tombstones and markers (KIP-534).

        None if it is not set.
        """
        return self.base_timestamp if not self.legacy and self.attributes & DELETE_HORIZON_MASK else None

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def wrap_long(value: int) -> int:
    """Wrap a sum to 64 bits like Java, for headers with arbitrary numbers."""
    return value if -(2**63) <= value < 2**63 else (value + 2**63) % _LONG - 2**63


def increment_sequence(sequence: int, increment: int) -> int:
    """Add to a sequence number, which wraps to 0 after 2³¹−1 (DefaultRecordBatch.incrementSequence)."""
    if sequence > MAX_SEQUENCE - increment:
        return increment - (MAX_SEQUENCE - sequence) - 1
    return sequence + increment


def parse_v2(data: bytes | memoryview, offset: int, position: int) -> Batch:
    """Parse the header of magic 2 at `offset` of `data`, which must have V2_HEADER bytes there.

    position: in the file.
    """
    (base, length, epoch, magic, crc, attributes, delta, first, last, producer, producer_epoch, sequence, count) = (
        BATCH_HEADER.unpack_from(data, offset)
    )
    return Batch(
        position, length + LOG_OVERHEAD, magic, base, epoch, crc, attributes, delta, first, last, producer,
        producer_epoch, sequence, count,
    )  # fmt: skip


def parse_legacy(data: memoryview, offset: int, position: int) -> Batch:
    """Parse the header of magic 0 or 1 (or negative) at `offset` of `data`.

    `data` must have V0_OVERHEAD + LOG_OVERHEAD bytes there.
    """
    base, length, crc, magic, attributes = LEGACY_HEADER.unpack_from(data, offset)
    timestamp = NO_TIMESTAMP
    if magic == 1 and offset + LEGACY_HEADER_V1.size <= len(data):
        timestamp = INT64.unpack_from(data, offset + _TIMESTAMP_AT)[0]
    return Batch(
        position, length + LOG_OVERHEAD, magic, base, -1, crc, attributes & 0xFF, 0, timestamp, timestamp, -1, -1, -1, 1
    )


def encode_v2(
    records: bytes, *, attributes: int, last_offset_delta: int, base_timestamp: int, max_timestamp: int,
    producer_id: int, producer_epoch: int, base_sequence: int, record_count: int,
) -> bytes:  # fmt: skip
    """Return the header of a new batch of magic 2. records: the bytes that follow the header, compressed or not.

    The broker sets the base offset and the leader epoch; the CRC does not cover them.
    """
    from kctl.base.checksum import crc32c

    header = bytearray(
        BATCH_HEADER.encode(
            base_offset=0, batch_length=V2_HEADER - LOG_OVERHEAD + len(records), partition_leader_epoch=-1, magic=2,
            crc=0, attributes=attributes, last_offset_delta=last_offset_delta, base_timestamp=base_timestamp,
            max_timestamp=max_timestamp, producer_id=producer_id, producer_epoch=producer_epoch,
            base_sequence=base_sequence, record_count=record_count,
        )
    )  # fmt: skip
    crc = crc32c(records, crc32c(memoryview(header)[CRC_COVERS:]))
    UINT32.pack_into(header, BATCH_HEADER.offset("crc"), crc)
    return bytes(header)


def crc_is_valid(batch: Batch, content: memoryview) -> bool:
    """Return True if the CRC matches. content: the whole batch."""
    if batch.legacy:
        return batch.size >= V0_OVERHEAD + LOG_OVERHEAD and zlib.crc32(content[LEGACY_CRC_COVERS:]) == batch.crc
    from kctl.base.checksum import crc32c

    return batch.size >= V2_HEADER and crc32c(content[CRC_COVERS:]) == batch.crc
