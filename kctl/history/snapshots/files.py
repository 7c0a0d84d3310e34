"""Files of a store: written atomically, and opened only if they are regular files.

A file is written under a temporary name in its folder, synced, renamed, and the folder is synced: after a power
failure a file that exists is complete (rename(2), fsync(2)).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from kctl.base.durable import sync_folder
from kctl.errors import NotAuthorized, OperationFailed
from kctl.history.snapshots.remote import RemotePath

TEMPORARY = ".tmp"  # suffix of a file that is being written


class NotPlain(OSError):
    """Raised for a link, a pipe or a device in the store; they are never opened."""


def failed(what: str, path: Path, exc: OSError) -> NotAuthorized | OperationFailed:
    """Return the error for a failed operation on a file. what: the operation, e.g. "write"."""
    reason = str(exc) if isinstance(exc, NotPlain) else exc.strerror or str(exc)
    if isinstance(exc, PermissionError):
        return NotAuthorized(f"cannot {what} {path}: {reason}", hint="run kctl as the user that owns the store")
    return OperationFailed(f"cannot {what} {path}: {reason}")


def make_folder(root: Path, folder: Path) -> None:
    """Create `folder` below `root` with its parents, each synced before the next. Raises OSError."""
    here = root
    for part in folder.relative_to(root).parts:
        parent, here = here, here / part
        try:
            here.mkdir()
        except FileExistsError:
            if not stat.S_ISDIR(here.lstat().st_mode):
                raise NotPlain(f"{here} is not a folder") from None
        else:
            sync_folder(parent)


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream that becomes the file `path` if the block succeeds; otherwise nothing changes. Raises OSError."""
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    with suppress(FileNotFoundError):
        temporary.unlink()  # left by a crashed writer: the lock excludes a running one
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o644)
    try:
        with os.fdopen(fd, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)  # noqa: PTH105 - the usual idiom with fsync
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


@contextmanager
def opened(path: Path | RemotePath) -> Iterator[BinaryIO]:
    """Yield a regular file for reading. Raises OSError, and NotPlain if it is not a regular file."""
    if isinstance(path, RemotePath):
        with path.opened() as stream:
            yield stream
        return
    with os.fdopen(_open(path), "rb") as stream:
        yield stream


def _open(path: Path) -> int:
    try:  # without O_NONBLOCK, opening a pipe would block
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        if path.is_symlink():
            raise NotPlain("it is a symbolic link") from exc
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotPlain("it is not a regular file")
    return fd


def names(folder: Path | RemotePath) -> list[str]:
    """Return the sorted names in a folder; empty if the folder does not exist or is a link. Raises OSError."""
    if isinstance(folder, RemotePath):
        return folder.names()
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        if folder.is_symlink():
            return []
        raise
    try:
        return sorted(os.listdir(fd))  # noqa: PTH208 - lists the opened folder even if it was renamed
    finally:
        os.close(fd)


def remove(folder: Path, file_names: list[str]) -> None:
    """Remove files of a folder, and the folder if it is then empty. Missing files are ignored."""
    for name in file_names:
        with suppress(FileNotFoundError):
            (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()
