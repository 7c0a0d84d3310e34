"""The growth from all sizes at once, in plain Python: the oracle of kctl.history.evaluate.growth."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from kctl.history.retention.growth import Growth


class SizeSample(NamedTuple):
    """A size at a time (ms)."""

    at_ms: int
    size_bytes: int


def growth(samples: Iterable[SizeSample]) -> Growth | None:
    """Return the growth over all samples, in any order; the first of each time counts. None without samples."""
    by_time: dict[int, int] = {}
    for at_ms, size in samples:
        by_time.setdefault(at_ms, size)
    rows = [SizeSample(*row) for row in sorted(by_time.items())]
    if not rows:
        return None
    steps = list(pairwise(rows))
    up = [(before, after) for before, after in steps if after.size_bytes >= before.size_bytes]
    down = [after for before, after in steps if after.size_bytes < before.size_bytes]
    since = down[-1] if down else rows[0]
    return Growth(
        samples=len(rows),
        first_ms=rows[0].at_ms,
        last_ms=rows[-1].at_ms,
        first_bytes=rows[0].size_bytes,
        last_bytes=rows[-1].size_bytes,
        grown_bytes=sum(after.size_bytes - before.size_bytes for before, after in up),
        grown_ms=sum(after.at_ms - before.at_ms for before, after in up),
        shrunk_at_ms=down[-1].at_ms if down else None,
        since_shrunk_bytes=rows[-1].size_bytes - since.size_bytes,
    )
