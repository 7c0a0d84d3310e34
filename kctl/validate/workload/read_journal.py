"""Read journals: whole, or the entries since the last read. Memory: 40 kB, independent of the length."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kctl.errors import InvalidFile, NotFound, OperationFailed
from kctl.validate.workload.entries import SIZE, Entry, Header, decode, decode_header

_AT_ONCE = 1000 * SIZE


class JournalReader:
    """A reader that yields each entry once. A torn entry at the end is skipped: the writer may not be done with it.

    Raises NotFound, OperationFailed if the file is unreadable, InvalidFile if it is not a journal, or damaged before
    its end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: Header | None = None  # None until it has been written
        self._position = 0

    def read(self) -> Iterator[Entry]:
        """Yield the entries since the last call."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise NotFound(f"journal {self.path} does not exist") from None
        except OSError as exc:
            raise OperationFailed(f"cannot read the journal {self.path}: {exc.strerror}") from exc
        try:
            if self._read_header(fd):
                yield from self._read_entries(fd)
        finally:
            os.close(fd)

    def _read_header(self, fd: int) -> bool:
        if self.header is None:
            data = os.pread(fd, SIZE, 0)
            self.header = decode_header(data)
            if self.header is None:
                if len(data) < SIZE:
                    return False
                raise InvalidFile(f"{self.path} is not a validation journal")
            self._position = SIZE
        return True

    def _read_entries(self, fd: int) -> Iterator[Entry]:
        while True:
            data = memoryview(os.pread(fd, _AT_ONCE, self._position))
            whole = len(data) - len(data) % SIZE
            for at in range(0, whole, SIZE):
                entry = decode(data[at : at + SIZE])
                if entry is None:
                    self._check_torn(fd)
                    return
                self._position += SIZE
                yield entry
            if not whole:
                return

    def _check_torn(self, fd: int) -> None:
        """Accept an invalid entry at the end, or zeros up to the end (blocks that never reached the disk)."""
        position = self._position
        if position + 2 * SIZE > os.fstat(fd).st_size:
            return
        while data := os.pread(fd, _AT_ONCE, position):
            if data.strip(b"\0"):
                raise InvalidFile(f"the journal {self.path} is damaged at byte {self._position}")
            position += len(data)


def read_entries(path: Path) -> Iterator[Entry]:
    """Yield all entries of a complete journal."""
    return JournalReader(path).read()
