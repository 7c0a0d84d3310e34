"""Whole processes, measured by the kernel's own accounting: CPU, wall time, largest resident set."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from peak_memory import PeakMemory
from process_tree import ProcessTree

_POLL_S = 0.002
_TREE_POLL_S = 0.05


@dataclass(frozen=True)
class Sample:
    """One run. cpu_s is user plus system time of the process and the children that it waited for."""

    cpu_s: float
    wall_s: float
    max_rss_bytes: int


@dataclass(frozen=True)
class Figures:
    """Medians over the runs of one command. moves: replicas that its plan copies, where it makes one.

    rows: that it went through, where that is what is measured.
    """

    cpu_s: float
    wall_s: float
    max_rss_bytes: int
    runs: int
    moves: int | None = None
    rows: int | None = None


def run_once(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Sample:
    """Run to the end; fails on any exit code but 0."""
    started = time.monotonic()
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(argv, stdin=nowhere, stdout=nowhere, stderr=nowhere, env=environment)
    memory = PeakMemory(process.pid)
    pid = 0
    while not pid:
        memory.look()
        time.sleep(_POLL_S)
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    wall_s = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{argv} ended with {process.returncode}")
    return Sample(usage.ru_utime + usage.ru_stime, wall_s, memory.peak_bytes)


def run_tree(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[Sample, bytes]:
    """As `run_once`, with all processes that it starts: Spark's JVM and its Python workers. Also gives stdout.

    Wall time is until the first of stdout, where there is some: nobody waits for what comes after an answer.
    """
    started = time.monotonic()
    out: list[bytes] = []
    wall_s = 0.0
    with (
        TemporaryFile() as errors,
        subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment
        ) as process,
    ):
        tree = ProcessTree(process.pid)
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        ended = False
        while not ended:
            ended = process.poll() is not None
            tree.look()
            if given := process.stdout.read():
                out.append(given)
                wall_s = wall_s or time.monotonic() - started
            if not ended:
                time.sleep(_TREE_POLL_S)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{argv} ended with {process.returncode}:\n{errors.read().decode(errors='replace')}")
    return Sample(tree.cpu_s, wall_s or time.monotonic() - started, tree.peak_bytes), b"".join(out)


def median(samples: Sequence[Sample]) -> Figures:
    """The median of each figure on its own."""
    return Figures(
        round(statistics.median(s.cpu_s for s in samples), 4),
        round(statistics.median(s.wall_s for s in samples), 4),
        round(statistics.median(s.max_rss_bytes for s in samples)),
        len(samples),
    )


def in_turn(
    commands: Mapping[str, Sequence[str]], runs: int, environment: Mapping[str, str] | None = None
) -> dict[str, Figures]:
    """Measure the commands in turn (A B A B …), after one run each that does not count."""
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, argv in commands.items():
            sample = run_once(argv, environment)
            if number:
                samples[name].append(sample)
    return {name: median(taken) for name, taken in samples.items()}


@contextmanager
def one_core() -> Iterator[None]:
    """What is started in the block has one core: what is single-threaded is compared with what is not."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def machine() -> dict[str, object]:
    """What the figures were taken on."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory_kb = int(Path("/proc/meminfo").read_text().split()[1])
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_bytes": memory_kb * 1024,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_1m": os.getloadavg()[0],
    }
