"""Output files named on the command line: the only place that writes results to a path instead of stdout.

A regular file is replaced as a whole and keeps its mode and owner. Other targets (a pipe, a character device,
/dev/stdout, /dev/fd/N) are written to and not replaced. Links are followed. A file with hard links, a file in a folder
where kctl cannot create files, and a mount point are written in place, after the disk space is reserved.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from kctl.errors import OperationFailed, UsageError

PIPE_WAIT_S = 30.0  # to wait for the reader of a pipe, also if it stops reading
_MAX_LINKS = 40  # as in Linux
_DESCRIPTORS = re.compile(r"/proc/([0-9]+)(?:/task/[0-9]+)?/fd")
# Errors of creating or renaming a file after which the existing file is overwritten in place.
_IN_PLACE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.EROFS})


@dataclass(frozen=True)
class OutputTarget:
    """The file, pipe, device or descriptor that a path leads to.

    path: with all links resolved. descriptor: of this process, for /dev/stdout and the like. status: of the existing
    file, or None.
    """

    path: Path
    descriptor: int | None
    status: os.stat_result | None

    @property
    def is_regular(self) -> bool:
        """Return True if the target is an existing regular file."""
        return self.descriptor is None and self.status is not None and stat.S_ISREG(self.status.st_mode)

    @property
    def has_content(self) -> bool:
        """Return True if a write would lose data: the target is a nonempty regular file."""
        return self.is_regular and self.status is not None and self.status.st_size > 0


def check_output_path(path: Path) -> OutputTarget:
    """Return where `path` leads. Raises UsageError if no file could be written there; nothing is opened or changed."""
    try:
        target = _resolve(path)
    except OSError as exc:
        raise UsageError(f"cannot write {path}: {exc.strerror}", hint="name another file") from None
    if target.descriptor is not None:
        return target
    if target.status is None:
        _check_folder(target.path.parent, path)
        return target
    mode = target.status.st_mode
    if stat.S_ISDIR(mode):
        raise UsageError(f"{path} is a folder", hint="name a file in it")
    if stat.S_ISBLK(mode):
        raise UsageError(f"{path} is a block device, which kctl does not write to", hint="name a file")
    if stat.S_ISSOCK(mode):
        raise UsageError(f"{path} is a socket, which kctl does not write to", hint="name a file")
    if not os.access(target.path, os.W_OK):
        raise UsageError(f"this user cannot write to {path}", hint="name another file")
    return target


@contextlib.contextmanager
def open_output(path: Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Yield a stream for the whole content of `path`; the old content stays if the block raises.

    mode: of a new file, before the umask. Raises UsageError as check_output_path does, OperationFailed when the content
    could not be written, BrokenPipeError if the reader of this process's stdout has closed it.
    """
    target = check_output_path(path)
    try:
        if target.descriptor is not None:
            with _own_descriptor(target.descriptor) as stream:
                yield stream
        elif target.status is not None and not target.is_regular:
            with _special(target.path) as stream:
                yield stream
        else:
            with _regular(target, mode) as stream:
                yield stream
    except BrokenPipeError as exc:
        if target.descriptor is not None:
            raise
        raise OperationFailed(f"cannot write {path}: its reader closed the pipe") from exc
    except OSError as exc:
        raise OperationFailed(f"cannot write {path}: {exc.strerror or exc}") from exc


def write_output(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write `data` as the whole content of `path`. Raises as open_output does."""
    with open_output(path, mode=mode) as stream:
        stream.write(data)


# --- where a path leads -----------------------------------------------------------------------------------------------


def _resolve(path: Path) -> OutputTarget:
    """Follow links as the kernel does, dangling ones too. Raises OSError, UsageError."""
    at = os.path.abspath(path)  # noqa: PTH100 - resolve() would follow the links that are checked here
    for _ in range(_MAX_LINKS):
        folder, name = os.path.split(at)
        at = os.path.join(os.path.realpath(folder), name)  # noqa: PTH118
        number = _descriptor_of(at)
        if number is not None:
            return OutputTarget(path, number, os.fstat(number))
        try:
            status = os.lstat(at)
        except FileNotFoundError:
            return OutputTarget(Path(at), None, None)
        if not stat.S_ISLNK(status.st_mode):
            return OutputTarget(Path(at), None, status)
        if at.startswith("/proc/"):  # a magic link of the kernel: it leads to an open file, not to a name
            return OutputTarget(Path(at), None, os.stat(at))  # noqa: PTH116
        _check_link(at, status)
        at = os.path.normpath(os.path.join(os.path.dirname(at), os.readlink(at)))  # noqa: PTH115, PTH118, PTH120
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _descriptor_of(path: str) -> int | None:
    """Return the descriptor of this process that a path in /proc names."""
    folder, name = os.path.split(path)
    match = _DESCRIPTORS.fullmatch(folder)
    return int(name) if match and int(match[1]) == os.getpid() and name.isascii() and name.isdigit() else None


def _check_link(link: str, status: os.stat_result) -> None:
    """Refuse another user's link in a world-writable folder, as Linux does with fs.protected_symlinks."""
    folder = os.stat(os.path.dirname(link))  # noqa: PTH116, PTH120
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    if shared and status.st_uid not in {os.geteuid(), folder.st_uid}:
        raise UsageError(f"{link} is another user's link in a shared folder", hint="name another file")


def _check_folder(folder: Path, path: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"the folder {folder} does not exist", hint=f"create it, or name another file than {path}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"this user cannot write into {folder}", hint="name a file in another folder")


# --- descriptors, pipes and devices -----------------------------------------------------------------------------------


@contextlib.contextmanager
def _own_descriptor(number: int) -> Iterator[BinaryIO]:
    """Yield a stream to a descriptor that is already open; output is appended."""
    if number == 1:
        sys.stdout.flush()
    with os.fdopen(os.dup(number), "wb") as stream:
        yield stream


@contextlib.contextmanager
def _special(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream for a pipe or a device, which is written once the content is complete, with a bounded wait."""
    with tempfile.SpooledTemporaryFile(max_size=16 << 20) as spool:
        yield spool  # type: ignore[misc]  # it has all methods of BinaryIO that are used
        spool.seek(0)
        fd = _open_special(path)
        try:
            while piece := spool.read(1 << 16):
                _write_special(fd, piece)
        finally:
            os.close(fd)


def _open_special(path: Path) -> int:
    deadline = time.monotonic() + PIPE_WAIT_S
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as exc:
            if exc.errno != errno.ENXIO:
                raise
            if time.monotonic() > deadline:
                raise OSError(errno.ENXIO, f"no reader opened the pipe for {PIPE_WAIT_S:.0f} s") from None
            time.sleep(0.02)


def _write_special(fd: int, data: bytes) -> None:
    import select

    deadline = time.monotonic() + PIPE_WAIT_S
    waiting = select.poll()
    waiting.register(fd, select.POLLOUT)
    while data:
        try:
            data = data[os.write(fd, data) :]
            deadline = time.monotonic() + PIPE_WAIT_S
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(errno.ETIMEDOUT, f"its reader did not read for {PIPE_WAIT_S:.0f} s") from None
            waiting.poll(500)


# --- regular files ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _regular(target: OutputTarget, mode: int) -> Iterator[BinaryIO]:
    if _must_stay(target):
        with _in_place(target.path) as stream:
            yield stream
        return
    try:
        fd, name = _new_file(target.path, mode)
    except OSError as exc:
        if target.status is None or exc.errno not in _IN_PLACE:
            raise
        with _in_place(target.path) as stream:
            yield stream
        return
    try:
        with os.fdopen(fd, "w+b") as stream:
            if target.status is not None:
                _take_over(fd, target)  # first, so that only readers of the old content can read the new content
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            _put_in_place(stream, name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108 - a str, not a Path
        raise


def _must_stay(target: OutputTarget) -> bool:
    """Return True if the file must be written in place: it has hard links, or an owner that a new file cannot have."""
    status = target.status
    if status is None:
        return False
    if status.st_nlink != 1:
        return True
    return os.geteuid() != 0 and (status.st_uid != os.geteuid() or status.st_gid not in {os.getegid(), *os.getgroups()})


def _new_file(path: Path, mode: int) -> tuple[int, str]:
    """Create an empty file beside `path`; the umask and default ACLs apply to its mode."""
    name = str(path.with_name(f".kctl-{secrets.token_hex(8)}.tmp"))
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), name


def _put_in_place(stream: BinaryIO, name: str, target: OutputTarget) -> None:
    try:
        os.replace(name, target.path)  # noqa: PTH105 - a str, not a Path
    except OSError as exc:
        if target.status is None or exc.errno not in _IN_PLACE:
            raise
        stream.seek(0)  # a mount point cannot be renamed over
        _overwrite(target.path, stream)
        os.unlink(name)  # noqa: PTH108
        return
    from kctl.base.durable import sync_folder

    with contextlib.suppress(OSError):  # not supported by some file systems
        sync_folder(target.path.parent)


def _take_over(fd: int, target: OutputTarget) -> None:
    """Give a new file the owner, mode and extended attributes (ACLs too) of the one that it replaces."""
    status = target.status
    assert status is not None
    if (status.st_uid, status.st_gid) != (os.fstat(fd).st_uid, os.fstat(fd).st_gid):
        os.fchown(fd, status.st_uid, status.st_gid)
    os.fchmod(fd, status.st_mode & 0o777)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for attribute in os.listxattr(target.path):
                with contextlib.suppress(OSError):
                    os.setxattr(fd, attribute, os.getxattr(target.path, attribute))


@contextlib.contextmanager
def _in_place(path: Path) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() as spool:
        yield spool
        spool.seek(0)
        _overwrite(path, spool)


def _overwrite(path: Path, content: BinaryIO) -> None:
    """Overwrite a file in place. If the disk has no room, fail before any old content is lost."""
    size = os.fstat(content.fileno()).st_size
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "wb") as stream:
        before = os.fstat(stream.fileno()).st_size
        try:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(stream.fileno(), 0, size)
        except OSError as exc:
            if exc.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
                os.ftruncate(stream.fileno(), before)
                raise
        while piece := content.read(1 << 20):
            stream.write(piece)
        stream.flush()
        os.ftruncate(stream.fileno(), size)
        os.fsync(stream.fileno())
