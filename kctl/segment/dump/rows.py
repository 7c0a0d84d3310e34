"""What a dump says of batches and records, as programs read it: typed, times in ISO 8601, bytes as text or base64.

Every row says of which kind it is, so that rows of several kinds may stand in one stream.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kctl.base.moments import moment_text
from kctl.segment.format.batch import NO_SEQUENCE, Batch
from kctl.segment.format.control import NAMES, control_type
from kctl.segment.format.record import BadRecords, Record


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch. valid: its CRC, of a magic that Kafka knows. Timestamps are None where there is none; producer_id and
    the like as well; last_offset and codec with an unknown magic. damage: why it is not valid."""

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
    """A record's header."""

    key: str
    key_encoding: str
    value: str | None
    value_encoding: str | None


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record. position: of its batch in the file. The encodings are utf-8 or base64, None with null; of a decoder:
    json (an object), long, integer or double (a number).

    control: ABORT, COMMIT, …; valid: the CRC, of the batch or (magic 0 and 1) of the message. decode_error: why a
    decoder that was asked for could not read it.
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
    """Bytes that cannot be read. position: in the file; size_bytes: how many are passed over."""

    kind: str = field(default="damage", init=False)
    file: str
    position: int
    size_bytes: int
    damage: str


@dataclass(frozen=True, slots=True)
class NoteRow:
    """Something about a file that is no damage: unused bytes, or that it became shorter while it was followed."""

    kind: str = field(default="note", init=False)
    file: str
    position: int
    size_bytes: int
    note: str


@dataclass(frozen=True, slots=True)
class Shown:
    """Key and value of a record as a row has them. error: why they could not be decoded."""

    key: Any
    key_encoding: str | None
    value: Any
    value_encoding: str | None
    error: str | None = None


RowDecoder = Callable[[Record], Shown]


def plain(record: Record, *, error: str | None = None) -> Shown:
    """As text or base64."""
    return Shown(*encoded(record.key), *encoded(record.value), error)


def encoded(data: bytes | None, *, text: bool = True) -> tuple[str | None, str | None]:
    """(text, encoding): as UTF-8 where it is that and wanted, else as base64."""
    if data is None:
        return None, None
    try:
        if text:
            return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        pass
    return base64.b64encode(data).decode(), "base64"


def timestamp_type(batch: Batch) -> str | None:
    """CreateTime or LogAppendTime; None for magic 0, which has no timestamps."""
    if batch.magic == 0:
        return None
    return "LogAppendTime" if batch.log_append_time else "CreateTime"


def batch_row(file: str, batch: Batch, *, valid: bool, damage: str | None = None) -> BatchRow:
    """What a batch's header says. damage: why it is not valid."""
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
        base_timestamp=None if old else moment_text(batch.base_timestamp),
        max_timestamp=moment_text(batch.max_timestamp),
        codec=None if unknown else batch.codec_name,
        producer_id=_or_none(batch.producer_id),
        producer_epoch=_or_none(batch.producer_epoch),
        base_sequence=_or_none(batch.base_sequence),
        last_sequence=None if old else _or_none(batch.last_sequence),
        transactional=batch.transactional,
        control=batch.control,
        delete_horizon=None if batch.delete_horizon_ms is None else moment_text(batch.delete_horizon_ms),
        crc=batch.crc,
        valid=valid,
        damage=damage,
    )


def record_row(file: str, batch: Batch, record: Record, *, valid: bool, decode: RowDecoder | None = None) -> RecordRow:
    """A record with what its batch says of it. decode: instead of text or base64; not of control records."""
    shown = plain(record) if decode is None or batch.control else decode(record)
    return RecordRow(
        file=file,
        position=batch.position,
        offset=record.offset,
        timestamp=moment_text(record.timestamp),
        timestamp_type=timestamp_type(batch),
        key=shown.key,
        key_encoding=shown.key_encoding,
        value=shown.value,
        value_encoding=shown.value_encoding,
        key_size_bytes=None if record.key is None else len(record.key),
        value_size_bytes=None if record.value is None else len(record.value),
        headers=tuple(_header(*header) for header in record.headers),
        producer_id=_or_none(batch.producer_id),
        sequence=None if record.sequence == NO_SEQUENCE else record.sequence,
        transactional=batch.transactional,
        control=_control(record) if batch.control else None,
        valid=valid and record.legacy_valid,
        decode_error=shown.error,
    )


def _header(key: bytes, value: bytes | None) -> HeaderRow:
    text, encoding = encoded(key)
    assert text is not None
    assert encoding is not None
    return HeaderRow(text, encoding, *encoded(value))


def _control(record: Record) -> str:
    try:
        kind = control_type(record)
    except BadRecords:
        return "unknown"
    return NAMES.get(kind, f"unknown {kind}")


def _or_none(number: int) -> int | None:
    return None if number == -1 else number
