"""Batch headers: what a log is a sequence of.

Format: org.apache.kafka.common.record.DefaultRecordBatch (magic 2, KIP-98) and LegacyRecord (magic 0 and 1). All
numbers are big-endian. Every batch begins with its base offset and the length of what follows these 12 bytes:

    magic 2   0 baseOffset i64 | 8 length i32 | 12 partitionLeaderEpoch i32 | 16 magic i8 | 17 crc u32 (CRC-32C of all
              that follows) | 21 attributes i16 | 23 lastOffsetDelta i32 | 27 baseTimestamp i64 | 35 maxTimestamp i64 |
              43 producerId i64 | 51 producerEpoch i16 | 53 baseSequence i32 | 57 count i32 | 61 records
    magic 0,1 0 offset i64 | 8 length i32 | 12 crc u32 (CRC-32 of all that follows) | 16 magic i8 | 17 attributes i8 |
              18 timestamp i64 (magic 1) | key length i32, key | value length i32, value (−1: null)
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

LOG_OVERHEAD = 12  # base offset and length
HEADER_UP_TO_MAGIC = 17
V2_HEADER = 61
V0_OVERHEAD = 14  # crc, magic, attributes, two lengths: the least that the length can be
V1_OVERHEAD = 22
NO_TIMESTAMP = -1
NO_SEQUENCE = -1

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40

HEADER_V2 = struct.Struct(">qiibIhiqqqhii")
HEADER_V0 = struct.Struct(">qiIbb")
TIMESTAMP = struct.Struct(">q")
MAX_SEQUENCE = 2**31 - 1
_LONG = 1 << 64


class Batch(NamedTuple):
    """A batch header. position: in the file; size: of the whole batch in bytes.

    Of magic 0 and 1 there are: base_offset (its last offset when it is compressed), crc, attributes, max_timestamp
    (NO_TIMESTAMP for magic 0); the others have the values that mean «none».
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
        """Magic 0 or 1. Kafka reads every higher one as 2."""
        return self.magic < 2

    @property
    def unnumbered(self) -> bool:
        """A wrapper of magic 1 at offset 0, as old versions of librdkafka made them: its records can have later
        offsets."""
        return self.magic == 1 and self.base_offset == 0 and bool(self.codec)

    @property
    def last_offset(self) -> int:
        return wrap_long(self.base_offset + self.last_offset_delta)

    @property
    def next_position(self) -> int:
        return self.position + self.size

    @property
    def codec(self) -> int:
        """The id of the compression; CODECS has the names of 0 to 4, others are unknown."""
        return self.attributes & CODEC_MASK

    @property
    def codec_name(self) -> str:
        """none, gzip, snappy, lz4, zstd, or «unknown N»."""
        return CODECS[self.codec] if self.codec < len(CODECS) else f"unknown {self.codec}"

    @property
    def log_append_time(self) -> bool:
        """Whether timestamps are the broker's (then all records have max_timestamp) or the producer's."""
        return bool(self.attributes & TIMESTAMP_TYPE_MASK)

    @property
    def transactional(self) -> bool:
        return not self.legacy and bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def control(self) -> bool:
        """Markers of transactions and of KRaft, which no consumer sees."""
        return not self.legacy and bool(self.attributes & CONTROL_MASK)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers of this batch may go (KIP-534)."""
        return self.base_timestamp if not self.legacy and self.attributes & DELETE_HORIZON_MASK else None

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def wrap_long(value: int) -> int:
    """A 64-bit sum as Java has it, for headers whose numbers are garbage."""
    return value if -(2**63) <= value < 2**63 else (value + 2**63) % _LONG - 2**63


def increment_sequence(sequence: int, increment: int) -> int:
    """Sequence numbers begin at 0 again after 2³¹−1 (DefaultRecordBatch.incrementSequence)."""
    if sequence > MAX_SEQUENCE - increment:
        return increment - (MAX_SEQUENCE - sequence) - 1
    return sequence + increment


def parse_v2(data: bytes | memoryview, offset: int, position: int) -> Batch:
    """The header of magic 2 at `offset` of `data`, which has V2_HEADER bytes there. position: in the file."""
    (base, length, epoch, magic, crc, attributes, delta, first, last, producer, producer_epoch, sequence, count) = (
        HEADER_V2.unpack_from(data, offset)
    )
    return Batch(
        position, length + LOG_OVERHEAD, magic, base, epoch, crc, attributes, delta, first, last, producer,
        producer_epoch, sequence, count,
    )  # fmt: skip


def parse_legacy(data: memoryview, offset: int, position: int) -> Batch:
    """The header of magic 0 or 1 (or below) at `offset` of `data`, which has V0_OVERHEAD + LOG_OVERHEAD bytes there."""
    base, length, crc, magic, attributes = HEADER_V0.unpack_from(data, offset)
    timestamp = NO_TIMESTAMP
    if magic == 1 and offset + 26 <= len(data):
        timestamp = TIMESTAMP.unpack_from(data, offset + 18)[0]
    return Batch(
        position, length + LOG_OVERHEAD, magic, base, -1, crc, attributes & 0xFF, 0, timestamp, timestamp, -1, -1, -1, 1
    )


def crc_is_valid(batch: Batch, content: memoryview) -> bool:
    """Whether the checksum is that of the batch's bytes. content: the whole batch."""
    if batch.legacy:
        return batch.size >= V0_OVERHEAD + LOG_OVERHEAD and zlib.crc32(content[16:]) == batch.crc
    from kctl.base.checksum import crc32c

    return batch.size >= V2_HEADER and crc32c(content[21:]) == batch.crc
