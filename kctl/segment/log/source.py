"""Bytes of a log file by position, through one window that moves over it.

Not mmap: a broker may truncate a file while it is read, and a mapped page that is gone ends the process (SIGBUS).
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from types import TracebackType

from kctl.errors import NotAuthorized, NotFound, OperationFailed, Refused, UsageError

# So small that it stays in the processor's cache: four times as fast as a window of megabytes.
WINDOW_BYTES = 64 << 10
MOST_BYTES = 64 << 20


class Source:
    """An open file. size: when it was opened, or last looked at; what is behind it is not read.

    window: the bytes from `start` on; valid until the next call of `load`.
    """

    def __init__(self, path: Path, *, window_bytes: int = WINDOW_BYTES) -> None:
        """window_bytes: the least that is read at once. Raises NotFound, NotAuthorized, UsageError for what is no
        regular file, OperationFailed."""
        self.path = path
        self._least = window_bytes
        self._fd = _open(path)
        self.size = os.fstat(self._fd).st_size
        self._buffer = bytearray()
        self.window = memoryview(b"")
        self.start = 0

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.window = memoryview(b"")
        os.close(self._fd)

    def refresh(self) -> int:
        """Look at the size again, for a file that grows; the new one."""
        self.size = os.fstat(self._fd).st_size
        return self.size

    def load(self, position: int, need: int) -> memoryview:
        """Move the window to `position`; at least `need` bytes where the file has them. It is returned as well."""
        wanted = min(max(need, self._least), max(self.size - position, 0))
        if len(self._buffer) < wanted:
            self.window = memoryview(b"")  # an exported buffer cannot grow
            self._buffer = bytearray(wanted)
        target = memoryview(self._buffer)
        got = 0
        while got < wanted:
            try:
                count = os.preadv(self._fd, [target[got:wanted]], position + got)
            except OSError as exc:
                raise OperationFailed(f"cannot read {self.path}: {exc.strerror}") from None
            if count == 0:  # truncated meanwhile
                self.size = min(self.size, position + got)
                break
            got += count
        self.start, self.window = position, target[:got]
        return self.window

    def peek(self, position: int, length: int) -> bytes:
        """A few bytes at `position`, fewer at the end of the file; the window stays where it is."""
        offset = position - self.start
        if offset >= 0 and offset + length <= len(self.window):
            return bytes(self.window[offset : offset + length])
        try:
            return os.pread(self._fd, length, position)
        except OSError as exc:
            raise OperationFailed(f"cannot read {self.path}: {exc.strerror}") from None

    def next_data(self, position: int) -> int:
        """The first position from `position` on that is not in a hole of a sparse file; the size when there is none."""
        try:
            return os.lseek(self._fd, position, os.SEEK_DATA)
        except OSError as exc:
            return self.size if exc.errno == errno.ENXIO else position  # other errors: a file system without holes

    def read(self, position: int, length: int) -> memoryview:
        """`length` bytes at `position`, fewer at the end of the file."""
        offset = position - self.start
        if offset < 0 or offset + length > len(self.window):
            self.load(position, length)
            offset = 0
        return self.window[offset : offset + length]


def read_whole(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """A small file. Raises what Source raises, and Refused for one that is larger than `most_bytes`."""
    with Source(path) as source:
        if source.size > most_bytes:
            raise Refused(f"{path} has {source.size} bytes, and {most_bytes} are the most that such a file may have")
        return bytes(source.read(0, source.size))


def _open(path: Path) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO must not block
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist") from None
    except PermissionError:
        raise NotAuthorized(f"{path} cannot be read: permission denied", hint="run kctl as the broker's user") from None
    except OSError as exc:
        raise OperationFailed(f"cannot open {path}: {exc.strerror}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        kind = "a folder" if path.is_dir() else "not a file"
        raise UsageError(f"{path} is {kind}", hint="give a file of a partition's folder")
    return fd
