"""Opening of a store by a task: on an executor's machine the path may not lead to the driver's store."""

from __future__ import annotations

import socket

from kctl.errors import KctlError, NotAuthorized, NotFound
from kctl.history.snapshots.remote import place
from kctl.history.snapshots.store import Store, open_store


def store_here(text: str) -> Store:
    """Return the store with which the driver has planned (`kctl.history.snapshots.remote.text_of`).

    Raises what open_store raises; if the store is not readable here, the message names the machine.
    """
    try:
        return open_store(place(text))
    except (NotFound, NotAuthorized) as exc:
        raise KctlError(
            f"the store {text} cannot be read on {socket.gethostname()}, where a task runs ({exc.message}): executors"
            " have to see it under the same path as the driver",
            hint=exc.hint,
        ) from exc
