"""The class of error for a failure of the operating system to connect."""

from __future__ import annotations

import socket

from kctl.errors import ConnectionFailed, ConnectionRefused, ConnectionTimedOut, NameNotResolved


def error_class(exc: BaseException) -> type[ConnectionFailed]:
    """Return the subclass of ConnectionFailed for an exception of `socket`."""
    if isinstance(exc, socket.gaierror):
        return NameNotResolved
    if isinstance(exc, ConnectionRefusedError):
        return ConnectionRefused
    return ConnectionTimedOut if isinstance(exc, TimeoutError) else ConnectionFailed
