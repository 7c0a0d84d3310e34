"""Logs of the client libraries. DEBUG output contains passwords and whole requests, so it is never shown."""

from __future__ import annotations

import logging
from collections.abc import Callable

_OFF = logging.CRITICAL + 1
_show: Callable[[str], None] | None = None


class _Handler(logging.Handler):
    """A handler that passes INFO and above to `show`, and drops the rest regardless of the logger's level."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        self._show(f"{record.name}: {record.getMessage()}")


def be_verbose(show: Callable[[str], None]) -> None:
    """Pass INFO lines of the client libraries to `show` (-v). Call it before a client is created."""
    global _show  # noqa: PLW0603 - loggers are global, too
    _show = show


def quiet_kafka() -> None:
    """Silence kafka-python's loggers, or pass their lines to the `show` of be_verbose."""
    _quiet("kafka")


def _quiet(name: str) -> None:
    logger = logging.getLogger(name)
    logger.propagate = False
    logger.setLevel(logging.INFO if _show else _OFF)
    if _show and not any(isinstance(handler, _Handler) for handler in logger.handlers):
        logger.addHandler(_Handler(_show))
    elif not logger.handlers:
        logger.addHandler(logging.NullHandler())
