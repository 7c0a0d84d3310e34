"""The largest resident set of another process.

Not ru_maxrss: that also counts what the parent had when it forked.
"""

from __future__ import annotations

import re
from pathlib import Path

_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)


class PeakMemory:
    """A gauge, to be read repeatedly while the process runs. peak_bytes: so far."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self.peak_bytes = 0

    def look(self) -> None:
        """Read the current high-water mark; an ended process has none."""
        try:
            found = _PEAK.search(self._status.read_text())
        except OSError:
            return
        if found:
            self.peak_bytes = max(self.peak_bytes, int(found[1]) * 1024)
