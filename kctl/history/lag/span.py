"""The readings of a partition over a span of time, as one: how it ended, and what it was at its worst. Pure.

kctl.history.evaluate.spans does the same over columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kctl.history.lag.status import Status
from kctl.history.lag.window import Reading


class Span(NamedTuple):
    """first_at_ms: of the first reading. lag_before: its lag. peak_lag: the largest. worst_status: the worst verdict by
    Burrow's numbers, if nobody owned the partition, and worst_owned, if somebody did. None: never known."""

    first_at_ms: int
    readings: int
    lag_before: int | None
    peak_lag: int | None
    worst_status: Status
    worst_owned: Status


def span_of(readings: Sequence[Reading]) -> Span:
    """The span of a partition's readings, in order of time. Raises ValueError without any."""
    if not readings:
        raise ValueError("no readings")
    return Span(
        first_at_ms=readings[0].at_ms,
        readings=len(readings),
        lag_before=readings[0].lag,
        peak_lag=max((reading.lag for reading in readings if reading.lag is not None), default=None),
        worst_status=max(reading.status for reading in readings),
        worst_owned=max(reading.status_owned for reading in readings),
    )
