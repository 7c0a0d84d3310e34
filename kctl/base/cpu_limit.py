"""A CPU time limit for unbounded work, e.g. the regular expression (a+)+b: each character doubles its time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kctl.errors import KctlError


@contextmanager
def cpu_limit(seconds: float, error: Callable[[], KctlError]) -> Iterator[None]:
    """Raise `error` once the block has used this much CPU time.

    Uses a signal, which Python's `re` checks during a search. Works only in the main thread; in other threads, there is
    no limit. Blocks do not nest.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise error()

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
