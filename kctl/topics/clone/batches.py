"""Convert source batches into batches for the target.

A batch that the target accepts keeps its encoded records: only the header is rewritten, and the payload is recompressed
if the codec differs. Everything else is decoded and encoded record by record: old formats, batches with offset gaps,
broker timestamps, and batches that are very small or too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kctl.model import TopicPartition
from kctl.records.consume.batches import LIMIT_BYTES, decode_batch, visible_batches
from kctl.records.produce.batch import ClosedBatch, Compress, OpenBatch
from kctl.records.produce.outgoing import Outgoing
from kctl.segment.format.batch import CODEC_MASK, CODECS, TRANSACTIONAL_MASK, V2_HEADER, Batch
from kctl.segment.format.record_columns import whole_payload

_NEW_BATCH_BYTES = 256 << 10
_MIN_PASSED_BYTES = 4 << 10  # smaller batches are joined, because a request holds one batch per partition
_MAX_PAYLOAD_BYTES = 8 << 20  # decompressed at once


class CopiedBatch(NamedTuple):
    """A batch for the target. next_offset: the source offset after its last record."""

    batch: ClosedBatch
    next_offset: int


@dataclass(frozen=True, slots=True)
class BatchFormat:
    """The format of the target's batches.

    compress: the function of `codec`; None for "none". max_bytes: the largest batch that the target accepts.
    """

    codec: str
    compress: Compress | None
    max_bytes: int

    @property
    def new_batch_bytes(self) -> int:
        """Return the size at which a batch of decoded records is full."""
        return min(_NEW_BATCH_BYTES, self.max_bytes)


def copied_batches(
    tp: TopicPartition, data: bytes, position: int, end: int, aborted: tuple[tuple[int, int], ...], target: BatchFormat
) -> Iterator[CopiedBatch]:
    """Yield the batches that hold the records of a Fetch from offset `position` up to offset `end`, in order.

    Raises OperationFailed for a damaged batch, NotSupported for a codec that is not installed.
    """
    joiner = _BatchJoiner(tp.partition, target)
    for batch, content, following in visible_batches(tp, data, position, aborted):
        if not batch.legacy and batch.base_offset >= end:
            break
        if content is not None:
            whole = position <= batch.base_offset and batch.last_offset < end
            encoded = _still_encoded(tp.partition, batch, content, target) if whole else None
            if encoded is not None:
                yield from joiner.close()
                yield CopiedBatch(encoded, batch.last_offset + 1)
            else:
                yield from _decoded(tp, batch, content, position, end, joiner)
        position = following
    yield from joiner.close()


def _still_encoded(partition: int, batch: Batch, content: memoryview, target: BatchFormat) -> ClosedBatch | None:
    """Return the batch with its encoded records; None if the records must be decoded."""
    if (
        batch.legacy
        or batch.attributes & ~(CODEC_MASK | TRANSACTIONAL_MASK)
        or batch.codec >= len(CODECS)
        or batch.record_count < 1
        or batch.record_count != batch.last_offset_delta + 1
        or batch.size < _MIN_PASSED_BYTES
    ):
        return None
    if batch.codec_name == target.codec:
        data = bytes(content[V2_HEADER:])
    else:
        payload = whole_payload(batch, content, limit=LIMIT_BYTES, max_bytes=_MAX_PAYLOAD_BYTES)
        if payload is None:
            return None
        data = target.compress(payload) if target.compress else payload
    if V2_HEADER + len(data) > target.max_bytes:
        return None
    return ClosedBatch(
        partition, batch.record_count, data, data, CODECS.index(target.codec), batch.base_timestamp,
        batch.max_timestamp,
    )  # fmt: skip


class _BatchJoiner:
    """Decoded records of successive batches, joined into larger batches."""

    def __init__(self, partition: int, target: BatchFormat) -> None:
        self._partition, self._target = partition, target
        self._open: OpenBatch | None = None
        self._next_offset = 0

    def add(self, record: Outgoing, offset: int) -> Iterator[CopiedBatch]:
        """Add a record; yield the current batch if the record does not fit."""
        if self._open is not None and not self._open.add(record, 0):
            yield from self.close()
        if self._open is None:
            self._open = OpenBatch(self._partition, self._target.new_batch_bytes)
            self._open.add(record, 0)
        self._next_offset = offset + 1

    def close(self) -> Iterator[CopiedBatch]:
        """Yield the open batch."""
        if self._open is not None:
            batch, self._open = self._open.close(self._target.codec, self._target.compress), None
            yield CopiedBatch(batch, self._next_offset)


def _decoded(
    tp: TopicPartition, batch: Batch, content: memoryview, position: int, end: int, joiner: _BatchJoiner
) -> Iterator[CopiedBatch]:
    for chunk in decode_batch(tp, batch, content, position):
        rows = zip(chunk.offsets, chunk.timestamps, chunk.keys, chunk.values, strict=True)
        for index, (offset, timestamp, key, value) in enumerate(rows):
            if offset >= end:
                return
            yield from joiner.add(Outgoing(key, value, chunk.headers_of(index), timestamp), offset)
