"""The file that keeps what was not acknowledged, so that it can be given back."""

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
    from kctl.records.produce.options import Lost

_FLUSH_EVERY = 100


class LostFile:
    """Made at once, for its owner only, so that it is known to be writable before anything is sent; gone again when it
    stays empty, unless it was there before. written: how many records are in it.

    Raises AlreadyExists for a file that has content, which may be all that is left of other records, InvalidFile.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe is refused, not waited for
        try:
            try:
                self._fd, self._ours = os.open(path, how | os.O_EXCL, 0o600), True
            except FileExistsError:
                self._fd, self._ours = os.open(path, how, 0o600), False
        except OSError as exc:
            raise InvalidFile(f"cannot write {path}: {exc.strerror}") from None
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(self._fd)
            raise InvalidFile(f"{path} is no file that can keep records", hint="name one that does not exist yet")
        if found.st_size:
            os.close(self._fd)
            raise AlreadyExists(
                f"{path} has content, perhaps of records that are nowhere else",
                hint="name another file, or move it away",
            )

    def write(self, topic: str, lost: Iterable[Lost]) -> int:
        """How many records were written and are on the disk. Raises OperationFailed."""
        try:
            with os.fdopen(os.dup(self._fd), "w", encoding="utf-8") as file:
                count = 0
                for count, (line, record, outcome) in enumerate(lost, 1):
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
                f"cannot write what was not acknowledged to {self.path}: {exc.strerror};"
                f" of its records the first {self.written} are whole"
            ) from None
        return count

    def close(self) -> None:
        """Remove it when it is new and empty."""
        with suppress(OSError):
            if self._ours and not os.fstat(self._fd).st_size:
                self.path.unlink()
        os.close(self._fd)
