"""kctl in this process: for many commands without a process each, on a terminal, or with a part replaced."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import time
from collections.abc import Iterator, Mapping
from unittest import mock

from kctl.commands import app
from kctl_testing import Kctl, Result


class _Screen(io.TextIOWrapper):
    """A stream that may claim to be a terminal."""

    def __init__(self, data: bytes = b"", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8", write_through=True)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def written(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode(errors="replace")


class InProcess(Kctl):
    """A Kctl that calls kctl's main with its own environment. stdin is not a file: `produce` needs a Kctl."""

    def __call__(
        self,
        *args: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
        columns: int | None = None,
    ) -> Result:
        """Run a command. columns: stdout is a terminal of this width. timeout: ignored, pytest has its own."""
        started = time.monotonic()
        out, err = _Screen(terminal=columns is not None), _Screen()
        environment = {**self.environment, **(env or {}), **({"COLUMNS": str(columns)} if columns else {})}
        with (
            mock.patch.dict(os.environ, environment, clear=True),
            mock.patch("sys.stdin", _Screen((stdin or "").encode())),
            mock.patch("sys.stdout", out),
            mock.patch("sys.stderr", err),
            _same_signals(),
        ):
            code = app.main(args)
        return Result(args, code, out.written(), err.written(), time.monotonic() - started)


@contextlib.contextmanager
def _same_signals() -> Iterator[None]:
    """Restore signal handlers, which would otherwise end with the process."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
