"""Progress of a long operation, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from kctl.base.text import printable
from kctl.commands.terminal.output_messages import note
from kctl.commands.terminal.output_tables import console

_FIRST_LINE_S = 5.0


class Progress(Protocol):
    """Progress of a long operation. total: None if unknown."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


class _SilentProgress:
    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        pass


class _LineProgress:
    """A line from time to time, for logs; the first one after a few seconds."""

    def __init__(self, every_s: float) -> None:
        self._every_s, self._next = every_s, time.monotonic() + min(every_s, _FIRST_LINE_S)

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        if message and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every_s
            share = f" ({100 * done / total:.0f} %)" if done is not None and total else ""
            note(message + share)


class _BarProgress:
    def __init__(self, bar: Any) -> None:
        self._bar, self._task = bar, bar.add_task("", total=None)

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        self._bar.update(self._task, description=printable(message), completed=done, total=total)


@contextmanager
def progress(message: str, *, bar_width: int = 30, lines_every_s: float | None = None) -> Iterator[Progress]:
    """Show a progress bar on stderr while the block runs, if it is a terminal.

    Otherwise show nothing, or a line at most every `lines_every_s`.
    """
    if not sys.stderr.isatty():
        yield _SilentProgress() if lines_every_s is None else _LineProgress(lines_every_s)
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=bar_width), TimeElapsedColumn())
    with RichProgress(*columns, console=console(stderr=True), transient=True) as bar:
        bar_progress = _BarProgress(bar)
        bar_progress.update(message)
        yield bar_progress
