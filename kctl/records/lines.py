"""Lines of a stream as keys and values: how `kctl produce` reads stdin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from kctl.errors import UsageError


class ByteLines(Protocol):
    """The part of a binary stream that is used."""

    def readline(self, limit: int, /) -> bytes: ...


class Line(NamedTuple):
    """A record to be: `number` counts from 1. key is None without a separator."""

    number: int
    key: bytes | None
    value: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.key or b"") + len(self.value)


class BadLine(UsageError):
    """A line that cannot be a record: too long, or without the key separator."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"line {number} {reason}")
        self.number = number


def parse_separator(text: str) -> bytes:
    """--key-separator as bytes; «\\t» is a tab, «\\0» a NUL. Raises UsageError when it is empty."""
    known = {"\\t": "\t", "\\0": "\0"}
    separator = known.get(text, text).encode()
    if not separator:
        raise UsageError("--key-separator is empty", hint="for example --key-separator : or --key-separator '\\t'")
    if b"\n" in separator:
        raise UsageError("--key-separator contains the end of a line")
    return separator


def read_lines(stream: ByteLines, *, separator: bytes | None, max_bytes: int) -> Iterator[Line]:
    """Records line by line, at most one line in memory. Only «\\n» ends a line; the last may lack it.

    separator: what stands between key and value, split at its first occurrence. Raises BadLine at the line that is
    longer than max_bytes or has no separator; nothing after it is read.
    """
    number = 0
    while True:
        data = stream.readline(max_bytes + 2)
        if not data:
            return
        number += 1
        value = data.removesuffix(b"\n")
        if len(value) > max_bytes:
            raise BadLine(number, f"is longer than {max_bytes} bytes, the largest record that the topic takes")
        if separator is None:
            yield Line(number, None, value)
            continue
        key, found, rest = value.partition(separator)
        if not found:
            raise BadLine(number, f"has no key separator {separator.decode()!r}")
        yield Line(number, key, rest)
