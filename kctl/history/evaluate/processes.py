"""Evaluate the shares of a report in parallel: the first share in this process, the others in child processes.

Starting a process takes as long as evaluating about a million rows; plans make only as many shares as pay off.
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
from kctl.history.snapshots.read_progress import ReadProgress, ReadStep, observed, observer

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Share = TypeVar("Share")
Result = TypeVar("Result")
_COUNTED = "counted"
_PROGRESS_EVERY_S = 0.5  # how often a child process reports progress


def available_cpus() -> int:
    """Return the number of CPUs that this process may use (cgroup quotas aside)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def each_share(work: Callable[[Share], Result], shares: Sequence[Share]) -> list[Result]:
    """Return what `work` returns for each share, in order. `work`, shares and results are pickled.

    Raises the errors of `work` in this process, and OperationFailed if another process ends without a result.
    """
    workers = [_Worker(work, share) for share in shares[1:]]
    try:
        results = [work(share) for share in shares[:1]]
        return [*results, *(worker.result() for worker in workers)]
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process with one share. A thread receives its result, so that the process never waits for this one."""

    def __init__(self, work: Callable[[Any], Any], share: Any) -> None:
        from multiprocessing.connection import Pipe

        self._connection, other = Pipe()
        # multiprocessing is not used: it would import the script that started kctl again.
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(other.fileno())],
            pass_fds=[other.fileno()],
            env=child_environment(os.environ),
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends this process, which ends the others
        )
        other.close()  # now only the child has that end: if the child dies, recv fails
        self._outcome: tuple[bool, Any] | None = None
        self._progress = observer()
        self._thread = Thread(target=self._exchange, args=(work, share), daemon=True)
        self._thread.start()

    def _exchange(self, work: Callable[[Any], Any], share: Any) -> None:
        with suppress(EOFError, OSError):
            self._connection.send((work, share))
            message = self._connection.recv()
            while isinstance(message, int):  # units finished since the last message
                if self._progress is not None:
                    self._progress.advance(message)
                message = self._connection.recv()
            self._outcome = message

    def result(self) -> Any:
        """Wait for the result."""
        self._thread.join()
        if self._outcome is None:
            code = self._process.wait()
            raise OperationFailed(
                f"a process that evaluated a part of the report ended with exit code {code}",
                hint="check whether memory ran out; select fewer groups or a shorter time",
            )
        done, value = self._outcome
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
    """Receive a share from the connection, evaluate it and send the outcome."""
    work, share = connection.recv()
    outcome: tuple[bool, Any]
    try:
        with observed(_Relay(connection)):
            outcome = (True, work(share))
    except (KctlError, ValueError) as exc:
        outcome = (False, exc)
    except Exception:  # noqa: BLE001 - reported by the process that waits
        outcome = (False, RuntimeError(traceback.format_exc()))
    with suppress(OSError):  # the parent no longer waits
        connection.send(outcome)


class _Relay(ReadProgress):
    """An observer that sends the number of finished units through the connection, and no other steps."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(self._send, every_s=_PROGRESS_EVERY_S)
        self._connection, self._sent = connection, 0
        self.begin("", None, _COUNTED)

    def report(self, step: ReadStep) -> None:
        if step.unit == _COUNTED:
            super().report(step)

    def _send(self, step: ReadStep) -> None:
        with suppress(OSError):  # the parent no longer waits
            self._connection.send(step.done - self._sent)
        self._sent = step.done


if __name__ == "__main__":
    from multiprocessing.connection import Connection as PipeConnection

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(PipeConnection(int(sys.argv[1])))
