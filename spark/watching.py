"""An eye on a running job: its stages for a progress display, and a limit on its time.

pyspark waits for a job without limit, and for ever when the JVM's serving thread dies; so the limit is kept by a
thread, which then kills the JVM, and what waits for it fails.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from kctl.errors import KctlError, TimedOut

if TYPE_CHECKING:
    from pyspark import SparkContext

    from kctl.base.deadline import Deadline
    from kctl.spark.session import SparkDriver

_POLL_S = 0.25
_NO_EXECUTORS = "Initial job has not accepted any resources"  # org.apache.spark.scheduler.TaskSchedulerImpl


class Progress(Protocol):
    """Told what is going on; tasks done of tasks known."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


@contextmanager
def watched(
    driver: SparkDriver, message: str, *, deadline: Deadline, progress: Progress | None = None
) -> Iterator[None]:
    """Watch what the block makes Spark do. Raises TimedOut, and KctlError for what Spark fails of.

    progress: told about the running stages while they run; None spares the asking.
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
            hint="are workers up, with as much memory and as many cores free as are asked for"
            " (spark.executor.memory, spark.executor.cores)?",
        )
    return TimedOut(
        f"Spark was not done within {timeout_s:g} s ({message})",
        hint="--timeout gives it more time; -v shows what it does"
        + ("" if driver.settings.embedded else "; has the cluster executors free, as large as spark.executor.* asks?"),
    )


class _Watcher(threading.Thread):
    def __init__(self, driver: SparkDriver, message: str, deadline: Deadline, progress: Progress | None) -> None:
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
        """End the thread and wait for it: it must not talk to a JVM that goes."""
        self._done.set()
        self.join(timeout=5.0)


def _show(context: SparkContext, message: str, progress: Progress) -> None:
    """The tasks of the stages that run now."""
    try:
        tracker = context.statusTracker()
        found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # noqa: BLE001 - a display must not fail a job; the job tells its own failure
        return
    stages = [stage for stage in found if stage is not None]
    if stages:
        names = ", ".join(str(stage.stageId) for stage in stages)
        done, total = sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)
        progress.update(f"{message}: stage {names}, {done} of {total} tasks", done, total)
