"""Helpers of the fuzz tests of log files: small logs, damage, limits of time and memory, reusable files."""

from __future__ import annotations

import os
import resource
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from hypothesis import HealthCheck, settings

import segment_files as build
from segment_files import Rec
from segment_mutations import Mutation, apply, with_right_crcs

NAME = "00000000000000000000"
LIMIT = 1 << 20  # of a message
EACH_S = 2.0
MOST_MEMORY_BYTES = 300 << 20
TIMES = int(os.environ.get("KCTL_FUZZ", "0"))  # factor of the number of inputs, which then differ in each run
# Without the long tests, only a part of the inputs (tests/conftest.py).
SHARE = int(os.environ.get("KCTL_FUZZ_SHARE", "1"))


def inputs(examples: int) -> settings:
    """Return the settings of a test with this number of inputs, or a multiple or a part of it."""
    count = examples * TIMES if TIMES else examples // SHARE
    return settings(
        max_examples=count, derandomize=not TIMES, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


# --- logs ---------------------------------------------------------------------------------------------------------


def built_log(codec: str) -> bytes:
    """Return five batches: with nulls, unusual text, headers, gaps, a transaction and its marker."""
    odd = [
        Rec(None, b"x" * 5, [(b"h", b"1"), (b"h", None), ("ü".encode(), b"\xff")]),
        Rec(b"", None, offset=2),
        Rec("schlüssel".encode(), "\x1b[31m 日本 𝄞".encode(), offset=5, timestamp=-3),
        Rec(b"\xff\xed\xa0\x80", bytes(range(64)), offset=6),
    ]
    return b"".join([
        build.batch(0, 2, codec=codec),
        build.batch(3, odd, codec=codec, append_time=True),
        build.batch(10, 2, codec=codec, producer=(7, 0, 0), transactional=True),
        build.marker(12, (7, 0), commit=False),
        build.batch(13, 3, codec=codec, epoch=3),
    ])  # fmt: skip


def first_batches(path: Path, count: int) -> bytes:
    """Return the first batches of a real log."""
    data, end = path.read_bytes(), 0
    for _ in range(count):
        if end + 12 > len(data):
            break
        end += 12 + struct.unpack_from(">i", data, end + 8)[0]
    return data[:end]


def starts(data: bytes) -> list[int]:
    """Return the positions of batches."""
    found, position = [], 0
    while position + 12 <= len(data):
        found.append(position)
        position += 12 + int(struct.unpack_from(">i", data, position + 8)[0])
    return found


def whole_batches(data: bytes) -> list[bytes]:
    """Return the bytes of each batch."""
    return [data[start:end] for start, end in pairwise([*starts(data), len(data)])]


def damaged(data: bytes, changes: list[Mutation], *, fix: bool) -> bytes:
    """Return `data` after the changes. fix: with correct CRCs."""
    begins = starts(data)
    changed = apply(data, changes, begins)
    return with_right_crcs(changed, begins) if fix else changed


# --- bounds ---------------------------------------------------------------------------------------------------------


class TooSlow(BaseException):
    """A timeout. Not an Exception, so that no handler catches it."""


@contextmanager
def in_time() -> Iterator[None]:
    """Fail if the block takes longer than EACH_S."""

    def end(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, EACH_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def in_memory() -> Iterator[None]:
    """Fail if the block takes more than MOST_MEMORY_BYTES above the previous peak."""
    before = _peak_bytes()
    yield
    assert _peak_bytes() - before < MOST_MEMORY_BYTES


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Scratch:
    """Files that are rewritten for each input: opening them each time would take longer than reading them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, int] = {}

    def __call__(self, name: str, data: bytes) -> Path:
        """Return the file, with this content."""
        path = self._folder / name
        fd = self._open.get(name)
        if fd is None:
            fd = self._open[name] = os.open(path, os.O_RDWR | os.O_CREAT)
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
        return path

    def close(self) -> None:
        """Close the files."""
        for fd in self._open.values():
            os.close(fd)
