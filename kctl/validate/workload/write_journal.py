"""Write the journal of a producer or consumer, which survives kill -9 of the process.

One write(2) per iteration of the process, without fsync: a validation tests brokers, not a power loss of this machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from kctl.errors import OperationFailed
from kctl.validate.workload.entries import READ, Entry, Header, encode, encode_header
from kctl.validate.workload.records import FOREIGN


class JournalWriter:
    """A new journal; the file must not exist. `with` closes it. Raises OperationFailed if it cannot be written."""

    def __init__(self, path: Path, run: str) -> None:
        self._path = path
        self._buffer = bytearray()
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise self._failed(exc) from None
        self._buffer += encode_header(Header(run, time.time_ns(), time.monotonic_ns()))
        self.write()

    def add(self, kind: int, partition: int = 0, records: int = 0, sequence: int = -1, offset: int = -1) -> None:
        """Add an entry with the current time; buffered until `write`."""
        self._buffer += encode(Entry(kind, partition, records, sequence, offset, time.monotonic_ns()))

    def add_read(self, partition: int, offsets: Sequence[int], sequences: Sequence[int]) -> None:
        """Add records in order: an entry per range of consecutive offsets and sequences."""
        begin = 0
        for index in range(1, len(offsets) + 1):
            if index < len(offsets) and offsets[index] == offsets[index - 1] + 1:
                before, now = sequences[index - 1], sequences[index]
                if now == (FOREIGN if before == FOREIGN else before + 1):
                    continue
            self.add(READ, partition, index - begin, sequences[begin], offsets[begin])
            begin = index

    def write(self) -> None:
        """Write all buffered entries to the file."""
        try:
            while self._buffer:
                del self._buffer[: os.write(self._fd, self._buffer)]
        except OSError as exc:
            raise self._failed(exc) from None

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _failed(self, exc: OSError) -> OperationFailed:
        return OperationFailed(f"cannot write the journal {self._path}: {exc.strerror}")
