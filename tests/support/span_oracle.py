"""The span of a partition's readings, in plain Python: the oracle of kctl.history.evaluate.spans."""

from __future__ import annotations

from collections.abc import Sequence

from kctl.history.lag.span import LagSpan
from kctl.history.lag.window import Reading


def span_of(readings: Sequence[Reading]) -> LagSpan:
    """Return the span of a partition's readings, ordered by time. Raises ValueError without readings."""
    if not readings:
        raise ValueError("no readings")
    return LagSpan(
        first_at_ms=readings[0].at_ms,
        readings=len(readings),
        lag_before=readings[0].lag,
        peak_lag=max((reading.lag for reading in readings if reading.lag is not None), default=None),
        worst_status=max(reading.status for reading in readings),
        worst_owned=max(reading.status_owned for reading in readings),
    )
