"""Input of producing: lines of stdin or files, or an endless supply for generated values."""

from __future__ import annotations

import codecs
import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from kctl.errors import InvalidFile, NotFound, UsageError

_CHUNK = 256 * 1024
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKS = (codecs.BOM_UTF8, *_UTF16)
_MARK_LOOK = 4  # bytes: a UTF-16 mark and one character


class Supply(Protocol):
    """A supply of lines, numbered from 1. `lines[at:]` are buffered; if there are none, `fill` reads more.

    fd: the descriptor from which `fill` reads; None if it never waits. max_bytes: a longer line is cut off, and
    invalid as a record.
    """

    max_bytes: int
    lines: list[bytes]
    at: int
    number: int

    @property
    def ended(self) -> bool: ...

    @property
    def fd(self) -> int | None: ...

    def fill(self) -> None: ...

    def where(self, number: int) -> str: ...

    def close(self) -> None: ...


class InputLines:
    """The lines of files, one file after the other.

    A line ends with LF, CR or CRLF, as in Java's readLine; the last line needs no line break. A UTF-8 byte order mark
    at the start of a file is skipped. A line longer than max_bytes is cut off after the first excess byte to limit
    memory.
    """

    def __init__(
        self, files: Sequence[Path], max_bytes: int, *, on_mark: Callable[[str], None] = lambda _name: None
    ) -> None:
        """on_mark: called with the name of a file that begins with a byte order mark."""
        self.lines: list[bytes] = []
        self.at = 0
        self.number = 1  # of lines[at]
        self._on_mark = on_mark
        self.max_bytes = max_bytes
        self._files = list(files)
        self._opened: list[tuple[int, Path]] = []  # the number of each file's first line
        self._rest: list[bytes] = []  # the start of a line whose end has not been read
        self._rest_bytes = 0
        self._fd: int | None = None
        self._start = b""  # the first bytes of a file, while they may be part of a byte order mark
        self._at_start = self._after_cr = False
        self._next_file()

    @property
    def ended(self) -> bool:
        """Return True if there are no more lines."""
        return self._fd is None and self.at >= len(self.lines)

    @property
    def fd(self) -> int | None:
        return self._fd

    def fill(self) -> None:
        """Read once. Raises InvalidFile."""
        if self._fd is None:
            return
        assert self.at >= len(self.lines)
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            data = b""
            self.lines, self.at = [], 0
            return
        except OSError as exc:
            raise InvalidFile(f"cannot read {self._opened[-1][1]}: {exc.strerror}") from None
        self.at = 0
        self._take(data)

    def _take(self, data: bytes) -> None:
        """Split data into lines; b"" means the end of a file."""
        ended = not data
        if self._at_start:
            data = self._without_mark(data)
        if self._after_cr and data:
            data = data.removeprefix(b"\n")  # of a CRLF that was read in two pieces
            self._after_cr = False
        lines = self._split_lines(data) if data else []
        if ended:
            if self._rest:
                lines.append(self._pop_rest())
            self.lines = lines
            self._next_file(self.number + len(lines))
            return
        self.lines = lines

    def _split_lines(self, data: bytes) -> list[bytes]:
        """Return the lines that end in `data`; the start of the next line is buffered."""
        if b"\r" not in data:
            *lines, last = data.split(b"\n")
        else:
            lines = data.splitlines()  # of bytes: LF, CR and CRLF, nothing else
            self._after_cr = data.endswith(b"\r")
            last = b"" if data.endswith((b"\n", b"\r")) else lines.pop()
        if lines and self._rest:
            self._buffer(lines[0])
            lines[0] = self._pop_rest()
        if last:
            self._buffer(last)
        return lines

    def _without_mark(self, data: bytes) -> bytes:
        """Return data without a byte order mark. Raises InvalidFile for UTF-16, whose lines cannot be split."""
        start = self._start + data
        self._start = b""
        if data and len(start) < _MARK_LOOK and any(mark.startswith(start[: len(mark)]) for mark in _MARKS):
            self._start = start
            return b""
        self._at_start = False
        path = self._opened[-1][1]
        name = "stdin" if str(path) == "-" else str(path)
        if start.startswith(_UTF16) and b"\0" in start[2:_MARK_LOOK]:
            raise InvalidFile(f"{name} is UTF-16 text", hint="convert it first: iconv -f UTF-16 -t UTF-8")
        if start.startswith(codecs.BOM_UTF8):
            self._on_mark(name)
            return start[len(codecs.BOM_UTF8) :]
        return start

    def _buffer(self, piece: bytes) -> None:
        limit = self.max_bytes + 1 - self._rest_bytes
        if limit > 0:
            self._rest.append(piece[:limit])
            self._rest_bytes += len(self._rest[-1])

    def _pop_rest(self) -> bytes:
        line = b"".join(self._rest)
        self._rest, self._rest_bytes = [], 0
        return line

    def _next_file(self, number: int = 1) -> None:
        self.close()
        if self._files:
            path = self._files.pop(0)
            self._opened.append((number, path))
            self._fd = sys.stdin.fileno() if str(path) == "-" else _open(path)
            self._start, self._at_start, self._after_cr = b"", True, False

    def where(self, number: int) -> str:
        """Return "line 3", with the file if there are several."""
        if len(self._opened) + len(self._files) == 1:
            return f"line {number}"
        first, path = next((first, path) for first, path in reversed(self._opened) if first <= number)
        return f"{path} line {number - first + 1}"

    def close(self) -> None:
        """Close the current file."""
        fd, self._fd = self._fd, None
        if fd is not None and fd != 0:
            with suppress(OSError):
                os.close(fd)


class Endless:
    """An endless supply of empty lines, to be filled by a template."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.at = 0
        self.number = 1
        self.max_bytes = 0
        self.ended = False
        self.fd: int | None = None

    def fill(self) -> None:
        self.lines, self.at = [b""] * 1000, 0

    def where(self, number: int) -> str:
        return f"record {number}"

    def close(self) -> None:
        pass


def check_files(files: Sequence[Path]) -> None:
    """Raise NotFound, InvalidFile or UsageError for unreadable files, before anything is written."""
    for path in files:
        if str(path) == "-":
            if sys.stdin is None or sys.stdin.closed:
                raise UsageError(
                    "stdin is closed: there is nothing to read", hint="redirect a file: kctl produce TOPIC < FILE"
                )
            continue
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            raise NotFound(f"file {path} does not exist") from None
        except OSError as exc:
            raise InvalidFile(f"cannot read {path}: {exc.strerror}") from None
        if stat.S_ISDIR(mode):
            raise InvalidFile(f"{path} is a directory", hint="use --file with each file in it")
        if not os.access(path, os.R_OK):
            raise InvalidFile(f"cannot read {path}: Permission denied")
    if sum(str(path) == "-" for path in files) > 1:
        raise UsageError("stdin (-) can be read only once")


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # `fd` is polled for a pipe's writer
    except OSError as exc:
        raise InvalidFile(f"cannot read {path}: {exc.strerror}") from None
