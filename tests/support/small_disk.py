"""A cluster of one broker whose log dirs are on a small separate file system, in a mount namespace.

Its disks fill within a minute, and only the broker writes to them.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kctl_testing import SCRIPT, Kctl, Result

_NAME = "small"


@dataclass(frozen=True)
class SmallDisk:
    """The cluster. log_dir: the broker's log dir, as this process sees it. bootstrap: the broker's address."""

    kctl: Kctl
    bootstrap: str
    log_dir: Path


def _inside(kctl: Kctl, pid: int, *argv: str) -> Result:
    started = time.monotonic()
    done = subprocess.run(
        ["/usr/bin/nsenter", f"--target={pid}", "--user", "--mount", "--preserve-credentials", str(SCRIPT), *argv],
        env=kctl.environment, capture_output=True, text=True, timeout=180, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Result(argv, done.returncode, done.stdout, done.stderr, time.monotonic() - started)


@contextmanager
def small_disk(kctl: Kctl, folder: Path, size: str, *settings: str) -> Iterator[SmallDisk]:
    """Yield a cluster on a file system of this size (in mount's format), with these broker settings.

    It becomes the current context of kctl's home."""
    folder.mkdir()
    mount = f"/bin/mount -t tmpfs -o size={size} none {shlex.quote(str(folder))} && echo there && exec cat"
    holder = subprocess.Popen(  # ends when its stdin closes, so with this process
        ["/usr/bin/unshare", "--mount", "--map-root-user", "/bin/sh", "-c", mount],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "there\n"
        config = [word for setting in settings for word in ("--config", setting)]
        where = ("--layout", "single", "--dir", str(folder / "c"), "--heap", "256m")
        created = _inside(kctl, holder.pid, "cluster", "create", _NAME, "--use", *where, *config)
        assert created.code == 0, str(created)
        try:
            (bootstrap,) = kctl.json("context", "show", _NAME)["bootstrap_servers"]
            own = folder.resolve() / "c" / "broker-1" / "data-1"
            yield SmallDisk(kctl, bootstrap, Path(f"/proc/{holder.pid}/root{own}"))
        finally:
            _inside(kctl, holder.pid, "cluster", "destroy", _NAME, "--yes", "--confirm-cluster", _NAME)
    finally:
        holder.communicate()
