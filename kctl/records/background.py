"""Blocking calls that run beside an event loop, one of a kind at a time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from kctl.errors import KctlError


class Background:
    """`fd` becomes readable when a call has ended, and by `wake`; `finished` empties it."""

    def __init__(self) -> None:
        self.fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._running: dict[Hashable, threading.Thread] = {}
        self._ended: SimpleQueue[tuple[Hashable, Any]] = SimpleQueue()

    def wake(self) -> None:
        """Make `fd` readable; may be called in a signal handler and by any thread."""
        with suppress(OSError):  # it is full, so it is readable
            os.write(self._write_fd, b"\0")

    def start(self, kind: Hashable, call: Callable[[], Any]) -> None:
        """Run `call`, unless one of this kind runs. It has to end by itself."""
        if kind in self._running:
            return

        def run() -> None:
            try:
                outcome = call()
            except Exception as exc:  # noqa: BLE001 - handed to the loop
                outcome = exc
            self._ended.put((kind, outcome))
            self.wake()

        thread = self._running[kind] = threading.Thread(target=run, daemon=True)
        thread.start()

    def finished(self) -> list[tuple[Hashable, Any]]:
        """(kind, what the call returned or the KctlError that it raised). Raises other exceptions."""
        with suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass
        found: list[tuple[Hashable, Any]] = []
        while True:
            try:
                kind, outcome = self._ended.get_nowait()
            except Empty:
                return found
            self._running.pop(kind)
            if isinstance(outcome, Exception) and not isinstance(outcome, KctlError):
                raise outcome
            found.append((kind, outcome))

    def close(self, wait_s: float) -> list[tuple[Hashable, Any]]:
        """Wait for what runs, at most so long; what ended since the last look."""
        ends = time.monotonic() + wait_s
        for thread in list(self._running.values()):
            thread.join(max(0.0, ends - time.monotonic()))
        found: list[tuple[Hashable, Any]] = []
        with suppress(Exception):  # of no account any more
            found = self.finished()
        if not self._running:  # else its thread still writes to it
            os.close(self.fd)
            os.close(self._write_fd)
        return found
