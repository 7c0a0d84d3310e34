"""Deferral of Ctrl-C where a KeyboardInterrupt would be lost or would interrupt a cleanup."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_KEPT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Defer signals to the end of the block, which must be short or bounded.

    Has no effect outside of the main thread, because handlers run only there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[tuple[int, FrameType | None]] = []

    def keep(number: int, frame: FrameType | None) -> None:
        seen.append((number, frame))

    before = {number: signal.getsignal(number) for number in _KEPT}
    # A signal that nobody handles in Python (default, ignored) stays as it is.
    replaced = {number: handler for number, handler in before.items() if callable(handler)}
    for number in replaced:
        signal.signal(number, keep)
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
        for received, frame in seen:  # also when the block failed: who polls would try again for ever
            replaced[signal.Signals(received)](received, frame)
