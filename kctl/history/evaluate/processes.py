"""The shares of one report, evaluated at the same time: the first here, the others in processes of their own.

A process costs about as much as it takes to evaluate a million rows; plans make no more shares than that pays for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from kctl.base.own_python import child_environment
from kctl.errors import KctlError, OperationFailed

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Share = TypeVar("Share")
Result = TypeVar("Result")


def available_cpus() -> int:
    """Return the number of CPUs that this process may use (cgroup quotas aside)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def each_share(work: Callable[[Share], Result], shares: Sequence[Share]) -> list[Result]:
    """Return what `work` returns for each share, in order. `work`, shares and results are pickled.

    Raises what `work` raises here, and OperationFailed when another process ends without a result.
    """
    workers = [_Worker(work, share) for share in shares[1:]]
    try:
        results = [work(share) for share in shares[:1]]
        return [*results, *(worker.result() for worker in workers)]
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process with one share. A thread receives its answer, so that the process never waits for this one."""

    def __init__(self, work: Callable[[Any], Any], share: Any) -> None:
        from multiprocessing.connection import Pipe

        self._connection, other = Pipe()
        # Not multiprocessing's own processes: those import the script that started kctl again.
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(other.fileno())],
            pass_fds=[other.fileno()],
            env=child_environment(os.environ),
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends this process, which ends the others
        )
        other.close()  # the process alone has that end: when the process dies, receiving ends
        self._answer: tuple[bool, Any] | None = None
        self._thread = Thread(target=self._exchange, args=(work, share), daemon=True)
        self._thread.start()

    def _exchange(self, work: Callable[[Any], Any], share: Any) -> None:
        with suppress(EOFError, OSError):
            self._connection.send((work, share))
            self._answer = self._connection.recv()

    def result(self) -> Any:
        """Wait for the result."""
        self._thread.join()
        if self._answer is None:
            code = self._process.wait()
            raise OperationFailed(
                f"a process that evaluated a part of the report ended with exit code {code}",
                hint="was memory short? choose fewer groups or a shorter time",
            )
        done, value = self._answer
        if not done:
            raise value
        return value

    def stop(self) -> None:
        """End the process, finished or not."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        self._connection.close()


def serve(connection: Connection) -> None:
    """Evaluate the share that comes through the connection."""
    work, share = connection.recv()
    answer: tuple[bool, Any]
    try:
        answer = (True, work(share))
    except (KctlError, ValueError) as exc:
        answer = (False, exc)
    except Exception:  # noqa: BLE001 - reported by the process that waits
        answer = (False, RuntimeError(traceback.format_exc()))
    with suppress(OSError):  # nobody waits any more
        connection.send(answer)


if __name__ == "__main__":
    from multiprocessing.connection import Connection as Own

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Own(int(sys.argv[1])))
