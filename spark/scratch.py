"""The temporary folder of a Spark driver, removed with it. The folder of a killed kctl is removed by the next one.

The owner holds a lock (flock) on the folder. The kernel releases it when the process ends, for any reason.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kctl.errors import OperationFailed

PREFIX = "kctl-spark-"
_YOUNG_S = 60.0  # its owner may not hold the lock yet


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder under TMPDIR for this user alone. Raises OperationFailed when it cannot be made."""
    sweep()
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as exc:
        raise OperationFailed(
            f"cannot make a temporary folder in {tempfile.gettempdir()}: {exc.strerror}",
            hint="set TMPDIR to a folder with free space",
        ) from exc
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep() -> None:
    """Remove this user's folders whose owner is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            _remove_abandoned(folder)


def _remove_abandoned(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        result = os.fstat(fd)
        if result.st_uid != os.getuid() or time.time() - result.st_mtime < _YOUNG_S:
            return
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its owner lives
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(fd)
