"""The records of a whole batch as JSON Lines: the same JSON as rows.record_row, many times faster.

Only for batches of magic 2 without headers that are not control batches. For anything else unusual it returns None, and
the rows are built one by one: rows.record_row defines the output, and this module returns the same or nothing.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from kctl.base.timestamps import MAX_MS, format_timestamp
from kctl.segment.dump.fast_text import interleaved, is_utf8
from kctl.segment.dump.rows import encoded, record_row
from kctl.segment.format.batch import NO_SEQUENCE, Batch
from kctl.segment.format.record import StoredRecord
from kctl.segment.format.record_columns import RecordColumns, ordinary_columns

_ESCAPED = bytes(range(32)) + b'"\\'  # must be escaped in JSON
_QUOTED = json.encoder.encode_basestring
_MILLISECONDS = tuple(b'%03dZ"' % ms for ms in range(1000))
# Placeholders of the batch position and the second; they never occur in JSON.
_POSITION, _SECOND = b"\0", b"\1"


def records_json(batch: Batch, payload: bytes, file: str, *, valid: bool) -> bytes | None:
    """Return a line for each record; None if the rows must be built one by one.

    payload: the decompressed bytes after the header. file, valid: see record_row.
    """
    columns = ordinary_columns(batch, payload)
    if columns is None:
        return None
    return _lines(batch, columns, file, valid=valid)


class _LineFormat(NamedTuple):
    """Everything a line depends on except the record, the position and the second.

    keys, values: their format. same_second: all timestamps are in the same second.
    """

    file: str
    valid: bool
    attributes: int
    producer_id: int
    sequenced: bool
    same_second: bool
    keys: _FieldFormat
    values: _FieldFormat


class _FieldFormat(NamedTuple):
    """The format of keys or values.

    null: all are null. plain: all are UTF-8 without escapes, inserted unchanged. size: the size of all, if equal.
    """

    null: bool
    plain: bool
    size: int | None


def _lines(batch: Batch, columns: RecordColumns, file: str, *, valid: bool) -> bytes:
    sizes = columns.sizes or (None, None)
    keys, key_parts, key_sizes = _column(columns.keys, sizes[0])
    values, value_parts, value_sizes = _column(columns.values, sizes[1])
    second, times = _times(columns.timestamps)
    parts: list[Sequence[object]] = [columns.offsets, times, *key_parts, *value_parts, *key_sizes, *value_sizes]
    sequenced = batch.base_sequence >= 0
    if sequenced:
        shift = batch.base_sequence - batch.base_offset
        parts.append([offset + shift for offset in columns.offsets])
    line = _LineFormat(file, valid, batch.attributes, batch.producer_id, sequenced, second is not None, keys, values)
    template = _template(line).replace(_POSITION, b"%d" % batch.position)
    if second is not None:
        template = template.replace(_SECOND, second)
    count = len(columns.keys)
    return template * count % interleaved(parts, count)


_Parts = tuple[Sequence[object], ...]


def _column(texts: list[bytes | None], size: int | None) -> tuple[_FieldFormat, _Parts, _Parts]:
    """Return the format of texts, the arguments (text, or text and encoding), and the sizes.

    size: the size of all, if known; -1: all are null.
    """
    nulls = 0 if size is not None and size >= 0 else texts.count(None)
    if nulls == len(texts):
        return _FieldFormat(True, False, None), (), ()
    if not nulls:
        joined = b"\n".join(texts)  # type: ignore[arg-type]
        if len(joined.translate(None, _ESCAPED)) == len(joined) - len(texts) + 1 and is_utf8(joined):
            sizes = () if size is not None else (list(map(len, texts)),)  # type: ignore[arg-type]
            return _FieldFormat(False, True, size), (texts,), sizes
    encodings = [encoded(text) for text in texts]
    return (
        _FieldFormat(False, False, None),
        (
            [b"null" if text is None else _QUOTED(text).encode() for text, _ in encodings],
            [b"null" if encoding is None else b'"%b"' % encoding.encode() for _, encoding in encodings],
        ),
        ([b"null" if text is None else b"%d" % len(text) for text in texts],),
    )


def _times(timestamps: Sequence[int]) -> tuple[bytes | None, Sequence[bytes]]:
    """Return the common second and the milliseconds; or None and the whole times."""
    least, largest = min(timestamps), max(timestamps)
    if least < 0 or largest > MAX_MS:
        return None, [json.dumps(format_timestamp(timestamp)).encode() for timestamp in timestamps]
    first = least // 1000
    if largest // 1000 == first:  # the usual case
        start, milliseconds = first * 1000, _MILLISECONDS
        return _second(first), [milliseconds[timestamp - start] for timestamp in timestamps]
    return None, [_second(timestamp // 1000) + _MILLISECONDS[timestamp % 1000] for timestamp in timestamps]


@lru_cache(maxsize=4096)
def _second(second: int) -> bytes:
    text = format_timestamp(second * 1000)
    assert text is not None
    return b'"' + text.encode()[: -len("000Z")]


@lru_cache(maxsize=64)
def _template(line: _LineFormat) -> bytes:
    """Return a line with a placeholder for each argument, built from a row with marks in their places."""
    sequence = 0 if line.sequenced else NO_SEQUENCE
    batch = Batch(0, 0, 2, 0, 0, 0, line.attributes, 0, 0, 0, line.producer_id, 0, sequence, 0)
    key, value = (None if kind.null else b"" for kind in (line.keys, line.values))
    row = dataclasses.asdict(record_row(line.file, batch, StoredRecord(0, 0, sequence, key, value), valid=line.valid))
    marks: dict[str, bytes] = {"position": _POSITION, "offset": b"%d", "timestamp": b"%b"}
    if line.same_second:
        marks["timestamp"] = _SECOND + b"%b"
    for name, kind in (("key", line.keys), ("value", line.values)):
        if not kind.null:
            marks[name] = b'"%b"' if kind.plain else b"%b"
            marks[f"{name}_size_bytes"] = b"%b" if not kind.plain else b"%d" if kind.size is None else b"%d" % kind.size
            if not kind.plain:
                marks[f"{name}_encoding"] = b"%b"
    if line.sequenced:
        marks["sequence"] = b"%d"
    return b"{%b}\n" % b",".join(b"%b:%b" % (_json(name), marks.get(name) or _json(row[name])) for name in row)


def _json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogateescape").replace(b"%", b"%%")
