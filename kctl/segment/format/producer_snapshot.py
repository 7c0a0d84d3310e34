"""Decode producer snapshots (.snapshot): the state of idempotent producers at an offset.

Format: org.apache.kafka.storage.internals.log.ProducerStateManager, version 1.
"""

from __future__ import annotations

from typing import NamedTuple

from kctl.base.binary_layout import INT16, INT32, INT64, UINT32, Layout

VERSION = 1
_HEADER = Layout(
    version=INT16,
    crc=UINT32,  # CRC-32C of everything after this field
    entry_count=INT32,
)
# The fields of ProducerEntry.
_ENTRY = Layout(
    producer_id=INT64,
    producer_epoch=INT16,
    last_sequence=INT32,
    last_offset=INT64,
    offset_delta=INT32,
    timestamp=INT64,
    coordinator_epoch=INT32,
    current_transaction_first_offset=INT64,
)
_CRC_COVERS = _HEADER.end("crc")


class ProducerEntry(NamedTuple):
    """A producer. last_sequence, last_offset, offset_delta: of its last batch; last_offset -1: it has no batch.

    current_transaction_first_offset: -1 if no transaction is open.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int

    @property
    def first_sequence(self) -> int:
        """Return the first sequence number of the last batch; sequence numbers wrap to 0 after 2³¹−1."""
        from kctl.segment.format.batch import NO_SEQUENCE

        if self.last_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + 2**31


class BadSnapshot(ValueError):
    """A snapshot that a broker would discard. The message is the broker's."""


def parse_snapshot(data: bytes) -> list[ProducerEntry]:
    """Return the entries. Raises BadSnapshot for an unknown version, a wrong CRC, or a count that does not fit."""
    if len(data) < _HEADER.size:
        raise BadSnapshot("Snapshot failed schema validation: it is too short")
    version, crc, count = _HEADER.unpack_from(data)
    if version != VERSION:
        raise BadSnapshot(f"Snapshot contained an unknown file version {version}")
    from kctl.base.checksum import crc32c

    if crc32c(memoryview(data)[_CRC_COVERS:]) != crc:
        raise BadSnapshot(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. "
            f"Computed crc: {crc32c(memoryview(data)[_CRC_COVERS:])}"
        )
    end = _HEADER.size + count * _ENTRY.size
    if count < 0 or end > len(data):
        raise BadSnapshot(f"Snapshot failed schema validation: {count} entries in {len(data)} bytes")
    return [ProducerEntry(*fields) for fields in _ENTRY.iter_unpack(data[_HEADER.size : end])]
