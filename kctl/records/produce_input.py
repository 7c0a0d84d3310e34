"""Where records to be written come from: lines of stdin or files, or as many as are wanted of a template."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from kctl.errors import InvalidFile, NotFound, UsageError

_CHUNK = 256 * 1024


class Supply(Protocol):
    """Lines by number, the first is 1. `lines[at:]` can be taken at once; when there are none `fill` gets more.

    fd: what `fill` would read from, when it may have to wait; None when it never does. max_bytes: a longer line is not
    whole, and no record.
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


class Lines:
    """The lines of some files, one file after the other; only «\\n» ends a line, and the last may lack it.

    A line longer than max_bytes is cut behind the first byte too many, so that it takes no more memory than that.
    """

    def __init__(self, files: Sequence[Path], max_bytes: int) -> None:
        self.lines: list[bytes] = []
        self.at = 0
        self.number = 1  # of lines[at]
        self.max_bytes = max_bytes
        self._files = list(files)
        self._begun: list[tuple[int, Path]] = []  # the number of each file's first line
        self._rest: list[bytes] = []  # of a line whose end has not been read
        self._rest_bytes = 0
        self._fd: int | None = None
        self._next_file()

    @property
    def ended(self) -> bool:
        """Nothing is left to take or to read."""
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
            raise InvalidFile(f"cannot read {self._begun[-1][1]}: {exc.strerror}") from None
        self.at = 0
        if not data:
            self.lines = [self._taken_rest()] if self._rest else []
            following = self.number + len(self.lines)
            self._next_file(following)
            return
        *whole, last = data.split(b"\n")
        if whole and self._rest:
            self._keep(whole[0])
            whole[0] = self._taken_rest()
        if last:
            self._keep(last)
        self.lines = whole

    def _keep(self, piece: bytes) -> None:
        room = self.max_bytes + 1 - self._rest_bytes
        if room > 0:
            self._rest.append(piece[:room])
            self._rest_bytes += len(self._rest[-1])

    def _taken_rest(self) -> bytes:
        line = b"".join(self._rest)
        self._rest, self._rest_bytes = [], 0
        return line

    def _next_file(self, number: int = 1) -> None:
        self.close()
        if self._files:
            path = self._files.pop(0)
            self._begun.append((number, path))
            self._fd = sys.stdin.fileno() if str(path) == "-" else _opened(path)

    def where(self, number: int) -> str:
        """«line 3», and of which file when there are several."""
        if len(self._begun) + len(self._files) == 1:
            return f"line {number}"
        first, path = next((first, path) for first, path in reversed(self._begun) if first <= number)
        return f"{path} line {number - first + 1}"

    def close(self) -> None:
        """Close the file that is open."""
        fd, self._fd = self._fd, None
        if fd is not None and fd != 0:
            with suppress(OSError):
                os.close(fd)


class Endless:
    """Empty lines without an end, to be filled by a template."""

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
    """Raise NotFound, InvalidFile or UsageError for what cannot be read, before anything is written."""
    for path in files:
        if str(path) == "-":
            if sys.stdin is None or sys.stdin.closed:
                raise UsageError(
                    "stdin is closed: there is nothing to read", hint="for example: kctl produce TOPIC < FILE"
                )
            continue
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            raise NotFound(f"there is no file {path}") from None
        except OSError as exc:
            raise InvalidFile(f"cannot read {path}: {exc.strerror}") from None
        if stat.S_ISDIR(mode):
            raise InvalidFile(f"{path} is a folder", hint="name the files in it")
        if not os.access(path, os.R_OK):
            raise InvalidFile(f"cannot read {path}: Permission denied")
    if sum(str(path) == "-" for path in files) > 1:
        raise UsageError("stdin («-») can be read only once")


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe's writer is waited for by `fd`
    except OSError as exc:
        raise InvalidFile(f"cannot read {path}: {exc.strerror}") from None
