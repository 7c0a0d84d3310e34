"""What the tests of clusters share: looking at processes and folders without asking kctl."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kctl.deploy import process
from kctl.deploy.nodes import is_node_command
from kctl_testing import Kctl


def processes_of(home: Path) -> dict[str, int]:
    """Brokers and ZooKeepers whose config file lies below `home`: node name → pid."""
    found = process.find_processes(lambda argv: is_node_command(argv) and argv[-1].startswith(f"{home}/"))
    return {Path(argv[-1]).parent.name: identity.pid for identity, argv in found}


def clusters_dir(kctl: Kctl) -> Path:
    return kctl.home / ".local/share/kctl/clusters"


@contextmanager
def nothing_left_running(kctl: Kctl) -> Iterator[None]:
    """Destroy every cluster of this home at the end, and fail when a process is left even so."""
    try:
        yield
    finally:
        for path in sorted(clusters_dir(kctl).glob("[!.]*")):
            kctl("cluster", "destroy", path.name, "--yes", "--confirm-cluster", path.name, timeout=60)
        left = processes_of(kctl.home)
        for pid in left.values():
            os.kill(pid, signal.SIGKILL)
    assert not left, f"left running: {left}"


def wait_for(path: Path, *, seconds: float = 30) -> None:
    """Until the file exists, looked for often: to act in the middle of something."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear within {seconds:g} s"
        time.sleep(0.002)
