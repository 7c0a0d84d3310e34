"""Time buckets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

from kctl.history.report.model import State, StatusSpan

MAX_BUCKETS = 240  # more are not distinguishable in a chart
_SPARE = 1.5  # passes are not evenly spaced: a bucket of this many intervals nearly always contains a pass


class TimeBuckets(NamedTuple):
    """Equal time buckets: `size` buckets of `bucket_ms`, starting at `from_ms`."""

    from_ms: int
    bucket_ms: int
    size: int

    def of(self, at_ms: int) -> int:
        """Return the bucket of a time."""
        return (at_ms - self.from_ms) // self.bucket_ms


def buckets_of(times: Sequence[int], max_buckets: int = MAX_BUCKETS) -> TimeBuckets:
    """Return buckets for passes at `times` (ms, sorted, at least one): at most `max_buckets`, few of them empty.

    Raises ValueError without times.
    """
    if not times:
        raise ValueError("no passes")
    span_ms = times[-1] - times[0] + 1
    steps = [after - before for before, after in pairwise(times)]
    spacing_ms = int(median(steps) * _SPARE) if len(steps) > 1 else max(steps, default=1)
    bucket_ms = max(-(-span_ms // max_buckets), spacing_ms, 1)
    return TimeBuckets(times[0], bucket_ms, -(-span_ms // bucket_ms))


def status_spans(states: Iterable[State | None]) -> list[StatusSpan]:
    """Return a state per bucket as spans of equal states."""
    result = []
    first = 0
    for state, same in groupby(states):
        count = sum(1 for _ in same)
        result.append(StatusSpan(first, count, state))
        first += count
    return result
