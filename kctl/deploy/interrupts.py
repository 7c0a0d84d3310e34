"""Keeping Ctrl-C for later: where a KeyboardInterrupt would be lost, or would stop a clean-up half-way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_KEPT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Signals that come while the block runs take effect at its end. The block must be short or bounded.

    In another thread than the main one it does nothing: handlers run in the main thread only.
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
