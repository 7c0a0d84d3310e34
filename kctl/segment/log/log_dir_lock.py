"""Hold the lock of a log dir like a broker: an exclusive POSIX lock on the file .lock (LogManager.lockLogDirs).

A broker removes the file on a clean shutdown.
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
    """Return the parent of a partition folder if it is a log dir; None if it is not (a copy)."""
    parent = folder.absolute().parent
    names = (LOCK, META_PROPERTIES, *OFFSET_CHECKPOINTS)
    return parent if any((parent / name).exists() for name in names) else None


def log_dirs_of(folder: Path) -> list[Path]:
    """Return the log dirs of a partition folder: by its path, and by the resolved path."""
    candidates = (log_dir_of(folder), log_dir_of(folder.resolve()))
    return list(dict.fromkeys(log_dir.resolve() for log_dir in candidates if log_dir is not None))


def holder(log_dir: Path) -> str | None:
    """Return the holder of the lock, e.g. "process 4711", without locking; None if free. Raises NotAuthorized."""
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
    if sys.platform != "linux":  # struct flock differs; `hold` fails if the lock is taken
        return None
    query = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, *_, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, query))
    if kind == fcntl.F_UNLCK:
        return None
    return f"process {pid}" if pid > 0 else "another process"


@contextmanager
def hold(log_dir: Path) -> Iterator[None]:
    """Lock out brokers while the block runs. Raises Busy if a broker holds the lock, NotAuthorized, OperationFailed."""
    path = log_dir / LOCK
    fd, created = _open(log_dir, path)
    try:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            created = False  # another process uses the file now
            holder_name = _holder(fd) or "another process"
            raise Busy(
                f"{holder_name} holds {path}: a broker uses this log dir",
                hint="nothing was changed; stop the broker first",
            ) from None
        yield
    finally:
        if created:
            path.unlink(missing_ok=True)
        os.close(fd)


def _open(log_dir: Path, path: Path) -> tuple[int, bool]:
    """Open .lock, or create it. Return the descriptor, and True if the file was created.

    A new file gets the owner of the log dir, because the broker must be able to open it.
    """
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
        raise Busy(
            f"{path} was just created: a broker is starting", hint="nothing was changed; stop the broker first"
        ) from None
    except OSError as exc:
        raise _denied(log_dir, exc) from None
    return fd, True


def _denied(log_dir: Path, exc: OSError) -> NotAuthorized | OperationFailed:
    if isinstance(exc, PermissionError):
        return NotAuthorized(f"cannot open {log_dir / LOCK}: permission denied", hint="run kctl as the broker's user")
    return OperationFailed(f"cannot open {log_dir / LOCK}: {exc.strerror}")
