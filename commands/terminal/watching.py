"""The option --watch: repeat a command until Ctrl-C."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from kctl.commands.terminal import output
from kctl.errors import AuthenticationFailed, ExitCode, KctlError, NotFound, UsageError

if TYPE_CHECKING:
    from kctl.commands.terminal.invocation import Invocation

WATCH = typer.Option("--watch", help="Repeat until Ctrl-C; -o json prints one line per pass.")
INTERVAL = typer.Option("--interval", metavar="DURATION", help="Pause between passes of --watch, e.g. 10s.")

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_Reading = TypeVar("_Reading")


@dataclasses.dataclass(frozen=True)
class PassOutput:
    """The output of one pass.

    rows: for JSON. failures: what could not be read. remarks: a function that prints more on stderr.
    """

    rows: Any
    tables: Sequence[output.Table]
    failures: Sequence[str] = ()
    remarks: Callable[[], None] | None = None


class Watching:
    """A loop of passes with a pause between them. Raises UsageError for an invalid pause or format."""

    def __init__(self, inv: Invocation, interval: str, option_name: str = "--watch") -> None:
        """option_name: the option, for errors."""
        from kctl.base.units import parse_duration_ms

        self._inv = inv
        self._warnings: Sequence[str] = ()
        self._pause_s = parse_duration_ms(interval) / 1000
        if self._pause_s < 0.1:
            raise UsageError("--interval must be at least 100ms")
        if inv.output not in output.FOR_PEOPLE | {"json"}:
            raise UsageError(f"{option_name} supports only tables and -o json")

    def run(
        self, poll: Callable[[], _Reading], render: Callable[[_Reading], PassOutput], warnings: Sequence[str] = ()
    ) -> NoReturn:
        """Repeat until Ctrl-C, which exits with 130. warnings: printed with every pass.

        A failed pass is reported and retried, except for invalid input and failed logins: repeated logins could lock
        the account.
        """
        self._warnings = warnings
        if self._inv.output == "json":
            self._warn()
        try:
            while True:
                self._pass(poll, render)
                time.sleep(self._pause_s)
        except KeyboardInterrupt:
            raise typer.Exit(int(ExitCode.INTERRUPTED)) from None

    def _pass(self, poll: Callable[[], _Reading], render: Callable[[_Reading], PassOutput]) -> None:
        now = datetime.now(timezone.utc)
        try:
            output_of_pass = render(poll())
        except (NotFound, UsageError, AuthenticationFailed):
            raise
        except KctlError as exc:
            output.warn(f"{now:%H:%M:%S} {exc.message}")
            return
        if self._inv.output == "json":
            output.write_json_line({"time": now, "rows": output_of_pass.rows, "failures": output_of_pass.failures})
        else:
            self._draw(now, output_of_pass)
        sys.stdout.flush()

    def _warn(self) -> None:
        for line in self._warnings:
            output.warn(line)

    def _draw(self, now: datetime, view: PassOutput) -> None:
        if sys.stdout.isatty():
            sys.stdout.write(_CLEAR)
        output.heading(f"{now:%Y-%m-%d %H:%M:%S} UTC, Ctrl-C to stop")
        self._inv.emit(view.rows, view.tables)
        self._warn()
        for line in view.failures:
            output.warn(line)
        if view.remarks:
            view.remarks()
