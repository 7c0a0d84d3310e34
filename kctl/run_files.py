"""Where the journals of runs are that change a cluster: one file for each run, a folder for each cluster.

`KIND/<cluster id>/<UTC yyyymmddThhmmss.mmmZ>-<pid>.jsonl` in kctl's state folder, so names sort by time.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path

from kctl import journal, paths
from kctl.errors import OperationFailed

_TAIL = 256 << 10  # the last entry of a finished run is shorter
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def folder(kind: str, cluster_id: str) -> Path:
    """Where the journals of a cluster are; it need not exist."""
    name = cluster_id if _SAFE_ID.fullmatch(cluster_id) else sha256(cluster_id.encode()).hexdigest()[:32]
    return paths.state_dir() / kind / name


def runs(where: Path) -> list[Path]:
    """The journals in a folder that say anything, the newest first."""
    found = []
    for path in where.glob("*.jsonl"):
        with _reading(path) as fd:
            if _last_line(fd):
                found.append(path)
    return sorted(found, reverse=True)


def ended(path: Path, step: str) -> bool:
    """Is its last entry `step`, the end of a run? Reads only the end of the file."""
    with _reading(path) as fd:
        return _last_line(fd).startswith(b'{"step":"%s"' % step.encode())


def new_name() -> str:
    """The name of a run's file that begins now."""
    now = datetime.now(timezone.utc)
    return f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03}Z-{os.getpid()}.jsonl"


@contextmanager
def one_at_a_time(where: Path) -> Iterator[None]:
    """Two that begin at the same moment must not both find that nobody has begun."""
    try:
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(where / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise OperationFailed(f"cannot write into {where}: {exc.strerror}") from exc
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextmanager
def _reading(path: Path) -> Iterator[int]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as exc:
        raise OperationFailed(f"cannot read the journal {path}: {exc.strerror}") from exc
    try:
        yield fd
    finally:
        os.close(fd)


def _last_line(fd: int) -> bytes:
    """The last whole line, or the end of it when it is long; b"" when there is none (killed while it began)."""
    size = os.fstat(fd).st_size
    start = max(0, size - _TAIL)
    tail = os.pread(fd, size - start, start)
    end = tail.rfind(b"\n")
    if end < 0:
        # A torn line longer than the tail: what stands before it counts, and it is no end.
        return b"..." if start and b"\n" in os.pread(fd, min(size, journal.MAX_BYTES), 0) else b""
    return tail[tail.rfind(b"\n", 0, end) + 1 : end]
