"""Blocking calls in background threads next to an event loop, at most one of each kind at a time."""

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
    """A set of background calls. `fd` becomes readable when a call ends and on `wake`; `finished` empties it."""

    def __init__(self) -> None:
        self.fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._running: dict[Hashable, threading.Thread] = {}
        self._ended: SimpleQueue[tuple[Hashable, Any]] = SimpleQueue()

    def wake(self) -> None:
        """Make `fd` readable. Safe in signal handlers and in any thread."""
        with suppress(OSError):  # the pipe is full, so it is readable
            os.write(self._write_fd, b"\0")

    def start(self, kind: Hashable, call: Callable[[], Any]) -> None:
        """Run `call` in a thread, unless a call of this kind is running. The call must end on its own."""
        if kind in self._running:
            return

        def run() -> None:
            try:
                outcome = call()
            except Exception as exc:  # noqa: BLE001 - raised by `finished`
                outcome = exc
            self._ended.put((kind, outcome))
            self.wake()

        thread = self._running[kind] = threading.Thread(target=run, daemon=True)
        thread.start()

    def finished(self) -> list[tuple[Hashable, Any]]:
        """Return the kind and outcome of each ended call: its result or KctlError. Raises other exceptions."""
        with suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass
        outcomes: list[tuple[Hashable, Any]] = []
        while True:
            try:
                kind, outcome = self._ended.get_nowait()
            except Empty:
                return outcomes
            self._running.pop(kind)
            if isinstance(outcome, Exception) and not isinstance(outcome, KctlError):
                raise outcome
            outcomes.append((kind, outcome))

    def close(self, wait_s: float) -> list[tuple[Hashable, Any]]:
        """Wait for running calls, at most wait_s. Return the outcomes since the last `finished`."""
        deadline = time.monotonic() + wait_s
        for thread in list(self._running.values()):
            thread.join(max(0.0, deadline - time.monotonic()))
        outcomes: list[tuple[Hashable, Any]] = []
        with suppress(Exception):  # the caller is done, errors no longer matter
            outcomes = self.finished()
        if not self._running:  # a running thread still writes to the pipe
            os.close(self.fd)
            os.close(self._write_fd)
        return outcomes
