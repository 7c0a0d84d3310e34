"""Open a store in a task: on an executor's machine, the path may lead to a different store than the driver's."""

from __future__ import annotations

import socket

from kctl.errors import KctlError, NotAuthorized, NotFound
from kctl.history.snapshots.remote import parse_location
from kctl.history.snapshots.store import Store, open_store


def store_here(text: str) -> Store:
    """Return the store of the driver's plan (`kctl.history.snapshots.remote.text_of`).

    Raises the errors of open_store; if the store is not readable here, the message names the machine.
    """
    try:
        return open_store(parse_location(text))
    except (NotFound, NotAuthorized) as exc:
        raise KctlError(
            f"the store {text} cannot be read on {socket.gethostname()}, where a task runs ({exc.message}): executors"
            " have to see it under the same path as the driver",
            hint=exc.hint,
        ) from exc
