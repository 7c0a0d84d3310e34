"""Journals: what a long operation is about to do and has done, so that the next run can go on where this one ended.

A file of JSON Lines. Each entry is on the disk (fsync) before `append` returns, so an operation that writes its intent
before it acts can always be taken up again: an intent without the entry that says «done» may or may not have been
carried out, and is looked at in the cluster. The last line may be torn by a crash; it says nothing and is cut off when
the journal is opened for going on. One process at a time holds a journal (flock); readers need no lock.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kctl.durable import sync_folder
from kctl.errors import Busy, InvalidFile, NotFound, OperationFailed

MAX_BYTES = 1 << 30


class Journal:
    """A journal that is held for writing. entries: what it says, with each entry's `step` and time `at`.

    Made by `create` and `resume`; `with` closes it, and so lets it go.
    """

    def __init__(self, path: Path, fd: int, entries: list[dict[str, Any]]) -> None:
        self.path = path
        self._fd = fd
        self.entries = entries

    def append(self, step: str, **fields: Any) -> None:
        """Write an entry, and return when it is on the disk. Raises OperationFailed (disk full, say)."""
        entry = {"step": step, "at": _now(), **fields}
        line = json.dumps(entry, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"
        try:
            end = os.fstat(self._fd).st_size
            try:
                _write(self._fd, line)
                os.fsync(self._fd)
            except OSError:
                os.ftruncate(self._fd, end)  # half an entry would be in the way of the next
                raise
        except OSError as exc:
            raise OperationFailed(f"cannot write the journal {self.path}: {exc.strerror}") from exc
        self.entries.append(entry)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def create(path: Path) -> Journal:
    """A new, empty journal, held. Raises OperationFailed, also when the file exists."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise OperationFailed(f"cannot write the journal {path}: {exc.strerror}") from exc
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    sync_folder(path.parent)
    return Journal(path, fd, [])


def resume(path: Path) -> Journal:
    """Hold a journal in order to go on with it. Raises Busy when another process does, NotFound, InvalidFile."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError as exc:
        raise _unreadable(path, exc) from exc
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another kctl works on {path}", hint="wait until it has ended") from None
        data = _read(fd, path)
        entries, whole = _parse(data, path)
        if whole < len(data):
            os.ftruncate(fd, whole)
            os.fsync(fd)
    except BaseException:
        os.close(fd)
        raise
    return Journal(path, fd, entries)


def read(path: Path) -> list[dict[str, Any]]:
    """The entries, without holding the journal. Raises NotFound, InvalidFile."""
    with _opened(path) as fd:
        return _parse(_read(fd, path), path)[0]


def held(path: Path) -> bool:
    """Is a process working on it? False when it does not exist."""
    try:
        with _opened(path) as fd:
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    except NotFound:
        pass
    return False


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as exc:
        raise _unreadable(path, exc) from exc
    try:
        yield fd
    finally:
        os.close(fd)


def _read(fd: int, path: Path) -> bytes:
    size = os.fstat(fd).st_size
    if size > MAX_BYTES:
        raise InvalidFile(f"{path} is no journal: it has {size:,} bytes")
    pieces, position = [], 0
    while position < size:
        piece = os.pread(fd, min(size - position, 1 << 20), position)
        if not piece:
            break
        pieces.append(piece)
        position += len(piece)
    return b"".join(pieces)


def _parse(data: bytes, path: Path) -> tuple[list[dict[str, Any]], int]:
    """The entries, and how many bytes they take: less than all when the last line is torn."""
    entries: list[dict[str, Any]] = []
    whole = data.rfind(b"\n") + 1
    for number, line in enumerate(data[:whole].splitlines(), 1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, Mapping) or not isinstance(entry.get("step"), str):
            raise InvalidFile(f"line {number} of {path} is no entry of a journal", hint="look at the file")
        entries.append(dict(entry))
    return entries, whole


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _unreadable(path: Path, exc: OSError) -> NotFound | OperationFailed:
    if isinstance(exc, FileNotFoundError):
        return NotFound(f"there is no journal {path}")
    return OperationFailed(f"cannot read the journal {path}: {exc.strerror}")
