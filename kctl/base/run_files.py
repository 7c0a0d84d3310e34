"""The journals of runs that change a cluster: one file per run, one folder per cluster.

`KIND/<cluster id>/<UTC yyyymmddThhmmss.mmmZ>-<pid>.jsonl` in kctl's state folder. Names sort by the order in which
runs were started, even if the clock was set back in between.
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
    """Return the folder for the journals of a cluster. It may not exist."""
    name = cluster_id if _SAFE_ID.fullmatch(cluster_id) else sha256(cluster_id.encode()).hexdigest()[:32]
    return paths.state_dir() / kind / name


def runs(where: Path) -> list[Path]:
    """Return the nonempty journals in a folder, newest first.

    Raises InvalidFile, Refused for a journal that another user can have written.
    """
    journals = []
    for path in where.glob("*.jsonl"):
        with journal.opened(path) as fd:
            if _last_line(fd):
                journals.append(path)
    return sorted(journals, reverse=True)


def ended(path: Path, step: str) -> bool:
    """Return True if the last entry is `step`, the end of a run. Reads only the end of the file."""
    with journal.opened(path) as fd:
        return _last_line(fd).startswith(b'{"step":"%s"' % step.encode())


def new_name(where: Path) -> str:
    """Return a file name for a run that starts now.

    It sorts after all names in the folder. If the clock was set back, the name is a millisecond after the newest name,
    so that the newest run does not look old. The actual start time is in the file.
    """
    now = datetime.now(timezone.utc)
    for path in where.glob("*.jsonl"):
        match = _NAME.fullmatch(path.name)
        if match is not None:
            with suppress(ValueError, OverflowError):
                existing = datetime.strptime(match[1], _TIME).replace(tzinfo=timezone.utc)
                now = max(now, existing + timedelta(milliseconds=1))
    return f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03}Z-{os.getpid()}.jsonl"


@contextmanager
def one_at_a_time(where: Path) -> Iterator[None]:
    """Let only one process at a time check for an unfinished run and start a new one.

    Raises OperationFailed; Refused for a folder that others can write to, because a run there could not be resumed.
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
    """Return the last complete line, or the end of a long line; b"" if there is none (killed when it started)."""
    size = os.fstat(fd).st_size
    start = max(0, size - _TAIL)
    tail = os.pread(fd, size - start, start)
    end = tail.rfind(b"\n")
    if end < 0:
        # A torn line longer than the tail: only the lines before it count, and the run has not ended.
        return b"..." if start and b"\n" in os.pread(fd, min(size, journal.MAX_BYTES), 0) else b""
    return tail[tail.rfind(b"\n", 0, end) + 1 : end]
