"""Journals of long operations: planned and completed steps, so that the next run can resume where this one stopped.

A journal is a file of JSON Lines. Each entry is on disk (fsync) before `append` returns. An operation that records its
intent before it acts can therefore always be resumed: an intent without a "done" entry may or may not have been carried
out, so the cluster is checked. A crash may tear the last line, which is ignored, and removed when the journal is
resumed. One process at a time locks a journal (flock); readers need no lock.

Each entry ends in `check`, a hash of the entry and of the previous check, so that manual edits are detected. Entries of
older releases have no check, and are accepted before the first checked entry. The check is not a signature: owners and
modes keep other users from writing, and are verified whenever a journal is opened.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kctl.base.durable import sync_folder
from kctl.errors import Busy, InvalidFile, KctlError, NotFound, OperationFailed, Reason, Refused

MAX_BYTES = 256 << 20  # a plan of a million partitions takes some 100 MB
_CHECK = re.compile(rb',"check":"([0-9a-f]{16})"\}\Z')
_FILE_KINDS = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"), (stat.S_ISLNK, "a link"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip
_MOVE_AWAY = "check the state of the cluster, then move it away"
_UNCHECKED = ""  # before the first entry, and after one of an older kctl


class Journal:
    """A journal that is locked for writing. entries: its content, each with a `step` and a time `at`.

    Returned by `create` and `resume`. `with` closes the journal, which releases the lock.
    """

    def __init__(self, path: Path, fd: int, entries: list[dict[str, Any]], check: str = _UNCHECKED) -> None:
        self.path = path
        self._fd = fd
        self._check = check
        self.entries = entries

    def append(self, step: str, **fields: Any) -> None:
        """Write an entry, and return when it is on disk. Raises OperationFailed (e.g. disk full)."""
        entry = {"step": step, "at": _now(), **fields}
        body = json.dumps(entry, separators=(",", ":"), ensure_ascii=True).encode()
        check = _check_of(self._check, body)
        line = body[:-1] + b',"check":"%s"}\n' % check.encode()
        try:
            end = os.fstat(self._fd).st_size
            try:
                _write(self._fd, line)
                os.fsync(self._fd)
            except OSError:
                os.ftruncate(self._fd, end)  # half an entry would corrupt the next one
                raise
        except OSError as exc:
            raise OperationFailed(f"cannot write the journal {self.path}: {exc.strerror}") from exc
        self._check = check
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
    """Create an empty journal and lock it. Raises OperationFailed, also if the file exists."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise OperationFailed(f"cannot write the journal {path}: {exc.strerror}") from exc
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    sync_folder(path.parent)
    return Journal(path, fd, [])


def resume(path: Path) -> Journal:
    """Lock a journal to resume its run. Raises Busy if another process holds it; otherwise raises as `read` does."""
    fd = open_private(path, os.O_RDWR | os.O_APPEND)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another kctl works on {path}", hint="wait until it has ended") from None
        data = _read(fd, path)
        entries, whole, check = _parse(data, path)
        if whole < len(data):
            os.ftruncate(fd, whole)
            os.fsync(fd)
    except BaseException:
        os.close(fd)
        raise
    return Journal(path, fd, entries, check)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the entries without locking the journal. Raises NotFound, InvalidFile, Refused."""
    with opened(path) as fd:
        return _parse(_read(fd, path), path)[0]


def is_locked(path: Path) -> bool:
    """Return True if a process has locked the journal; False if there is no journal."""
    try:
        with opened(path) as fd:
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    except NotFound:
        pass
    return False


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Open a journal for reading, with the checks of `open_private`."""
    fd = open_private(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def open_private(path: Path, flags: int) -> int:
    """Open a file that no other user can have written, without blocking.

    Raises NotFound, OperationFailed, InvalidFile for anything but a file, Refused if another user owns the file or its
    folder, or can write to one of them.
    """
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        raise _unreadable(path, exc) from exc
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidFile(f"{path} is {_kind(status.st_mode)}, not a file", hint=_MOVE_AWAY)
        _check_own(f"the journal {path}", path, status)
        check_folder(path.parent)
    except OSError as exc:
        os.close(fd)
        raise _unreadable(path, exc) from exc
    except BaseException:
        os.close(fd)
        raise
    return fd


def check_folder(path: Path) -> None:
    """Raise Refused for a folder in which another user can replace kctl's files. Raises OSError."""
    _check_own(f"the folder {path}", path, path.stat())


def _check_own(what: str, path: Path, status: os.stat_result) -> None:
    mode = status.st_mode
    if status.st_uid not in {os.geteuid(), 0}:
        raise Refused(
            f"{what} belongs to user {status.st_uid}, not to you ({os.geteuid()})",
            hint="continue as the user who began the run, or set XDG_STATE_HOME to a folder of your own",
            reason=Reason.UNSAFE,
        )
    # In a sticky folder, users cannot replace files of other users.
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
        raise Refused(
            f"other users can write to {what} (mode {stat.S_IMODE(mode):04o})",
            hint=f"check its content, then run: chmod go-w {path}",
            reason=Reason.UNSAFE,
        )


def _kind(mode: int) -> str:
    return next((name for test, name in _FILE_KINDS if test(mode)), "something else")


def _read(fd: int, path: Path) -> bytes:
    size = os.fstat(fd).st_size
    if size > MAX_BYTES:
        raise InvalidFile(f"{path} is not a journal: it has {size:,} bytes")
    pieces, position = [], 0
    while position < size:
        piece = os.pread(fd, min(size - position, 1 << 20), position)
        if not piece:
            break
        pieces.append(piece)
        position += len(piece)
    return b"".join(pieces)


def _parse(data: bytes, path: Path) -> tuple[list[dict[str, Any]], int, str]:
    """Return the entries, their size in bytes (without a torn last line), and the check of the last entry."""
    entries: list[dict[str, Any]] = []
    whole = data.rfind(b"\n") + 1
    check = _UNCHECKED
    for number, line in enumerate(data[:whole].split(b"\n")[:-1], 1):
        body, written = _split(line)
        try:
            entry = json.loads(body)
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, Mapping) or not isinstance(entry.get("step"), str):
            raise InvalidFile(f"line {number} of {path} is not a journal entry", hint="check the file")
        if (check or written or "check" in entry) and written != _check_of(check, body):
            raise InvalidFile(
                f"line {number} of {path} was edited, or a line before it is missing",
                hint=f"nothing was changed; restore the file, or {_MOVE_AWAY}",
            )
        check = written
        entries.append(dict(entry))
    return entries, whole, check


def _split(line: bytes) -> tuple[bytes, str]:
    """Return an entry without its check, and the check; "" if it has none."""
    match = _CHECK.search(line, max(0, len(line) - 40))
    return (line, _UNCHECKED) if match is None else (line[: match.start()] + b"}", match.group(1).decode())


def _check_of(before: str, body: bytes) -> str:
    return hashlib.sha256(before.encode() + body).hexdigest()[:16]


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _unreadable(path: Path, exc: OSError) -> KctlError:
    if isinstance(exc, FileNotFoundError):
        return NotFound(f"there is no journal {path}")
    if exc.errno == errno.ELOOP:
        return InvalidFile(f"{path} is a link, not a file", hint=_MOVE_AWAY)
    if exc.errno in {errno.ENXIO, errno.ENODEV, errno.EISDIR}:  # a socket, a device without a driver, a folder
        return InvalidFile(f"{path} is not a file", hint=_MOVE_AWAY)
    return OperationFailed(f"cannot read the journal {path}: {exc.strerror}")
