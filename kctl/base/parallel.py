"""Run blocking calls in parallel until a deadline."""

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
    """Run all calls, and return key → result or KctlError. Calls that do not finish in time are omitted.

    Calls must end by themselves soon after the deadline, because threads cannot be stopped. Other exceptions
    propagate.
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

    # Use a thread even for a single call: name resolution can block and has no timeout.
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
