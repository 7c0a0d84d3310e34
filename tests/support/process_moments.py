"""kctl, signaled at a moment that is observed from outside: when a file or process appears."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from cluster_testing import clusters_dir
from kctl_testing import SCRIPT, Kctl

Reached = Callable[[Path, Path], bool]  # (folder of cluster c, HOME) → the moment has come


def run_until(kctl: Kctl, argv: list[str], reached: Reached, number: signal.Signals) -> int:
    """Run kctl, and signal it as soon as that moment has come. Return its exit code."""
    folder = clusters_dir(kctl) / "c"
    process = subprocess.Popen(
        [str(SCRIPT), *argv], env=kctl.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not reached(folder, kctl.home):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(number)
    process.communicate(timeout=60)
    return process.returncode
