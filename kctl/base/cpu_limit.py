"""An end for work whose time nobody knows: regular expressions such as (a+)+b take twice as long for each character."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kctl.errors import KctlError


@contextmanager
def cpu_limit(seconds: float, error: Callable[[], KctlError]) -> Iterator[None]:
    """Raise `error` in the block when it has used so much CPU time; a busy machine does not count.

    By a signal, which Python's `re` looks for while it searches: it works in the main thread, and does nothing in
    others. Blocks do not nest.
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
