"""Defer Ctrl-C where a KeyboardInterrupt would be lost or would interrupt a cleanup."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_DEFERRED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Defer signals to the end of the block, which must be short or bounded.

    Has no effect outside of the main thread, because handlers run only there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received_signals: list[tuple[int, FrameType | None]] = []

    def record(number: int, frame: FrameType | None) -> None:
        received_signals.append((number, frame))

    handlers = {number: signal.getsignal(number) for number in _DEFERRED}
    # A signal without a Python handler (default, ignored) keeps its behavior.
    replaced = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in replaced:
        signal.signal(number, record)
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
        for received, frame in received_signals:  # even after an error: a caller that retries must see Ctrl-C
            replaced[signal.Signals(received)](received, frame)
