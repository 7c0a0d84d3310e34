"""Files of a store: written so that a crash leaves all of one or nothing, and opened only when they are plain files.

A file is written under a temporary name in its folder, forced to the disk, renamed, and the folder is forced to the
disk: after a loss of power a name that is there has all of its bytes (rename(2), fsync(2)).
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

TEMPORARY = ".tmp"  # how the name of a file that is being written ends


class NotPlain(OSError):
    """A name in the store is a link, a pipe or a device: it is never opened."""


def failed(what: str, path: Path, exc: OSError) -> NotAuthorized | OperationFailed:
    """The error for a file that could not be handled; what: «write», «read», …"""
    reason = str(exc) if isinstance(exc, NotPlain) else exc.strerror or str(exc)
    if isinstance(exc, PermissionError):
        return NotAuthorized(f"cannot {what} {path}: {reason}", hint="run kctl as the user that owns the store")
    return OperationFailed(f"cannot {what} {path}: {reason}")


def make_folder(root: Path, folder: Path) -> None:
    """Make `folder` below `root` with all that is missing, each on the disk before the next. Raises OSError."""
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
    """A stream whose bytes are `path` when the block has ended well; else nothing has changed. Raises OSError."""
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    with suppress(FileNotFoundError):
        temporary.unlink()  # of a writer that died: the lock says that there is no other one
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o644)
    try:
        with os.fdopen(fd, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)  # noqa: PTH105 - next to fsync, as the rule is known
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


@contextmanager
def opened(path: Path | RemotePath) -> Iterator[BinaryIO]:
    """A plain file for reading. Raises NotPlain for what is none, OSError."""
    if isinstance(path, RemotePath):
        with path.opened() as stream:
            yield stream
        return
    with os.fdopen(_open(path), "rb") as stream:
        yield stream


def _open(path: Path) -> int:
    try:  # without O_NONBLOCK a pipe would be waited for
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
    """The names in a folder, sorted; none when it does not exist or is a link. Raises OSError."""
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
        return sorted(os.listdir(fd))  # noqa: PTH208 - of the folder that was opened, whatever its name is now
    finally:
        os.close(fd)


def remove(folder: Path, chosen: list[str]) -> None:
    """Remove files of a folder, and the folder when it is empty then. What is gone already is no failure."""
    for name in chosen:
        with suppress(FileNotFoundError):
            (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()
