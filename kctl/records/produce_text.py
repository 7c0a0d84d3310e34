"""Lines of text as records: headers, key and value of one line, as Kafka's console producer divides it.

[headers <headers delimiter>] [key <key separator>] value        headers: key:value,key:value
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass

from kctl.errors import UsageError
from kctl.records.outgoing import Headers, Outgoing, Unfit

Decode = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a line is divided. key: of every record, when lines have none. Separators as bytes, None for «there are
    none»; null_marker: the text that stands for null. encoding: text, hex or base64 (of keys and values)."""

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

    @property
    def plain(self) -> bool:
        """Whether a line is the value, and a record nothing else."""
        return (
            self.encoding == "text" and self.key_separator is None and self.key is None and not self.parse_headers
            and self.null_marker is None and not self.headers and self.timestamp_ms is None
        )  # fmt: skip


def parse_header(text: str) -> tuple[bytes, bytes | None]:
    """--header K=V. Raises UsageError."""
    name, found, value = text.partition("=")
    if not found or not name:
        raise UsageError(f"--header {text!r} is not a header", hint="for example --header source=backfill")
    return name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")


def text_parser(how: TextFormat) -> Callable[[bytes], Outgoing]:
    """What makes a record of a line. It raises Unfit."""
    decode = _DECODERS[how.encoding]
    marker = how.null_marker

    def parse(line: bytes) -> Outgoing:
        headers = how.headers
        if how.parse_headers:
            before, found, line = line.partition(how.headers_delimiter)
            if not found:
                raise Unfit(f"has no headers delimiter {_shown(how.headers_delimiter)}")
            if before != marker:
                headers += _headers(before, how)
        key = how.key
        if how.key_separator is not None:
            text, found, line = line.partition(how.key_separator)
            if not found:
                raise Unfit(f"has no key separator {_shown(how.key_separator)}")
            key = None if text == marker else decode(text)
        value = None if line == marker else decode(line)
        return Outgoing(key, value, headers, how.timestamp_ms, how.partition)

    return parse


def _headers(text: bytes, how: TextFormat) -> Headers:
    """An empty text is no header at all."""
    found: list[tuple[bytes, bytes | None]] = []
    for part in text.split(how.headers_separator) if text else ():
        name, between, value = part.partition(how.headers_key_separator)
        if not between:
            raise Unfit(f"has a header without {_shown(how.headers_key_separator)}: {_shown(part)}")
        try:
            name.decode()
        except UnicodeDecodeError:
            raise Unfit("has a header whose name is not UTF-8") from None
        found.append((name, None if value == how.null_marker else value))
    return tuple(found)


def _shown(data: bytes) -> str:
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
