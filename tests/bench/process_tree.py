"""CPU time and memory of a process and all that it started, which also tells of Spark's Python workers.

The kernel adds up only the children that were waited for, and Spark's Python daemon never waits for its workers. So
/proc is looked at again and again; of each process the last look counts. What a process did after it is missing.
"""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ProcessTree:
    """To be asked again and again while the processes run. peak_bytes: the largest sum of resident sets so far; what
    processes share counts in each."""

    def __init__(self, pid: int) -> None:
        self._seconds: dict[int, float] = {}
        self._pids = {pid}
        self.peak_bytes = 0

    @property
    def cpu_s(self) -> float:
        """User and system time so far."""
        return sum(self._seconds.values())

    def look(self) -> None:
        """Find the processes that are there now."""
        found = dict(filter(None, (_stat(path) for path in Path("/proc").glob("[0-9]*/stat"))))
        new = set(self._pids)
        while new:
            new = {pid for pid, (parent, _, _) in found.items() if parent in new} - self._pids
            self._pids |= new
        resident = 0
        for pid in self._pids & found.keys():
            _, self._seconds[pid], size = found[pid]
            resident += size
        self.peak_bytes = max(self.peak_bytes, resident)


def _stat(path: Path) -> tuple[int, tuple[int, float, int]] | None:
    """(pid, (parent, CPU seconds, resident bytes)); None when it has ended. proc_pid_stat(5): fields 4, 14, 15, 24."""
    try:
        fields = path.read_text().rpartition(")")[2].split()
    except OSError:
        return None
    seconds = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
    return int(path.parent.name), (int(fields[1]), seconds, int(fields[21]) * _PAGE_BYTES)
