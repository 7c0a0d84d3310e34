"""A checksum of a Parquet file's footer, inside the footer.

In Parquet, pages have checksums but the footer has none, and a single flipped bit in it can silently remove columns or
rows. So each file's key-value metadata has "kctl.footer: crc32=xxxxxxxx", the CRC-32 of the footer's bytes with zeros
in place of the digits. This detects damage, not tampering.

Layout (Parquet): … pages, footer, its length (4 bytes, little-endian), "PAR1".
"""

from __future__ import annotations

import os
import re
import zlib
from typing import BinaryIO

KEY = "kctl.footer"
PLACEHOLDER = "crc32=00000000"
_MARK = re.compile(rb"crc32=([0-9a-f]{8})")
_TAIL = 8
_MAX_BYTES = 64 << 20
NOT_WHOLE = "it is not a complete Parquet file"
# Arrow's messages about missing or damaged bytes.
_CHECKSUM = re.compile("CRC|page integrity")
_BROKEN = re.compile("thrift|[Uu]nexpected end|end of stream|magic|footer|[Dd]ecompress|ZSTD|page|Corrupt")


class BadFooter(ValueError):
    """Raised if the footer is damaged or has no checksum."""


def reason_of(exc: Exception) -> str:
    """Return why a Parquet file is unreadable, without the internals in Arrow's messages."""
    if isinstance(exc, BadFooter):
        return str(exc)
    text = (exc.strerror if isinstance(exc, OSError) else None) or str(exc)
    if _CHECKSUM.search(text):
        return "one of its pages is damaged"
    if _BROKEN.search(text):
        return NOT_WHOLE
    return text.splitlines()[0][:200] if text else type(exc).__name__


def sign(stream: BinaryIO) -> None:
    """Write the checksum into a file that was written with the placeholder. Raises OSError."""
    start, data = _footer(stream)
    mark = _MARK.search(data)
    assert mark is not None
    stream.seek(start + mark.start(1))
    stream.write(b"%08x" % zlib.crc32(data))
    stream.seek(0, os.SEEK_END)


def check(stream: BinaryIO) -> None:
    """Raise BadFooter unless the file has a footer with a valid checksum. Reset the position of the stream to 0."""
    _, data = _footer(stream)
    marks = list(_MARK.finditer(data))
    for mark in marks:
        digits = mark.span(1)
        if int(mark[1], 16) == zlib.crc32(data[: digits[0]] + b"0" * 8 + data[digits[1] :]):
            stream.seek(0)
            return
    raise BadFooter("its footer is damaged" if marks else "its footer has no checksum: it was not written by kctl")


def _footer(stream: BinaryIO) -> tuple[int, bytes]:
    """Return the position of the footer and its bytes."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - _TAIL, 0))
    tail = stream.read(_TAIL)
    length = int.from_bytes(tail[:4], "little")
    if len(tail) < _TAIL or tail[4:] != b"PAR1" or length > min(size - _TAIL, _MAX_BYTES):
        raise BadFooter(NOT_WHOLE)
    stream.seek(size - _TAIL - length)
    return size - _TAIL - length, stream.read(length)
