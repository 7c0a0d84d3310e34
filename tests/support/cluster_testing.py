"""Helpers for tests of clusters: inspect processes and folders without kctl."""

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
    """Return node name → pid of brokers and ZooKeepers whose config file is below `home`."""
    found = process.find_processes(lambda argv: is_node_command(argv) and argv[-1].startswith(f"{home}/"))
    return {Path(argv[-1]).parent.name: identity.pid for identity, argv in found}


def clusters_dir(kctl: Kctl) -> Path:
    return kctl.home / ".local/share/kctl/clusters"


@contextmanager
def nothing_left_running(kctl: Kctl) -> Iterator[None]:
    """Destroy every cluster of this home at the end, and fail if a process still runs."""
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
    """Wait until the file exists, with short pauses, to act in the middle of an operation."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear within {seconds:g} s"
        time.sleep(0.002)
