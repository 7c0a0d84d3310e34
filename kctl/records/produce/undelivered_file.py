"""The file for unacknowledged records, so that they can be sent again."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.errors import AlreadyExists, InvalidFile, OperationFailed
from kctl.records.produce.json import json_line

if TYPE_CHECKING:
    from kctl.records.produce.options import UnacknowledgedRecord

_FLUSH_EVERY = 100


class UndeliveredFile:
    """A file for unacknowledged records, readable only by its owner. written: number of records in it.

    It is created before anything is sent, to verify that it is writable, and removed if it stays empty, unless it
    existed before. Raises AlreadyExists for a file with content, which may be the only copy of other records,
    InvalidFile.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK  # do not block on a pipe
        try:
            try:
                self._fd, self._created = os.open(path, flags | os.O_EXCL, 0o600), True
            except FileExistsError:
                self._fd, self._created = os.open(path, flags, 0o600), False
        except OSError as exc:
            raise InvalidFile(f"cannot write {path}: {exc.strerror}") from None
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            raise InvalidFile(f"{path} is not a regular file", hint="use a path that does not exist yet")
        if status.st_size:
            os.close(self._fd)
            raise AlreadyExists(
                f"{path} has content, which may be the only copy of other records",
                hint="use another file, or move this one away",
            )

    def write(self, topic: str, records: Iterable[UnacknowledgedRecord]) -> int:
        """Write records to disk and return their number. Raises OperationFailed."""
        try:
            with os.fdopen(os.dup(self._fd), "w", encoding="utf-8") as file:
                count = 0
                for count, (line, record, outcome) in enumerate(records, 1):
                    file.write(json_line(record, topic=topic, line=line, outcome=outcome) + "\n")
                    if count % _FLUSH_EVERY == 0:
                        file.flush()
                        self.written = count
                file.flush()
                self.written = count
            if count:
                os.fsync(self._fd)
        except OSError as exc:
            raise OperationFailed(
                f"cannot write unacknowledged records to {self.path}: {exc.strerror};"
                f" only the first {self.written} records are complete"
            ) from None
        return count

    def close(self) -> None:
        """Close the file; remove it if it is new and empty."""
        with suppress(OSError):
            if self._created and not os.fstat(self._fd).st_size:
                self.path.unlink()
        os.close(self._fd)
