"""Reading a file that a person named: whole, bounded, and without waiting for what never comes."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from kctl.errors import InvalidFile, NotFound


def read_input(path: Path, *, max_bytes: int, hint: str | None = None) -> tuple[bytes, str]:
    """The bytes, and the name for messages. «-» is stdin. hint: where such a file comes from.

    Raises NotFound, and InvalidFile for what is no file, cannot be read or has more than max_bytes.
    """
    if str(path) == "-":
        return _bounded(sys.stdin.buffer, "stdin", max_bytes), "stdin"
    try:
        # A FIFO without a writer must not keep us; a device has no end.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
                raise InvalidFile(f"{path} is not a file", hint=hint)
            os.set_blocking(fd, True)
            return _bounded(file, str(path), max_bytes), str(path)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", hint=hint) from None
    except OSError as exc:
        raise InvalidFile(f"cannot read {path}: {exc.strerror}", hint=hint) from exc


def _bounded(stream: BinaryIO, name: str, max_bytes: int) -> bytes:
    data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise InvalidFile(f"{name} has more than {max_bytes:,} bytes", hint="is it the right file?")
    return data
