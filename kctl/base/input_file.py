"""Read a file named by the user: whole, bounded in size, and without hanging on a silent pipe."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from pathlib import Path
from typing import BinaryIO

from kctl.errors import InvalidFile, NotFound

PIPE_WAIT_S = 10.0  # to wait for the writer of a named pipe, and for each piece of data
_PIPE_TOTAL_S = 120.0


def read_input(path: Path, *, max_bytes: int, hint: str | None = None, await_writer: bool = True) -> tuple[bytes, str]:
    """Return the bytes, and the name for messages.

    path: "-" is stdin. hint: how to get such a file. await_writer: wait for the writer of a named pipe, and fail if
    there is none (otherwise, the pipe counts as empty). Raises NotFound, and InvalidFile for a file that is not
    regular, unreadable or larger than max_bytes.
    """
    if str(path) == "-":
        return _checked(sys.stdin.buffer.read(max_bytes + 1), "stdin", max_bytes), "stdin"
    try:
        data = read_path(path, max_bytes=max_bytes + 1, hint=hint, await_writer=await_writer)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", hint=hint) from None
    except OSError as exc:
        raise InvalidFile(f"cannot read {path}: {exc.strerror}", hint=hint) from exc
    return _checked(data, str(path), max_bytes), str(path)


def read_path(path: Path, *, max_bytes: int, hint: str | None = None, await_writer: bool = True) -> bytes:
    """Read at most max_bytes of a regular file or a pipe.

    Raises OSError, and InvalidFile for a silent pipe and for anything that is neither a file nor a pipe.
    """
    # A FIFO without a writer must not block kctl, and a device has no end.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        mode = status.st_mode
        if stat.S_ISCHR(mode) and status.st_rdev == os.stat(os.devnull).st_rdev:  # noqa: PTH116 - an empty file
            return b""
        if stat.S_ISFIFO(mode):
            return _of_pipe(file, path, max_bytes, await_writer=await_writer)
        if not stat.S_ISREG(mode):
            raise InvalidFile(f"{path} is not a file", hint=hint)
        return file.read(max_bytes)


def _of_pipe(file: BinaryIO, path: Path, max_bytes: int, *, await_writer: bool) -> bytes:
    """Read until the writer closes the pipe."""
    fd, data, deadline, polled = file.fileno(), bytearray(), time.monotonic() + _PIPE_TOTAL_S, False
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    while len(data) < max_bytes:
        try:
            piece = os.read(fd, max_bytes - len(data))
            if not piece and (polled or not await_writer):  # else: no writer has opened it yet
                break
        except BlockingIOError:
            piece = b""
        data += piece
        if time.monotonic() > deadline or not waiting.poll(PIPE_WAIT_S * 1000):
            raise InvalidFile(
                f"cannot read the pipe {path}: no data for {PIPE_WAIT_S:.0f} s", hint="check that its writer is running"
            )
        polled = True
    return bytes(data)


def _checked(data: bytes, name: str, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise InvalidFile(f"{name} has more than {max_bytes:,} bytes", hint="check that it is the right file")
    return data
