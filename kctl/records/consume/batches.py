"""Decode the batches in a Fetch response into chunks of records that are visible to a consumer.

Control batches (transaction markers, KRaft control records) and the batches of aborted transactions that the response
names are skipped; both advance the position. Source: org.apache.kafka.clients.consumer.internals.CompletedFetch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kctl.errors import OperationFailed
from kctl.model import TopicPartition
from kctl.records.chunk import Chunk
from kctl.segment.format.batch import (
    LOG_OVERHEAD,
    MAGIC_AT,
    V0_OVERHEAD,
    V2_HEADER,
    Batch,
    crc_is_valid,
    parse_legacy,
    parse_v2,
)
from kctl.segment.format.compression import BadPayload, decompress
from kctl.segment.format.control import ABORT, control_type
from kctl.segment.format.legacy import legacy_records
from kctl.segment.format.record import BadRecords, Header, StoredRecord, records_of
from kctl.segment.format.record_columns import MAX_PAYLOAD_BYTES, record_columns, whole_payload

# The maximum size of a record, and of a block that a codec cannot split: as large as a response may be
# (connection.MAX_RESPONSE_BYTES).
LIMIT_BYTES = 256 << 20
_PIECE_RECORDS, _PIECE_BYTES = 1000, 4 << 20  # chunk size for batches that are decoded record by record


class Decoded(NamedTuple):
    """One step of decoding: records (None if none are visible), and the offset after them."""

    chunk: Chunk | None
    next_offset: int


class AbortedProducers:
    """The aborted transactions of one response, to be queried in log order."""

    def __init__(self, transactions: Iterable[tuple[int, int]]) -> None:
        """transactions: the producer id and first offset of each."""
        self._upcoming = sorted(transactions, key=lambda each: each[1], reverse=True)
        self._open: set[int] = set()

    def is_aborted(self, batch: Batch) -> bool:
        """Return True if the batch belongs to an aborted transaction. Call it for control batches, too."""
        while self._upcoming and self._upcoming[-1][1] <= batch.last_offset:
            self._open.add(self._upcoming.pop()[0])
        return batch.transactional and not batch.control and batch.producer_id in self._open

    def end(self, producer_id: int) -> None:
        """End the producer's transaction: its marker was read."""
        self._open.discard(producer_id)


def batches_in(data: bytes) -> Iterator[Batch]:
    """Yield the header of each complete batch; a batch that is cut off at the end is skipped."""
    view, position, end = memoryview(data), 0, len(data)
    while position + LOG_OVERHEAD + V0_OVERHEAD <= end:
        magic = data[position + MAGIC_AT]
        if magic < 2:
            batch = parse_legacy(view[:end], position, position)
        elif position + V2_HEADER > end:
            return
        else:
            batch = parse_v2(data, position, position)
        if batch.size < LOG_OVERHEAD + V0_OVERHEAD or batch.next_position > end:
            return
        yield batch
        position = batch.next_position


def next_offset(data: bytes, position: int) -> int:
    """Return the offset of the next Fetch. data: fetched from `position`."""
    for batch in batches_in(data):
        position = max(position, batch.last_offset + 1)
    return position


class VisibleBatch(NamedTuple):
    """A batch, and the offset after it. content: all of its bytes; None for markers and aborted transactions."""

    batch: Batch
    content: memoryview | None
    next_offset: int


def visible_batches(
    tp: TopicPartition, data: bytes, position: int, aborted: Iterable[tuple[int, int]] = ()
) -> Iterator[VisibleBatch]:
    """Yield the complete batches of a Fetch from offset `position`, with verified checksums. aborted: see `decode`.

    Raises OperationFailed for a damaged batch.
    """
    view, transactions = memoryview(data), AbortedProducers(aborted)
    any_complete = False
    for batch in batches_in(data):
        any_complete = True
        content = view[batch.position : batch.next_position]
        offset_after = max(position, batch.last_offset + 1)
        if not crc_is_valid(batch, content):
            raise damaged(tp, batch, "wrong checksum")
        is_aborted_batch = transactions.is_aborted(batch)
        if batch.control:
            try:
                _end_transaction(batch, content, transactions)
            except (BadRecords, BadPayload, IndexError) as exc:
                raise damaged(tp, batch, str(exc) or type(exc).__name__) from None
        hidden = batch.control or is_aborted_batch or offset_after <= position
        position = offset_after
        yield VisibleBatch(batch, None if hidden else content, position)
    if data and not any_complete:
        raise OperationFailed(
            f"partition {tp}: the broker returned no complete batch for offset {position}",
            hint=f"continue after it with --partition {tp.partition} --offset N",
        )


def decode_batch(
    tp: TopicPartition, batch: Batch, content: memoryview, position: int, *, max_bytes: int = MAX_PAYLOAD_BYTES
) -> Iterator[Chunk]:
    """Yield the records of one batch from offset `position`. Raises the errors of `decode`."""
    try:
        yield from _chunks(tp, batch, content, position, max_bytes)
    except (BadRecords, BadPayload, IndexError) as exc:
        raise damaged(tp, batch, str(exc) or type(exc).__name__) from None


def decode(
    tp: TopicPartition,
    data: bytes,
    position: int,
    aborted: Iterable[tuple[int, int]] = (),
    *,
    max_bytes: int = MAX_PAYLOAD_BYTES,
) -> Iterator[Decoded]:
    """Yield the records from offset `position`.

    aborted: the producer id and first offset of each aborted transaction. max_bytes: a batch that is larger when
    decompressed is yielded in small chunks, which is slower. Raises OperationFailed for a damaged batch, NotSupported
    for a batch whose codec is not installed; everything yielded before is valid.
    """
    for batch, content, offset_after in visible_batches(tp, data, position, aborted):
        if content is not None:
            for chunk in decode_batch(tp, batch, content, position, max_bytes=max_bytes):
                yield Decoded(chunk, chunk.offsets[-1] + 1)
        position = offset_after
        yield Decoded(None, position)


def damaged(tp: TopicPartition, batch: Batch, why: str) -> OperationFailed:
    """Return the error for an unreadable batch: its offsets, and how to continue after it."""
    first, last = min(batch.base_offset, batch.last_offset), batch.last_offset
    return OperationFailed(
        f"partition {tp}: the batch of offsets {first} to {last} is damaged ({why})",
        hint=f"continue after it with --partition {tp.partition} --offset {last + 1}",
        details={"topic": tp.topic, "partition": tp.partition, "offset": first, "next_offset": last + 1},
    )


def _end_transaction(batch: Batch, content: memoryview, transactions: AbortedProducers) -> None:
    if batch.producer_id < 0:  # a control batch of KRaft
        return
    for record in _records(batch, content):
        if control_type(record) == ABORT:
            transactions.end(batch.producer_id)
        return


def _chunks(tp: TopicPartition, batch: Batch, content: memoryview, position: int, max_bytes: int) -> Iterator[Chunk]:
    if not batch.legacy:
        payload = whole_payload(batch, content, limit=LIMIT_BYTES, max_bytes=max_bytes)
        columns = None if payload is None else record_columns(batch, payload)
        if columns is not None:
            chunk = Chunk(tp, columns.offsets, columns.timestamps, columns.keys, columns.values, columns.headers)
            begin = bisect_left(chunk.offsets, position) if chunk.offsets[0] < position else 0
            if begin < chunk.size:
                yield chunk.part(begin, chunk.size)
            return
    pending: list[StoredRecord] = []
    size = 0
    for record in _records(batch, content):
        if record.offset < position:
            continue
        pending.append(record)
        size += len(record.key or b"") + len(record.value or b"")
        if len(pending) >= _PIECE_RECORDS or size >= min(_PIECE_BYTES, max_bytes):
            yield chunk_of(tp, pending)
            pending, size = [], 0
    if pending:
        yield chunk_of(tp, pending)


def _records(batch: Batch, content: memoryview) -> Iterator[StoredRecord]:
    if not batch.legacy:
        pieces = (
            decompress(batch.codec, content[V2_HEADER:], magic=batch.magic, limit=LIMIT_BYTES)
            if batch.codec
            else iter([content[V2_HEADER:]])
        )
        yield from records_of(batch, pieces, limit=LIMIT_BYTES)
        return
    for record in legacy_records(batch, content, limit=LIMIT_BYTES):
        if not record.legacy_valid:
            raise BadRecords(f"wrong checksum of offset {record.offset}")
        yield record


def chunk_of(tp: TopicPartition, records: Sequence[StoredRecord]) -> Chunk:
    """Return records as columns."""
    headers: dict[int, tuple[Header, ...]] = {i: record.headers for i, record in enumerate(records) if record.headers}
    return Chunk(
        tp, [r.offset for r in records], [r.timestamp for r in records], [r.key for r in records],
        [r.value for r in records], headers,
    )  # fmt: skip
