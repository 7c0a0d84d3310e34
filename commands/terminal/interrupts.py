"""Signals that end a command like Ctrl-C, so that it cleans up."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from kctl.commands.terminal import output


@contextmanager
def interrupt_when_terminated() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM (a plain kill) and SIGHUP (a closed terminal) while the block runs."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with _handled((signal.SIGTERM, signal.SIGHUP), interrupt):
        yield


@contextmanager
def note_when_interrupted(line: str) -> Iterator[None]:
    """Raise KeyboardInterrupt as `interrupt_when_terminated`, after a note of what is left and how to resume."""
    with interrupt_when_terminated():
        try:
            yield
        except KeyboardInterrupt:
            output.note(line)
            raise


@contextmanager
def call_on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on each Ctrl-C, SIGTERM or SIGHUP while the block runs, and do nothing else."""

    def interrupt(*_: object) -> None:
        stop()

    with _handled((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), interrupt):
        yield


@contextmanager
def _handled(numbers: Collection[signal.Signals], handler: Callable[..., None]) -> Iterator[None]:
    """Handle signals, except ignored ones: with nohup, kctl must outlive the terminal."""
    before = {
        number: signal.signal(number, handler) for number in numbers if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, old_handler in before.items():
            signal.signal(number, old_handler)
