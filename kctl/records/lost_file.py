"""The file that keeps what was not acknowledged, so that it can be given back."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.errors import AlreadyExists, InvalidFile, OperationFailed
from kctl.records.produce_json import json_line

if TYPE_CHECKING:
    from kctl.records.produce import Lost


class LostFile:
    """Made at once, for its owner only, so that it is known to be writable before anything is sent; gone when empty.

    Raises AlreadyExists for a file that has content, which may be all that is left of other records, InvalidFile.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise InvalidFile(f"cannot write {path}: {exc.strerror}") from None
        if os.fstat(self._fd).st_size:
            os.close(self._fd)
            raise AlreadyExists(
                f"{path} has content, perhaps of records that are nowhere else",
                hint="name another file, or move it away",
            )

    def write(self, topic: str, lost: Iterable[Lost]) -> int:
        """How many records were written and are on the disk. Raises OperationFailed."""
        count = 0
        try:
            with os.fdopen(os.dup(self._fd), "w", encoding="utf-8") as file:
                for line, record, outcome in lost:
                    file.write(json_line(record, topic=topic, line=line, outcome=outcome) + "\n")
                    count += 1
            os.fsync(self._fd)
        except OSError as exc:
            raise OperationFailed(
                f"cannot write what was not acknowledged to {self.path}: {exc.strerror}; it has {count} records"
            ) from None
        return count

    def close(self) -> None:
        """Remove it when it is empty."""
        with suppress(OSError):
            if not os.fstat(self._fd).st_size:
                self.path.unlink()
        os.close(self._fd)
