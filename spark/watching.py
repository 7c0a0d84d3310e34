"""Watch a running job: show the progress of its tasks, and enforce a time limit.

pyspark waits for a job without limit, and forever if the JVM's serving thread dies. A thread enforces the limit: it
kills the JVM, and the waiting call fails.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from kctl.errors import KctlError, TimedOut
from kctl.history.snapshots.read_progress import ReadStep

if TYPE_CHECKING:
    from pyspark import SparkContext

    from kctl.base.deadline import Deadline
    from kctl.spark.session import SparkDriver

_POLL_S = 0.25
_NO_EXECUTORS = "Initial job has not accepted any resources"  # org.apache.spark.scheduler.TaskSchedulerImpl


class TaskProgress(Protocol):
    """A progress display. done, total: numbers of tasks."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


@contextmanager
def watched(
    driver: SparkDriver, message: str, *, deadline: Deadline, progress: TaskProgress | None = None
) -> Iterator[None]:
    """Watch the Spark jobs of the block. Raises TimedOut, and KctlError for failures of Spark.

    progress: updated with the tasks of the running stages; None: stages are not polled.
    """
    watcher = _Watcher(driver, message, deadline, progress)
    watcher.start()
    try:
        with driver.explained():
            yield
    except KctlError as exc:
        if watcher.timed_out:
            raise _timed_out(driver, message, deadline.seconds) from exc
        raise
    finally:
        watcher.stop()


def _timed_out(driver: SparkDriver, message: str, timeout_s: float) -> TimedOut:
    if _NO_EXECUTORS in driver.log():
        return TimedOut(
            f"the Spark cluster gave no executors within {timeout_s:g} s",
            hint="check that workers are up with enough free memory and cores"
            " (spark.executor.memory, spark.executor.cores)",
        )
    return TimedOut(
        f"Spark was not done within {timeout_s:g} s ({message})",
        hint="raise --timeout, or use -v to see Spark's log"
        + (
            ""
            if driver.settings.embedded
            else "; check that the cluster has free executors of the size in spark.executor.*"
        ),
    )


class _Watcher(threading.Thread):
    def __init__(self, driver: SparkDriver, message: str, deadline: Deadline, progress: TaskProgress | None) -> None:
        super().__init__(name="kctl-spark-watcher", daemon=True)
        self._driver, self._message, self._deadline, self._progress = driver, message, deadline, progress
        self._context = driver.session().sparkContext
        self._done = threading.Event()
        self.timed_out = False

    def run(self) -> None:
        if self._progress is not None:
            self._progress.update(self._message)
        while not self._done.wait(_POLL_S):
            if self._deadline.expired:
                self.timed_out = True
                self._driver.abort()
                return
            if self._progress is not None:
                _show(self._context, self._message, self._progress)

    def stop(self) -> None:
        """Stop the thread and wait for it: it must not call a JVM that is exiting."""
        self._done.set()
        self.join(timeout=5.0)


def _show(context: SparkContext, message: str, progress: TaskProgress) -> None:
    """Show the tasks of the running stages."""
    try:
        tracker = context.statusTracker()
        result = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # noqa: BLE001 - a display must not fail a job; the job reports its own failure
        return
    stages = [stage for stage in result if stage is not None]
    if stages:
        done, total = sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)
        progress.update(str(ReadStep(message, done, total, "tasks")), done, total)
