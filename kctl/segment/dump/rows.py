"""The rows of batches and records: typed, times in ISO 8601, bytes as text or base64.

Every row has its kind, so that one stream can contain rows of several kinds.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kctl.base.timestamps import format_timestamp
from kctl.segment.format.batch import NO_SEQUENCE, Batch
from kctl.segment.format.control import NAMES, control_problem, control_type, kraft_content
from kctl.segment.format.record import BadRecords, StoredRecord
from kctl.segment.format.release import Release


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch.

    valid: the magic is known and the CRC matches. damage: why it is not valid. Timestamps and producer fields are None
    if the batch has none; last_offset and codec are None with an unknown magic.
    """

    kind: str = field(default="batch", init=False)
    file: str
    position: int
    size_bytes: int
    magic: int
    base_offset: int
    last_offset: int | None
    count: int | None
    partition_leader_epoch: int | None
    timestamp_type: str | None
    base_timestamp: str | None
    max_timestamp: str | None
    codec: str | None
    producer_id: int | None
    producer_epoch: int | None
    base_sequence: int | None
    last_sequence: int | None
    transactional: bool
    control: bool
    delete_horizon: str | None
    crc: int
    valid: bool
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class HeaderRow:
    """A header of a record."""

    key: str
    key_encoding: str
    value: str | None
    value_encoding: str | None


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record. position: of its batch in the file.

    The encodings are utf-8 or base64, None for null; with a decoder also json (an object), long, integer or double (a
    number). control: ABORT, COMMIT and so on. valid: the CRC of the batch or (magic 0 and 1) of the message matches.
    decode_error: why the decoder could not read the record.
    """

    kind: str = field(default="record", init=False)
    file: str
    position: int
    offset: int
    timestamp: str | None
    timestamp_type: str | None
    key: Any
    key_encoding: str | None
    value: Any
    value_encoding: str | None
    key_size_bytes: int | None
    value_size_bytes: int | None
    headers: tuple[HeaderRow, ...]
    producer_id: int | None
    sequence: int | None
    transactional: bool
    control: str | None
    valid: bool
    decode_error: str | None = None


@dataclass(frozen=True, slots=True)
class DamageRow:
    """Unreadable bytes. position: in the file. size_bytes: number of skipped bytes."""

    kind: str = field(default="damage", init=False)
    file: str
    position: int
    size_bytes: int
    damage: str


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note about a file that is not damage: unused bytes, or a truncation while the file is followed."""

    kind: str = field(default="note", init=False)
    file: str
    position: int
    size_bytes: int
    note: str


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """The key and value of a record as in a row. error: why they could not be decoded."""

    key: Any
    key_encoding: str | None
    value: Any
    value_encoding: str | None
    error: str | None = None


RowDecoder = Callable[[StoredRecord], DecodedRecord]


def plain(record: StoredRecord, *, error: str | None = None) -> DecodedRecord:
    """Return key and value as text or base64."""
    return DecodedRecord(*encoded(record.key), *encoded(record.value), error)


def encoded(data: bytes | None, *, text: bool = True) -> tuple[str | None, str | None]:
    """Return the text and its encoding: UTF-8 if valid and `text` is set, otherwise base64."""
    if data is None:
        return None, None
    try:
        if text:
            return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        pass
    return base64.b64encode(data).decode(), "base64"


def timestamp_type(batch: Batch) -> str | None:
    """Return CreateTime or LogAppendTime; None for magic 0, which has no timestamps."""
    if batch.magic == 0:
        return None
    return "LogAppendTime" if batch.log_append_time else "CreateTime"


def batch_row(file: str, batch: Batch, *, valid: bool, damage: str | None = None) -> BatchRow:
    """Return the row of a batch header. damage: why the batch is not valid."""
    old, unknown = batch.legacy, batch.magic < 0
    return BatchRow(
        file=file,
        position=batch.position,
        size_bytes=batch.size,
        magic=batch.magic,
        base_offset=batch.base_offset,
        last_offset=None if unknown else batch.last_offset,
        count=None if old else batch.record_count,
        partition_leader_epoch=None if old else _or_none(batch.partition_leader_epoch),
        timestamp_type=None if unknown else timestamp_type(batch),
        base_timestamp=None if old else format_timestamp(batch.base_timestamp),
        max_timestamp=format_timestamp(batch.max_timestamp),
        codec=None if unknown else batch.codec_name,
        producer_id=_or_none(batch.producer_id),
        producer_epoch=_or_none(batch.producer_epoch),
        base_sequence=_or_none(batch.base_sequence),
        last_sequence=None if old else _or_none(batch.last_sequence),
        transactional=batch.transactional,
        control=batch.control,
        delete_horizon=None if batch.delete_horizon_ms is None else format_timestamp(batch.delete_horizon_ms),
        crc=batch.crc,
        valid=valid,
        damage=damage,
    )


def record_row(
    file: str, batch: Batch, record: StoredRecord, *, valid: bool, decode: RowDecoder | None = None
) -> RecordRow:
    """Return the row of a record.

    decode: decoder instead of text or base64. Control records have their own: those of KRaft become objects.
    """
    if batch.control:
        decoded = _decoded_control(record, objects=decode is not None)
    else:
        decoded = plain(record) if decode is None else decode(record)
    return RecordRow(
        file=file,
        position=batch.position,
        offset=record.offset,
        timestamp=format_timestamp(record.timestamp),
        timestamp_type=timestamp_type(batch),
        key=decoded.key,
        key_encoding=decoded.key_encoding,
        value=decoded.value,
        value_encoding=decoded.value_encoding,
        key_size_bytes=None if record.key is None else len(record.key),
        value_size_bytes=None if record.value is None else len(record.value),
        headers=tuple(_header(*header) for header in record.headers),
        producer_id=_or_none(batch.producer_id),
        sequence=None if record.sequence == NO_SEQUENCE else record.sequence,
        transactional=batch.transactional,
        control=_control(record) if batch.control else None,
        valid=valid and record.legacy_valid,
        decode_error=decoded.error,
    )


def _header(key: bytes, value: bytes | None) -> HeaderRow:
    text, encoding = encoded(key)
    assert text is not None
    assert encoding is not None
    return HeaderRow(text, encoding, *encoded(value))


def _decoded_control(record: StoredRecord, *, objects: bool) -> DecodedRecord:
    try:
        content = kraft_content(record, Release.KAFKA_4_4) if objects else None
    except BadRecords as exc:
        return plain(record, error=str(exc))
    if content is None:
        return plain(record, error=control_problem(record))
    value = {"type": content.definition.name, "version": content.version, "data": content.data}
    return DecodedRecord(*encoded(record.key), value, "json")


def _control(record: StoredRecord) -> str:
    try:
        kind = control_type(record)
    except BadRecords:
        return "unknown"
    return NAMES.get(kind, f"unknown {kind}")


def _or_none(number: int) -> int | None:
    return None if number == -1 else number
