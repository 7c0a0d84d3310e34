"""Several blocking calls at once, waited for until a deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from kctl.base.deadline import Deadline
from kctl.errors import KctlError

K = TypeVar("K")
V = TypeVar("V")
MAX_THREADS = 32


def run_all(tasks: Mapping[K, Callable[[], V]], deadline: Deadline) -> dict[K, V | KctlError]:
    """key → what the call returned, or the KctlError that it raised; calls that do not end in time are left out.

    The calls have to end by themselves soon after the deadline: threads cannot be stopped. Other exceptions are
    raised here.
    """
    results: dict[K, V | KctlError] = {}
    unexpected: list[Exception] = []

    def run(key: K) -> None:
        try:
            results[key] = tasks[key]()
        except KctlError as exc:
            results[key] = exc
        except Exception as exc:  # noqa: BLE001 - handed to the caller's thread
            unexpected.append(exc)

    # Also for a single call: resolving a name can take long and cannot be given a limit.
    keys = list(tasks)
    for start in range(0, len(keys), MAX_THREADS):
        chunk = keys[start : start + MAX_THREADS]
        threads = [threading.Thread(target=run, args=(key,), daemon=True) for key in chunk]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(deadline.left_s + 0.1)
    if unexpected:
        raise unexpected[0]
    return dict(results)
