"""What was waited for in vain: a command asks many things one after the other, and must not wait for each anew.

The limit of a request is --timeout. A broker that let one pass is left alone for as long again; and what other
requests lost shortens the limit of the next, so that a whole command takes little longer than one of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kctl.errors import ConnectionTimedOut

_FLOOR_S = 1.0  # what a request gets in any case: a broker that is well answers within it
_FLOOR_SHARE = 0.25


class Silence:
    """For one client. Time that passes otherwise is given back: an operation that runs for hours forgets."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lost_s = 0.0
        self._as_of = 0.0
        self._quiet: dict[int, tuple[float, ConnectionTimedOut]] = {}  # node → until when it is left alone, and why
        self.for_good = False

    def limit_s(self, seconds: float) -> float:
        """How long a request whose own limit is `seconds` may take now."""
        lost = max(0.0, self._lost_s - (self._clock() - self._as_of))
        return max(seconds - lost, min(seconds, max(_FLOOR_S, seconds * _FLOOR_SHARE)))

    def lost(self, since: float) -> None:
        """Time since then, on the clock, was waited in vain."""
        now = self._clock()
        self._lost_s = max(0.0, self._lost_s - (since - self._as_of)) + now - since
        self._as_of = now

    def keeps(self, node: int, error: ConnectionTimedOut, since: float) -> None:
        """A broker let a request pass that was sent then."""
        now = self._clock()
        self._quiet[node] = (float("inf") if self.for_good else now + now - since, error)

    def of(self, node: int) -> ConnectionTimedOut | None:
        """Why a broker is left alone for now; None when it can be asked."""
        until, error = self._quiet.get(node, (0.0, None))
        return error if self._clock() < until else None

    def forget(self) -> None:
        """Ask everybody again."""
        self._quiet.clear()
