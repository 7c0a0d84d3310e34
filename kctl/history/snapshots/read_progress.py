"""Progress of long reads of a store: readers report steps, a command shows them.

Reads are nested iterators below every report, so the observer is a context variable. Without one, as in Spark's tasks,
reports cost nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import NamedTuple, TypeAlias

_EVERY_S = 0.1  # steps in between are not shown; a reader may report thousands in a second


class ReadStep(NamedTuple):
    """A step of a read. done, total: numbers of `unit`, a plural noun; total is None if it is unknown."""

    phase: str
    done: int
    total: int | None
    unit: str

    def __str__(self) -> str:
        of_total = "" if self.total is None else f" of {self.total:,}"
        return f"{self.phase}: {self.done:,}{of_total} {self.unit}"


Show: TypeAlias = Callable[[ReadStep], None]


class ReadProgress:
    """Steps of reads, from several threads; shown at most every `every_s` (default: 0.1)."""

    def __init__(
        self, show: Show, *, clock: Callable[[], float] = time.monotonic, every_s: float | None = None
    ) -> None:
        self._show, self._clock = show, clock
        self._every_s = _EVERY_S if every_s is None else every_s
        self._next = clock()
        self._counted = ReadStep("", 0, None, "")
        self._lock = Lock()

    def report(self, step: ReadStep) -> None:
        """Show a step, unless another one was shown just now."""
        now = self._clock()
        if now >= self._next:
            self._next = now + self._every_s
            self._show(step)

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        """Start to count `unit` from 0; see `advance`."""
        with self._lock:
            self._counted = ReadStep(phase, 0, total, unit)

    def advance(self, count: int) -> None:
        """Count units that this process or another one has finished."""
        with self._lock:
            done, total = self._counted.done + count, self._counted.total
            # The total is that of one pass; another pass may have had more partitions.
            self._counted = self._counted._replace(done=done if total is None else min(done, total))
            self.report(self._counted)


_observer: ContextVar[ReadProgress | None] = ContextVar("read_progress", default=None)


def observer() -> ReadProgress | None:
    """Return the observer of reads in this context."""
    return _observer.get()


@contextmanager
def observed(progress: ReadProgress | None) -> Iterator[None]:
    """Report the reads of the block to `progress`; None: do not report them."""
    token = _observer.set(progress)
    try:
        yield
    finally:
        _observer.reset(token)


def report(phase: str, done: int, total: int, unit: str) -> None:
    """Report a step."""
    progress = _observer.get()
    if progress is not None:
        progress.report(ReadStep(phase, done, total, unit))


def begin(phase: str, total: int | None, unit: str) -> None:
    """Start to count `unit` from 0."""
    progress = _observer.get()
    if progress is not None:
        progress.begin(phase, total, unit)


def advance(count: int) -> None:
    """Count finished units."""
    progress = _observer.get()
    if progress is not None:
        progress.advance(count)
