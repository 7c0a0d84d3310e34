"""A record in kctl's output: keys and values as text if they are UTF-8, otherwise as base64."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

UTF8, BASE64 = "utf-8", "base64"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST_MS = 253_402_300_799_999  # the end of the year 9999, the maximum of datetime


@dataclass(frozen=True, slots=True)
class Record:
    """A record as read from the log. timestamp_ms: None in message format 0."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class HeaderView:
    """A header. encoding: the encoding of the value."""

    key: str
    value: str | None
    encoding: str | None


@dataclass(frozen=True, slots=True)
class RecordView:
    """A record for JSON. The encodings are "utf-8" or "base64"; None without a key or value (a tombstone).

    timestamp: ISO 8601 UTC; None if the record has none, or if it is after the year 9999 (clients may send any number;
    timestamp_ms shows it).
    """

    topic: str
    partition: int
    offset: int
    timestamp: datetime | None
    timestamp_ms: int | None
    key: str | None
    key_encoding: str | None
    value: str | None
    value_encoding: str | None
    headers: tuple[HeaderView, ...]


def view(record: Record) -> RecordView:
    """Return `record` with its bytes as text."""
    key, key_encoding = text_of(record.key)
    value, value_encoding = text_of(record.value)
    return RecordView(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=_datetime(record.timestamp_ms),
        timestamp_ms=record.timestamp_ms,
        key=key,
        key_encoding=key_encoding,
        value=value,
        value_encoding=value_encoding,
        headers=tuple(HeaderView(name, *text_of(data)) for name, data in record.headers),
    )


def text_of(data: bytes | None) -> tuple[str | None, str | None]:
    """Return bytes as text, and its encoding: UTF-8 if valid, otherwise base64; (None, None) for None."""
    if data is None:
        return None, None
    try:
        return data.decode("utf-8"), UTF8
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii"), BASE64


def _datetime(timestamp_ms: int | None) -> datetime | None:
    if timestamp_ms is None or timestamp_ms > _LAST_MS:
        return None
    return _EPOCH + timedelta(milliseconds=timestamp_ms)
