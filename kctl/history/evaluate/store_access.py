"""A store as a task opens it: on an executor's machine, where it may not be what the driver sees."""

from __future__ import annotations

import socket

from kctl.errors import KctlError, NotAuthorized, NotFound
from kctl.history.snapshots.remote import place
from kctl.history.snapshots.store import Store, open_store


def store_here(text: str) -> Store:
    """The store that the driver has planned with (`kctl.history.snapshots.remote.text_of`).

    Raises what open_store does; when it is not to be seen here, the message names the machine.
    """
    try:
        return open_store(place(text))
    except (NotFound, NotAuthorized) as exc:
        raise KctlError(
            f"the store {text} cannot be read on {socket.gethostname()}, where a task runs ({exc.message}): executors"
            " have to see it under the same path as the driver",
            hint=exc.hint,
        ) from exc
