"""Lines of text as records: headers, key and value in one line, as in Kafka's console producer.

[headers <headers delimiter>] [key <key separator>] value        headers: key:value,key:value
"""

from __future__ import annotations

import base64
import binascii
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from kctl.errors import UsageError
from kctl.records.produce.outgoing import Headers, Outgoing, Unfit

Decode = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The format of a line.

    encoding: text, hex or base64 (of keys and values). key_separator: None if lines have no key. key: of every record
    if lines have none. null_marker: the text that means null. accept_missing: a line without a separator is a record
    without a key or headers, and a header without a separator has a null value (Kafka's ignore.error).
    """

    encoding: str = "text"
    key_separator: bytes | None = None
    key: bytes | None = None
    parse_headers: bool = False
    headers_delimiter: bytes = b"\t"
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    null_marker: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    accept_missing: bool = False

    @property
    def plain(self) -> bool:
        """Return True if each line is a value, and records have nothing else."""
        return (
            self.encoding == "text" and self.key_separator is None and self.key is None and not self.parse_headers
            and self.null_marker is None and not self.headers and self.timestamp_ms is None
        )  # fmt: skip


def parse_header(text: str) -> tuple[bytes, bytes | None]:
    """Parse --header K=V. Raises UsageError."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(f"--header {text!r} is not a header", hint="e.g. --header source=backfill")
    return name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")


def check_separators(line_format: TextFormat) -> None:
    """Raise UsageError for equal separators, as Kafka's console producer does (LineMessageReader)."""
    headers = {
        "--headers-delimiter": line_format.headers_delimiter,
        "--headers-separator": line_format.headers_separator,
        "--headers-key-separator": line_format.headers_key_separator,
    }
    in_use = headers if line_format.parse_headers else {}
    pairs = list(itertools.combinations(in_use.items(), 2))
    if line_format.null_marker is not None:
        marker = ("--null-marker", line_format.null_marker)
        keys = {} if line_format.key_separator is None else {"--key-separator": line_format.key_separator}
        pairs += [(marker, each) for each in (*keys.items(), *in_use.items())]
    for (name, text), (other, other_text) in pairs:
        if text == other_text:
            raise UsageError(f"{name} and {other} are both {_quoted(text)}", hint="choose two different texts")


def text_parser(line_format: TextFormat) -> Callable[[bytes], Outgoing]:
    """Return a function that parses a line into a record, or raises Unfit."""
    decode = _DECODERS[line_format.encoding]
    marker = line_format.null_marker

    def parse(line: bytes) -> Outgoing:
        headers = line_format.headers
        if line_format.parse_headers:
            before, line = _split(line, line_format.headers_delimiter, "headers delimiter", line_format)
            if before is not None and before != marker:
                headers += _headers(before, line_format)
        key = line_format.key
        if line_format.key_separator is not None:
            text, line = _split(line, line_format.key_separator, "key separator", line_format)
            key = None if text is None or text == marker else decode(text)
        value = None if line == marker else decode(line)
        return Outgoing(key, value, headers, line_format.timestamp_ms, line_format.partition)

    return parse


def _split(line: bytes, separator: bytes, name: str, line_format: TextFormat) -> tuple[bytes | None, bytes]:
    """Return the text before the separator (None without one), and the rest."""
    before, match, rest = line.partition(separator)
    if match:
        return before, rest
    if line_format.accept_missing:
        return None, line
    raise Unfit(f"has no {name} {_quoted(separator)}")


def _headers(text: bytes, line_format: TextFormat) -> Headers:
    """Return the headers in order. An empty text has no headers; trailing separators are ignored, as in Java."""
    parsed: list[tuple[bytes, bytes | None]] = []
    parts = text.split(line_format.headers_separator) if text else []
    while parts and not parts[-1]:
        parts.pop()
    for part in parts:
        name, between, value = part.partition(line_format.headers_key_separator)
        if not between and not line_format.accept_missing:
            raise Unfit(f"has a header without {_quoted(line_format.headers_key_separator)}: {_quoted(part)}")
        if between and name == line_format.null_marker:
            raise Unfit(f"has a header whose name is the null marker {_quoted(name)}; a name cannot be null")
        try:
            name.decode()
        except UnicodeDecodeError:
            raise Unfit("has a header whose name is not UTF-8") from None
        parsed.append((name, None if not between or value == line_format.null_marker else value))
    return tuple(parsed)


def _quoted(data: bytes) -> str:
    text = data[:40].decode("utf-8", "backslashreplace")
    return repr(text) + ("…" if len(data) > 40 else "")


def _same(data: bytes) -> bytes:
    return data


def _from_hex(data: bytes) -> bytes:
    try:
        return bytes.fromhex(data.decode("ascii"))
    except (ValueError, UnicodeDecodeError):
        raise Unfit("is not hexadecimal") from None


def _from_base64(data: bytes) -> bytes:
    try:
        return base64.b64decode(data.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise Unfit("is not base64") from None


_DECODERS: dict[str, Decode] = {"text": _same, "hex": _from_hex, "base64": _from_base64}
