"""The temporary folder of a Spark driver. kctl removes it on exit; the next kctl removes the folder of a killed one.

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
_YOUNG_S = 60.0  # the owner of a younger folder may not hold the lock yet


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a new private folder under TMPDIR. Raises OperationFailed if it cannot be created."""
    sweep()
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as exc:
        raise OperationFailed(
            f"cannot create a temporary folder in {tempfile.gettempdir()}: {exc.strerror}",
            hint="set TMPDIR to a folder with free space",
        ) from exc
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep() -> None:
    """Remove this user's folders whose owner has exited."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            _remove_abandoned(folder)


def _remove_abandoned(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        result = os.fstat(fd)
        if result.st_uid != os.getuid() or time.time() - result.st_mtime < _YOUNG_S:
            return
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: the owner is still running
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(fd)
