"""The lock of a store: one collector at a time. Readers need none."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kctl.errors import Busy
from kctl.history.snapshots import files
from kctl.history.snapshots.layout import LOCK_FILE


@contextmanager
def hold(root: Path) -> Iterator[None]:
    """Hold the store in `root`, an existing folder, while the block runs (flock on .lock, released if a process dies).

    The file is never removed: otherwise two processes could hold two files of this name. Raises Busy, OperationFailed,
    NotAuthorized.
    """
    path = root / LOCK_FILE
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o644)
    except OSError as exc:
        raise files.failed("open", path, exc) from exc
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(
                f"{_holder(fd)} is collecting into {root}",
                hint="a store allows one collector: stop the running one first",
            ) from None
        except OSError as exc:
            raise files.failed("lock", path, exc) from exc
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def _holder(fd: int) -> str:
    text = os.pread(fd, 32, 0).strip()
    return f"process {int(text)}" if text.isdigit() else "another process"
