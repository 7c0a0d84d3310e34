"""What the client libraries log. Their DEBUG output holds passwords and whole requests, so it is never shown."""

from __future__ import annotations

import logging


class _NoSecrets(logging.Filter):
    """Drops what is below INFO, whatever level somebody sets on a library's logger."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.INFO


_verbose_handler: logging.Handler | None = None


def be_verbose(handler: logging.Handler) -> None:
    """Send INFO and above of the client libraries to `handler` (for -v); before a client is made."""
    global _verbose_handler  # noqa: PLW0603 - one process, one -v
    _verbose_handler = handler


def quiet_kafka() -> None:
    """Silence kafka-python's loggers, or send them to the handler of be_verbose."""
    _quiet("kafka")


def quiet_kazoo() -> None:
    """The same for kazoo."""
    _quiet("kazoo")


def _quiet(name: str) -> None:
    logger = logging.getLogger(name)
    logger.propagate = False
    if _verbose_handler is None:
        logger.setLevel(logging.CRITICAL + 1)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        return
    logger.setLevel(logging.INFO)
    if _verbose_handler not in logger.handlers:
        _verbose_handler.addFilter(_NoSecrets())
        logger.addHandler(_verbose_handler)
