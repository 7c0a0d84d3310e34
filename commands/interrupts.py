"""Signals that end a command as Ctrl-C does, so that it cleans up what it started."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def undone_when_terminated() -> Iterator[None]:
    """SIGTERM (a plain kill) and SIGHUP (a closed terminal) raise KeyboardInterrupt while the block runs."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def told_when_interrupted(stop: Callable[[], None]) -> Iterator[None]:
    """While the block runs, each Ctrl-C, SIGTERM or SIGHUP calls `stop` and does no more."""

    def interrupt(*_: object) -> None:
        stop()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
