"""Output formats of `kctl consume`: text, JSON Lines, hex dump, template."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from kctl.base.text import printable
from kctl.base.timestamps import format_timestamp
from kctl.commands.terminal import output
from kctl.commands.terminal.output_values import json_text
from kctl.errors import UsageError
from kctl.records.consume.select import text_bytes
from kctl.records.decode.decoding import AsIs
from kctl.records.record import text_of

if TYPE_CHECKING:
    from kctl.records.chunk import Chunk

Writer = Callable[["Chunk"], None]
_NULL = b"null"


# --- text -----------------------------------------------------------------------------------------------------------


def text_writer(separator: bytes | None) -> Writer:
    """Return a writer of values, one per line, or of keys and values with a separator; escaped on a terminal."""
    if sys.stdout.isatty():
        return lambda chunk: _escaped(_lines(chunk, separator))
    return lambda chunk: _raw(_lines(chunk, separator))


def _lines(chunk: Chunk, separator: bytes | None) -> list[bytes]:
    values = column_bytes(chunk, keys=False)
    if separator is None:
        return values
    keys = column_bytes(chunk, keys=True)
    return [key + separator + value for key, value in zip(keys, values, strict=True)]


def column_bytes(chunk: Chunk, *, keys: bool) -> list[bytes]:
    """Return keys or values as bytes, decoded if possible; "null" for null, as in Kafka's console consumer."""
    column: Sequence[bytes | None] = chunk.keys if keys else chunk.values
    if chunk.decoded is None:
        if None in column:
            return [_NULL if data is None else data for data in column]
        return column  # type: ignore[return-value]  # a list without None
    texts: list[bytes] = []
    for decoded, data in zip(chunk.decoded, column, strict=True):
        value = decoded.key if keys else decoded.value
        if value is None and data is None:
            texts.append(_NULL)
        elif isinstance(value, AsIs):
            texts.append(data or b"")
        else:
            texts.append(text_bytes(value))
    return texts


def _raw(lines: list[bytes]) -> None:
    lines.append(b"")
    sys.stdout.buffer.write(b"\n".join(lines))


def _escaped(lines: list[bytes]) -> None:
    for line in lines:
        sys.stdout.write(printable(line.decode("utf-8", errors="backslashreplace")) + "\n")


# --- JSON Lines -----------------------------------------------------------------------------------------------------


def write_json(chunk: Chunk) -> None:
    """Write one JSON object per line: a kctl.records.record.RecordView, but built as text, which is faster."""
    lines: list[str] = []
    head = f'{{"topic":{encode_basestring(chunk.tp.topic)},"partition":{chunk.tp.partition},"offset":'
    decoded = chunk.decoded
    for index, (offset, time_ms, key, value) in enumerate(
        zip(chunk.offsets, chunk.timestamps, chunk.keys, chunk.values, strict=True)
    ):
        headers = _json_headers(chunk, index) if chunk.headers else "[]"
        when = f'{_iso(time_ms)},"timestamp_ms":{time_ms}' if time_ms >= 0 else 'null,"timestamp_ms":null'
        if decoded is None:
            both = f'"key":{_json_bytes(key, "key")},"value":{_json_bytes(value, "value")}'
            lines.append(f'{head}{offset},"timestamp":{when},{both},"headers":{headers}}}\n')
            continue
        each = decoded[index]
        both = (
            f'"key":{_dumps(each.key)},"key_encoding":{_dumps(each.key_encoding)},'
            f'"value":{_dumps(each.value)},"value_encoding":{_dumps(each.value_encoding)}'
        )
        error = "" if each.error is None else f',"error":{_dumps(each.error)}'
        lines.append(f'{head}{offset},"timestamp":{when},{both},"headers":{headers}{error}}}\n')
    text = "".join(lines)
    if sys.stdout.isatty():
        sys.stdout.write(json_text(text, sys.stdout))
        return
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))


def _json_bytes(data: bytes | None, name: str) -> str:
    if data is None:
        return f'null,"{name}_encoding":null'
    try:
        return f'{encode_basestring(data.decode("utf-8"))},"{name}_encoding":"utf-8"'
    except UnicodeDecodeError:
        text, encoding = text_of(data)
        return f'{_dumps(text)},"{name}_encoding":"{encoding}"'


def _json_headers(chunk: Chunk, index: int) -> str:
    headers = []
    for name, data in chunk.headers_of(index):
        text, encoding = text_of(data)
        headers.append({"key": name.decode("utf-8", "replace"), "value": text, "encoding": encoding})
    return _dumps(headers)


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


@lru_cache(maxsize=4096)
def _iso(time_ms: int) -> str:
    text = format_timestamp(time_ms) if time_ms <= _LAST_MS else None
    return "null" if text is None else f'"{text}"'


_LAST_MS = 253_402_300_799_999  # the end of the year 9999, as in RecordView


# --- hex ------------------------------------------------------------------------------------------------------------


def write_hex(chunk: Chunk) -> None:
    """Write a heading for each record, then its key, headers and value as hex dumps."""

    for index, (offset, time_ms, key, value) in enumerate(
        zip(chunk.offsets, chunk.timestamps, chunk.keys, chunk.values, strict=True)
    ):
        when = format_timestamp(time_ms) if time_ms >= 0 else None
        output.write_line(printable(f"{chunk.tp} offset {offset}" + (f" {when}" if when else "")))
        _dump("key", key)
        for name, data in chunk.headers_of(index):
            _dump(f"header {name.decode('utf-8', 'backslashreplace')}", data)
        _dump("value", value)


def _dump(name: str, data: bytes | None) -> None:
    if data is None:
        output.write_line(printable(f"  {name}: null"))
        return
    output.write_line(printable(f"  {name}: {len(data)} B"))
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        output.write_line(f"    {at:08x}  {row[:8].hex(' '):23}  {row[8:].hex(' '):23}  |{text}|")


# --- templates ------------------------------------------------------------------------------------------------------

_FIELD = re.compile(r"\{\{|\}\}|\{([a-z_]+)(?::([^{}]*))?\}|\\(.)|[{}]", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
_FIELDS = (
    "topic", "partition", "offset", "timestamp", "timestamp_ms", "key", "value", "headers", "header:NAME", "key_bytes",
    "value_bytes",
)  # fmt: skip


def template_writer(template: str) -> Writer:
    """Return a writer for a template with fields in braces, and escapes such as \\n and \\t. Raises UsageError."""
    pieces = _pieces(template)
    terminal = sys.stdout.isatty()

    def write(chunk: Chunk) -> None:
        columns = [piece if isinstance(piece, bytes) else piece(chunk) for piece in pieces]
        if terminal:
            columns = [c if isinstance(c, bytes) else [_safe(data) for data in c] for c in columns]
        rows = [[column] * chunk.size if isinstance(column, bytes) else column for column in columns]
        data = b"".join(b"".join(row) for row in zip(*rows, strict=True))
        if terminal:
            sys.stdout.write(data.decode("utf-8", "backslashreplace"))
        else:
            sys.stdout.buffer.write(data)

    return write


def _safe(data: bytes) -> bytes:
    return printable(data.decode("utf-8", "backslashreplace")).encode()


_Column = Callable[["Chunk"], list[bytes]]


def _pieces(template: str) -> list[bytes | _Column]:
    pieces: list[bytes | _Column] = []
    position = 0
    for match in _FIELD.finditer(template):
        pieces.append(template[position : match.start()].encode("utf-8", "surrogateescape"))
        position = match.end()
        if match[1] is not None:
            pieces.append(_column(match[1], match[2]))
        elif match[3] is not None:
            pieces.append(_escape(match[3]))
        elif match[0] in {"{", "}"}:
            raise UsageError(f"--format {template!r}: unbalanced brace", hint="write a literal brace as {{ or }}")
        else:
            pieces.append(match[0][:1].encode())
    pieces.append(template[position:].encode("utf-8", "surrogateescape"))
    if all(isinstance(piece, bytes) for piece in pieces):
        raise UsageError(f"--format {template!r} contains no field", hint=_hint())
    return [piece for piece in pieces if piece != b""]


def _hint() -> str:
    return "fields: " + ", ".join(f"{{{name}}}" for name in _FIELDS)


def _escape(char: str) -> bytes:
    if char not in _ESCAPES:
        raise UsageError(f"--format: \\{char} is not an escape", hint="use \\n, \\t, \\r, \\0 or \\\\")
    return _ESCAPES[char].encode()


def _column(name: str, argument: str | None) -> _Column:
    if name == "header" and argument:
        key = argument.encode("utf-8", "surrogateescape")
        return lambda chunk: [_header(chunk, index, key) for index in range(chunk.size)]
    column = _COLUMNS.get(name)
    if column is None or argument is not None:
        field = name if argument is None else f"{name}:{argument}"
        raise UsageError(f"--format: {{{field}}} is not a field", hint=_hint())
    return column


def _header(chunk: Chunk, index: int, name: bytes) -> bytes:
    """Return the last header of this name; b"" if there is none."""
    values = [data for key, data in chunk.headers_of(index) if key == name]
    if not values:
        return b""
    return _NULL if values[-1] is None else values[-1]


def _headers(chunk: Chunk, index: int) -> bytes:
    return b",".join(name + b":" + (_NULL if data is None else data) for name, data in chunk.headers_of(index))


def _times(chunk: Chunk) -> list[bytes]:
    return [(format_timestamp(time_ms) or "null").encode() if time_ms >= 0 else _NULL for time_ms in chunk.timestamps]


def _sizes(column: Sequence[bytes | None]) -> list[bytes]:
    return [b"-1" if data is None else b"%d" % len(data) for data in column]


_COLUMNS: dict[str, _Column] = {
    "topic": lambda chunk: [chunk.tp.topic.encode()] * chunk.size,
    "partition": lambda chunk: [b"%d" % chunk.tp.partition] * chunk.size,
    "offset": lambda chunk: [b"%d" % offset for offset in chunk.offsets],
    "timestamp": _times,
    "timestamp_ms": lambda chunk: [b"%d" % time_ms for time_ms in chunk.timestamps],
    "key": lambda chunk: column_bytes(chunk, keys=True),
    "value": lambda chunk: column_bytes(chunk, keys=False),
    "headers": lambda chunk: [_headers(chunk, index) for index in range(chunk.size)],
    "key_bytes": lambda chunk: _sizes(chunk.keys),
    "value_bytes": lambda chunk: _sizes(chunk.values),
}
