"""Where the journals of runs are that change a cluster: one file for each run, a folder for each cluster.

`KIND/<cluster id>/<UTC yyyymmddThhmmss.mmmZ>-<pid>.jsonl` in kctl's state folder. Names sort in the order in which runs
were begun, also when the clock was set back meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path

from kctl.base import journal, paths
from kctl.errors import OperationFailed

_TAIL = 256 << 10  # the last entry of a finished run is shorter
_NAME = re.compile(r"(\d{8}T\d{6}\.\d{3})Z-\d+\.jsonl")
_TIME = "%Y%m%dT%H%M%S.%f"
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def folder(kind: str, cluster_id: str) -> Path:
    """Where the journals of a cluster are; it need not exist."""
    name = cluster_id if _SAFE_ID.fullmatch(cluster_id) else sha256(cluster_id.encode()).hexdigest()[:32]
    return paths.state_dir() / kind / name


def runs(where: Path) -> list[Path]:
    """The journals in a folder that say anything, the newest first. Raises InvalidFile, Refused for one that somebody
    else may have written."""
    found = []
    for path in where.glob("*.jsonl"):
        with journal.opened(path) as fd:
            if _last_line(fd):
                found.append(path)
    return sorted(found, reverse=True)


def ended(path: Path, step: str) -> bool:
    """Is its last entry `step`, the end of a run? Reads only the end of the file."""
    with journal.opened(path) as fd:
        return _last_line(fd).startswith(b'{"step":"%s"' % step.encode())


def new_name(where: Path) -> str:
    """The name of a run's file that begins now in a folder: it sorts behind all that are there.

    A clock that was set back would make the newest run look like an old one; its name is then a millisecond behind the
    newest name. When it began is in the file.
    """
    now = datetime.now(timezone.utc)
    for path in where.glob("*.jsonl"):
        match = _NAME.fullmatch(path.name)
        if match is not None:
            with suppress(ValueError, OverflowError):
                there = datetime.strptime(match[1], _TIME).replace(tzinfo=timezone.utc)
                now = max(now, there + timedelta(milliseconds=1))
    return f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03}Z-{os.getpid()}.jsonl"


@contextmanager
def one_at_a_time(where: Path) -> Iterator[None]:
    """Two that begin at the same moment must not both find that nobody has begun.

    Raises OperationFailed; Refused for a folder that others can write: what is begun there could not be gone on with.
    """
    try:
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        journal.check_folder(where)
        fd = os.open(where / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise OperationFailed(f"cannot write into {where}: {exc.strerror}") from exc
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
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
