"""Signals that end a command as Ctrl-C does, so that it cleans up what it started."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager


@contextmanager
def undone_when_terminated() -> Iterator[None]:
    """SIGTERM (a plain kill) and SIGHUP (a closed terminal) raise KeyboardInterrupt while the block runs."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with _handled((signal.SIGTERM, signal.SIGHUP), interrupt):
        yield


@contextmanager
def told_when_interrupted(stop: Callable[[], None]) -> Iterator[None]:
    """While the block runs, each Ctrl-C, SIGTERM or SIGHUP calls `stop` and does no more."""

    def interrupt(*_: object) -> None:
        stop()

    with _handled((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), interrupt):
        yield


@contextmanager
def _handled(numbers: Collection[signal.Signals], handler: Callable[..., None]) -> Iterator[None]:
    """Without those that are ignored: whoever started kctl by nohup wants it to outlive the terminal."""
    before = {
        number: signal.signal(number, handler) for number in numbers if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
