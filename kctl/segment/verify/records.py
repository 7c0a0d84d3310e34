"""Checking the records of one batch whose header and CRC are good."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kctl.base.moments import moment_text
from kctl.segment.dump.query import all_records
from kctl.segment.format.batch import NO_TIMESTAMP, Batch
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.record import BadRecords
from kctl.segment.format.record_columns import record_columns, whole_payload

_Found = tuple[str, str, int | None]  # a finding's code, message, and offset where it is not the batch's


def check_records(batch: Batch, content: memoryview, *, limit: int) -> Iterator[_Found]:
    """What is wrong with a batch's records. content: the whole batch; limit: of one record, in bytes."""
    return iter(()) if _are_sound(batch, content, limit) else _each(batch, content, limit)


def _are_sound(batch: Batch, content: memoryview, limit: int) -> bool:
    """Whether nothing has to be said of them, seen by all of them at once; mostly."""
    if batch.legacy or batch.control:
        return False
    payload = whole_payload(batch, content, limit=limit)
    columns = None if payload is None else record_columns(batch, payload)
    if columns is None:
        return False
    offsets = columns.offsets
    in_order = columns.consecutive or all(one < other for one, other in pairwise(offsets))
    inside = offsets[0] >= batch.base_offset and offsets[-1] <= batch.last_offset
    return in_order and inside and max(columns.timestamps) <= batch.max_timestamp


def _each(batch: Batch, content: memoryview, limit: int) -> Iterator[_Found]:
    latest, previous, count = NO_TIMESTAMP, -1 if batch.legacy else batch.base_offset - 1, 0
    try:
        for record in all_records(batch, content, limit=limit):
            count += 1
            latest = max(latest, record.timestamp)
            if not record.legacy_valid:
                yield "batch_crc", "the CRC is not that of an inner message", record.offset
            if record.offset <= previous:
                yield "record_offsets", f"offset {record.offset} comes behind {previous}", record.offset
            previous = max(record.offset, previous)
    except (BadRecords, BadPayload) as exc:
        yield "records", f"after {count} records: {exc}", None
        return
    if previous > batch.last_offset and batch.unnumbered:
        yield "wrapper_offset", f"a wrapper at offset 0 with offsets up to {previous}", previous
    elif previous > batch.last_offset:
        yield "record_offsets", f"offset {previous} is behind the batch's last, {batch.last_offset}", previous
    if latest > batch.max_timestamp and not batch.legacy:
        ends = moment_text(batch.max_timestamp) or "no time"
        text = f"a record of {moment_text(latest)} in a batch whose header says {ends} is the latest"
        yield "record_timestamps", text, None
