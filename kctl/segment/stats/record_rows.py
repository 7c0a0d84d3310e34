"""Records in columns for statistics: without values, with the size of each record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from kctl.segment.dump.query import all_records, wrong_inner_crc
from kctl.segment.format.batch import LOG_OVERHEAD, V0_OVERHEAD, V1_OVERHEAD, V2_HEADER, Batch
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.record import BadRecords, Header, StoredRecord, read_varint
from kctl.segment.format.record_columns import record_columns, whole_payload
from kctl.segment.stats.cardinality import IDENTITY_BYTES, identity

_CHUNK = 1 << 12  # records of a batch whose records are read one by one


class RecordRows(NamedTuple):
    """Some records of a batch.

    identities: of keys. null_values: None if no value is null. header_counts: of the records with headers. sizes:
    uncompressed sizes of the records. stored: their shares of the bytes of the batch in the log.
    """

    identities: Sequence[bytes | None]
    key_bytes: int
    value_bytes: int
    null_values: Sequence[bool] | None
    header_counts: Sequence[int]
    header_bytes: int
    sizes: Sequence[int]
    stored: Sequence[int]
    timestamps: Sequence[int]


def record_rows(batch: Batch, content: memoryview, *, limit: int) -> Iterator[RecordRows]:
    """Yield all records of a batch: at once if nothing is unusual, otherwise in chunks.

    limit: bytes of a record. Raises BadRecords, BadPayload where the batch becomes unreadable; earlier rows are valid.
    """
    if not batch.legacy:
        payload = whole_payload(batch, content, limit=limit)
        rows = None if payload is None else _columns(batch, payload, len(content) - V2_HEADER)
        if rows is not None:
            yield rows
            return
    yield from _plain(batch, content, limit)


def _columns(batch: Batch, payload: bytes, stored_bytes: int) -> RecordRows | None:
    columns = record_columns(batch, payload)
    if columns is None:
        return None
    keys, values = columns.keys, columns.values
    same_key, same_value = columns.sizes or (None, None)
    key_bytes, longest_key = _lengths(keys, same_key)
    sizes = _record_sizes(payload, len(keys))
    return RecordRows(
        keys if longest_key < IDENTITY_BYTES else [None if key is None else identity(key) for key in keys],
        key_bytes,
        _lengths(values, same_value)[0],
        [value is None for value in values] if None in values else None,
        [len(headers) for headers in columns.headers.values()],
        sum(_headers_size(headers) for headers in columns.headers.values()),
        sizes,
        sizes if not batch.codec else [size * stored_bytes // len(payload) for size in sizes],
        columns.timestamps,
    )


def _lengths(texts: Sequence[bytes | None], same: int | None) -> tuple[int, int]:
    """Return the total and the longest length. same: the length of each text, -1 for null; None: they differ."""
    if same is not None:
        return max(same, 0) * len(texts), max(same, 0)
    sizes = [0 if text is None else len(text) for text in texts] if None in texts else list(map(len, texts))  # type: ignore[arg-type]
    return sum(sizes), max(sizes)


def _record_sizes(payload: bytes, count: int) -> list[int]:
    """Return the size of each record, including its length field. payload: of a batch without damage."""
    sizes: list[int] = []
    append = sizes.append
    position = 0
    for _ in range(count):
        byte = payload[position]
        if byte < 0x80:
            size = 1 + (byte >> 1)
        else:
            second = payload[position + 1]
            if second < 0x80:
                size = 2 + (byte >> 1 & 0x3F | second << 6)
            else:
                length, data_start = read_varint(payload, position)
                size = data_start - position + length
        append(size)
        position += size
    return sizes


def varint_size(number: int) -> int:
    """Return the size of a zigzag varint."""
    return max((number if number >= 0 else ~number).bit_length() + 7, 7) // 7


def _headers_size(headers: Sequence[Header]) -> int:
    size = varint_size(len(headers))
    for key, value in headers:
        size += varint_size(len(key)) + len(key) + varint_size(-1 if value is None else len(value)) + len(value or b"")
    return size


# --- one after the other --------------------------------------------------------------------------------------------


def _plain(batch: Batch, content: memoryview, limit: int) -> Iterator[RecordRows]:
    share = _share(batch, content, limit) if batch.codec else None
    records = all_records(batch, content, limit=limit)
    failed: BadRecords | BadPayload | None = None
    while failed is None:
        chunk: list[_PlainRow] = []
        try:
            for record in islice(records, _CHUNK):
                if not record.legacy_valid:
                    raise BadRecords(wrong_inner_crc(record))
                chunk.append(_row(batch, record))
        except (BadRecords, BadPayload) as exc:
            failed = exc
        if not chunk and failed is None:
            return
        if chunk:
            yield _rows(chunk, share)
    raise failed


class _PlainRow(NamedTuple):
    identity: bytes | None
    key_bytes: int
    value_bytes: int
    null_value: bool
    headers: int
    header_bytes: int
    size: int
    timestamp: int


def _row(batch: Batch, record: StoredRecord) -> _PlainRow:
    key, value = len(record.key or b""), len(record.value or b"")
    headers = _headers_size(record.headers)
    return _PlainRow(
        None if record.key is None else identity(record.key),
        key,
        value,
        record.value is None,
        len(record.headers),
        headers if record.headers else 0,
        _record_size(batch, record, headers),
        record.timestamp,
    )


def _record_size(batch: Batch, record: StoredRecord, headers: int) -> int:
    key, value = len(record.key or b""), len(record.value or b"")
    if batch.legacy:
        return LOG_OVERHEAD + (V1_OVERHEAD if batch.magic else V0_OVERHEAD) + key + value
    deltas = varint_size(record.offset - batch.base_offset)
    deltas += varint_size(0 if batch.log_append_time else record.timestamp - batch.base_timestamp)
    body = 1 + deltas + varint_size(key) + key + varint_size(value) + value + headers
    return body + varint_size(body)


def _rows(chunk: Sequence[_PlainRow], share: tuple[int, int] | None) -> RecordRows:
    sizes = [row.size for row in chunk]
    return RecordRows(
        [row.identity for row in chunk],
        sum(row.key_bytes for row in chunk),
        sum(row.value_bytes for row in chunk),
        [row.null_value for row in chunk],
        [row.headers for row in chunk if row.headers],
        sum(row.header_bytes for row in chunk),
        sizes,
        sizes if share is None else [size * share[0] // share[1] for size in sizes],
        [row.timestamp for row in chunk],
    )


def _share(batch: Batch, content: memoryview, limit: int) -> tuple[int, int]:
    """Return the bytes in the log and the decompressed bytes of the readable records of a batch."""
    total = 0
    try:
        for record in all_records(batch, content, limit=limit):
            total += _record_size(batch, record, _headers_size(record.headers))
    except (BadRecords, BadPayload):
        pass
    return len(content) - (0 if batch.legacy else V2_HEADER), max(total, 1)
