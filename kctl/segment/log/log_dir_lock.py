"""The lock of a log dir, as a broker holds it: an exclusive POSIX lock on the file .lock (LogManager.lockLogDirs).

A broker removes the file when it stops cleanly, so that it need not be there.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kctl.base.binary_layout import INT16, INT32, INT64, NATIVE, Layout, padding
from kctl.errors import Busy, NotAuthorized, OperationFailed
from kctl.segment.format.checkpoints import META_PROPERTIES, OFFSET_CHECKPOINTS

LOCK = ".lock"
# struct flock of 64-bit Linux (fcntl(2)).
_FLOCK = Layout(
    NATIVE,
    type=INT16,
    whence=INT16,
    start=INT64,
    length=INT64,
    pid=INT32,
    end=padding(4),
)


def log_dir_of(folder: Path) -> Path | None:
    """The log dir that a partition's folder is in, by this path; None when nothing of one is above it (a copy)."""
    parent = folder.absolute().parent
    names = (LOCK, META_PROPERTIES, *OFFSET_CHECKPOINTS)
    return parent if any((parent / name).exists() for name in names) else None


def log_dirs_of(folder: Path) -> list[Path]:
    """The log dirs that it is in: by its path, and by where links lead."""
    found = (log_dir_of(folder), log_dir_of(folder.resolve()))
    return list(dict.fromkeys(log_dir.resolve() for log_dir in found if log_dir is not None))


def holder(log_dir: Path) -> str | None:
    """Who holds the lock, without taking it: «process 4711»; None when nobody does. Raises NotAuthorized."""
    try:
        fd = os.open(log_dir / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise _denied(log_dir, exc) from None
    try:
        return _holder(fd)
    finally:
        os.close(fd)


def _holder(fd: int) -> str | None:
    if sys.platform != "linux":  # the structure is another one; `hold` finds out
        return None
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, *_, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    if kind == fcntl.F_UNLCK:
        return None
    return f"process {pid}" if pid > 0 else "another process"


@contextmanager
def hold(log_dir: Path) -> Iterator[None]:
    """Keep brokers away while the block runs. Raises Busy when one is there, NotAuthorized, OperationFailed."""
    path = log_dir / LOCK
    fd, created = _open(log_dir, path)
    try:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            created = False  # somebody else uses it now
            who = _holder(fd) or "another process"
            raise Busy(
                f"{who} holds {path}: a broker uses this log dir", hint="stop the broker first; nothing was changed"
            ) from None
        yield
    finally:
        if created:
            path.unlink(missing_ok=True)
        os.close(fd)


def _open(log_dir: Path, path: Path) -> tuple[int, bool]:
    """An open .lock, and whether it was made; then it is the log dir's owner's, who must be able to open it."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags), False
    except FileNotFoundError:
        pass
    except OSError as exc:
        raise _denied(log_dir, exc) from None
    try:
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
        owner = log_dir.stat()
        if owner.st_uid != os.geteuid():
            os.fchown(fd, owner.st_uid, owner.st_gid)
    except FileExistsError:
        raise Busy(f"{path} has just appeared: a broker is starting", hint="nothing was changed") from None
    except OSError as exc:
        raise _denied(log_dir, exc) from None
    return fd, True


def _denied(log_dir: Path, exc: OSError) -> NotAuthorized | OperationFailed:
    if isinstance(exc, PermissionError):
        return NotAuthorized(
            f"{log_dir / LOCK} cannot be opened: permission denied", hint="run kctl as the broker's user"
        )
    return OperationFailed(f"{log_dir / LOCK} cannot be opened: {exc.strerror}")
