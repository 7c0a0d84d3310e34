"""Check the records of one batch whose header and CRC are valid."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kctl.base.timestamps import format_timestamp
from kctl.segment.dump.query import all_records
from kctl.segment.format.batch import NO_TIMESTAMP, Batch
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.record import BadRecords
from kctl.segment.format.record_columns import record_columns, whole_payload

_Problem = tuple[str, str, int | None]  # code, message, and offset if it is not the batch's


def check_records(batch: Batch, content: memoryview, *, limit: int) -> Iterator[_Problem]:
    """Yield the problems of a batch's records. content: the whole batch; limit: maximum bytes of a record."""
    return iter(()) if _are_sound(batch, content, limit) else _check_each(batch, content, limit)


def _are_sound(batch: Batch, content: memoryview, limit: int) -> bool:
    """Return True if the columns of all records show no problem, the usual case."""
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


def _check_each(batch: Batch, content: memoryview, limit: int) -> Iterator[_Problem]:
    latest, previous, count = NO_TIMESTAMP, -1 if batch.legacy else batch.base_offset - 1, 0
    try:
        for record in all_records(batch, content, limit=limit):
            count += 1
            latest = max(latest, record.timestamp)
            if not record.legacy_valid:
                yield "batch_crc", "the CRC of an inner message does not match", record.offset
            if record.offset <= previous:
                yield "record_offsets", f"offset {record.offset} follows offset {previous}", record.offset
            previous = max(record.offset, previous)
    except (BadRecords, BadPayload) as exc:
        yield "records", f"unreadable after {count} records: {exc}", None
        return
    if previous > batch.last_offset and batch.unnumbered:
        yield "wrapper_offset", f"a wrapper message at offset 0 contains offsets up to {previous}", previous
    elif previous > batch.last_offset:
        yield "record_offsets", f"offset {previous} is above the batch's last offset {batch.last_offset}", previous
    if latest > batch.max_timestamp and not batch.legacy:
        maximum = format_timestamp(batch.max_timestamp) or "no time"
        text = f"a record has timestamp {format_timestamp(latest)}, but the maximum in the batch header is {maximum}"
        yield "record_timestamps", text, None
