"""Make new and renamed files survive a power failure."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(path: Path) -> None:
    """Sync the folder's entries to disk. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
