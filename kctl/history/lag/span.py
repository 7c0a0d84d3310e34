"""The readings of a partition over a span of time, as one: how it ended, and what it was at its worst. Pure.

kctl.history.evaluate.spans computes spans over columns.
"""

from __future__ import annotations

from typing import NamedTuple

from kctl.history.lag.status import Status


class Span(NamedTuple):
    """first_at_ms: of the first reading. lag_before: its lag. peak_lag: the largest. worst_status: the worst verdict by
    Burrow's numbers, if nobody owned the partition, and worst_owned, if somebody did. None: never known."""

    first_at_ms: int
    readings: int
    lag_before: int | None
    peak_lag: int | None
    worst_status: Status
    worst_owned: Status
