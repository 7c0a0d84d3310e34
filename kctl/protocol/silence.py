"""Time lost on silent brokers: a command sends many requests, and must not wait the full timeout for each.

The limit of a request is --timeout. After a timeout, kctl skips the broker for as long as it waited. Time lost on
earlier requests shortens the limit of the next, so that a whole command takes little longer than one timeout.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kctl.errors import ConnectionTimedOut

_FLOOR_S = 1.0  # the minimum for any request: a healthy broker responds within it
_FLOOR_SHARE = 0.25


class Silence:
    """The lost time of one client.

    Time that passes without a timeout is credited: a long operation recovers. skip_permanently: skip a silent broker
    until `forget`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lost_s = 0.0
        self._as_of = 0.0
        self._skipped: dict[int, tuple[float, ConnectionTimedOut]] = {}  # node → skipped until, and the timeout
        self.skip_permanently = False

    def limit_s(self, seconds: float) -> float:
        """Return the limit now for a request whose own limit is `seconds`."""
        silent_s = max(0.0, self._lost_s - (self._clock() - self._as_of))
        return max(seconds - silent_s, min(seconds, max(_FLOOR_S, seconds * _FLOOR_SHARE)))

    def add_lost_time(self, since: float) -> None:
        """Record that the time since `since`, on the clock, was lost."""
        now = self._clock()
        self._lost_s = max(0.0, self._lost_s - (since - self._as_of)) + now - since
        self._as_of = now

    def skip(self, node: int, error: ConnectionTimedOut, since: float) -> None:
        """Record that a broker did not respond to a request sent at `since`."""
        now = self._clock()
        self._skipped[node] = (float("inf") if self.skip_permanently else now + now - since, error)

    def of(self, node: int) -> ConnectionTimedOut | None:
        """Return the timeout that made kctl skip this broker; None if kctl may send requests to it now."""
        until, error = self._skipped.get(node, (0.0, None))
        return error if self._clock() < until else None

    def forget(self) -> None:
        """Stop skipping brokers."""
        self._skipped.clear()
