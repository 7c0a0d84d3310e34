"""Read a log file by position through a sliding window.

Not mmap: a broker may truncate a file during the read, and accessing a mapped page past the end kills the process
(SIGBUS).
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from types import TracebackType

from kctl.errors import NotAuthorized, NotFound, OperationFailed, Reason, Refused, UsageError

# Small enough for the processor's cache: four times as fast as a window of megabytes.
WINDOW_BYTES = 64 << 10
MAX_BYTES = 64 << 20


class Source:
    """An open file. size: when it was opened or last refreshed; bytes after it are not read.

    window: the bytes from `start` on; valid until the next call of `load`.
    """

    def __init__(self, path: Path, *, window_bytes: int = WINDOW_BYTES) -> None:
        """Open a file. window_bytes: minimum bytes per read.

        Raises NotFound, NotAuthorized, OperationFailed, and UsageError if it is not a regular file.
        """
        self.path = path
        self._min_bytes = window_bytes
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
        """Update and return the size of a growing file."""
        self.size = os.fstat(self._fd).st_size
        return self.size

    def load(self, position: int, need: int) -> memoryview:
        """Move the window to `position`, with at least `need` bytes if the file has them. Return the window."""
        size = min(max(need, self._min_bytes), max(self.size - position, 0))
        if len(self._buffer) < size:
            self.window = memoryview(b"")  # an exported buffer cannot grow
            self._buffer = bytearray(size)
        target = memoryview(self._buffer)
        got = 0
        while got < size:
            try:
                count = os.preadv(self._fd, [target[got:size]], position + got)
            except OSError as exc:
                raise OperationFailed(f"cannot read {self.path}: {exc.strerror}") from None
            if count == 0:  # truncated since the file was opened
                self.size = min(self.size, position + got)
                break
            got += count
        self.start, self.window = position, target[:got]
        return self.window

    def peek(self, position: int, length: int) -> bytes:
        """Return `length` bytes at `position`, fewer at the end of the file. Does not move the window."""
        offset = position - self.start
        if offset >= 0 and offset + length <= len(self.window):
            return bytes(self.window[offset : offset + length])
        try:
            return os.pread(self._fd, length, position)
        except OSError as exc:
            raise OperationFailed(f"cannot read {self.path}: {exc.strerror}") from None

    def next_data(self, position: int) -> int:
        """Return the first position from `position` on outside holes of a sparse file; or the size."""
        try:
            return os.lseek(self._fd, position, os.SEEK_DATA)
        except OSError as exc:
            return self.size if exc.errno == errno.ENXIO else position  # other errors: the file system has no holes

    def read(self, position: int, length: int) -> memoryview:
        """Return `length` bytes at `position`, fewer at the end of the file. May move the window."""
        offset = position - self.start
        if offset < 0 or offset + length > len(self.window):
            self.load(position, length)
            offset = 0
        return self.window[offset : offset + length]


def read_whole(path: Path, *, most_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a small file. Raises the errors of Source, and Refused if larger than `most_bytes`."""
    with Source(path) as source:
        if source.size > most_bytes:
            raise Refused(
                f"{path} has {source.size} bytes; the limit for this kind of file is {most_bytes} bytes",
                reason=Reason.LIMIT_EXCEEDED,
            )
        return bytes(source.read(0, source.size))


def _open(path: Path) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO must not block
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist") from None
    except PermissionError:
        raise NotAuthorized(f"cannot read {path}: permission denied", hint="run kctl as the broker's user") from None
    except OSError as exc:
        raise OperationFailed(f"cannot open {path}: {exc.strerror}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        kind = "a folder" if path.is_dir() else "not a file"
        raise UsageError(f"{path} is {kind}", hint="pass a file of a partition folder")
    return fd
