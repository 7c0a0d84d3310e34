"""The readings of a partition over a time span, combined: the last state and the worst values. Pure.

kctl.history.evaluate.spans computes spans over columns.
"""

from __future__ import annotations

from typing import NamedTuple

from kctl.history.lag.status import Status


class LagSpan(NamedTuple):
    """The readings of a span. None: unknown in all readings.

    first_at_ms, lag_before: time and lag of the first reading. peak_lag: largest lag. worst_status, worst_owned: worst
    Burrow verdict if the partition has no owner, and if it has one.
    """

    first_at_ms: int
    readings: int
    lag_before: int | None
    peak_lag: int | None
    worst_status: Status
    worst_owned: Status
