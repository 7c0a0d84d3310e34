"""Making the class archive: one run that does what the reports do, without a cluster, and ends by itself.

The JVM writes the archive when it ends, with the classes that it has loaded; so the run has sources, joins, sums,
what is kept, and a Parquet file, over a handful of made-up rows.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.base.deadline import Deadline
from kctl.deploy.runtime.class_archive import ClassArchive
from kctl.deploy.runtime.java import find_java
from kctl.errors import Busy, OperationFailed
from kctl.protocol.target import Target
from kctl.spark import settings as spark_settings
from kctl.spark.class_archive import class_archive, spark_version
from kctl.spark.session import SparkDriver
from kctl.spark.settings import SparkSettings
from kctl.spark.watching import Progress, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOCK_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class WarmResult:
    """The archive. made: by this run; false when a whole one was there."""

    path: Path
    made: bool
    size_bytes: int
    spark_version: str
    java_version: int
    duration_ms: int


def warm(
    settings: SparkSettings,
    *,
    force: bool = False,
    timeout_s: float = 300.0,
    verbose: bool = False,
    progress: Progress | None = None,
) -> WarmResult:
    """Make the class archive for the Java and the pyspark that are found, unless it is there and whole.

    Raises NotSupported (no Java, no pyspark, a Java that cannot make one), Busy when another run makes it and does
    not end, OperationFailed when none was written.
    """
    started = time.monotonic()
    checked = spark_settings.checked(replace(settings, use_archive=False, start_timeout_s=timeout_s))
    archive = class_archive(find_java())
    partial = archive.new_partial()
    deadline = Deadline(timeout_s)
    with _alone(archive.path.with_name("lock"), deadline):
        made = force or not archive.whole
        if made:
            try:
                _train(checked, partial, deadline, verbose=verbose, progress=progress)
                archive.adopt(partial)
            finally:
                partial.unlink(missing_ok=True)
        archive.remove_others()
    return _result(archive, made, time.monotonic() - started)


def _result(archive: ClassArchive, made: bool, seconds: float) -> WarmResult:
    return WarmResult(
        path=archive.path,
        made=made,
        size_bytes=archive.path.stat().st_size,
        spark_version=spark_version(),
        java_version=archive.java.version,
        duration_ms=round(seconds * 1000),
    )


def _train(
    settings: SparkSettings, partial: Path, deadline: Deadline, *, verbose: bool, progress: Progress | None
) -> None:
    with SparkDriver(settings, verbose=verbose, archive_to=partial) as driver:
        spark = driver.session()
        with watched(driver, "using Spark", deadline=deadline, progress=progress):
            exercise(spark)
        if progress is not None:
            progress.update("writing the class archive")
        code = driver.finish()
    if not partial.is_file():
        how = "it timed out" if code is None else f"its JVM ended with exit code {code}"
        raise OperationFailed(f"Spark wrote no class archive: {how}", hint="run the command again with -v")


def exercise(spark: SparkSession) -> None:
    """Both reports over rows that nobody has, and a Parquet file of one."""
    from kctl.history.retention.live_reads import ConfigRow, LogDirRow, LogRow
    from kctl.history.retention.usage import ROWS
    from kctl.spark import retention_job, sources

    def frame(kind: sources.Kind, *rows: tuple[Any, ...]) -> DataFrame:
        return sources.load(spark, kind._replace(read=_MadeUp(rows)), Target("nobody", ()), [0, 1])

    _exercise_lag(spark)
    readings = retention_job.Readings(
        logs=frame(sources.LOGS, LogRow("t", 0, 1, 0, 10, 1), LogRow("t", 1, 1, error="made up")),
        log_dirs=frame(sources.LOG_DIRS, LogDirRow(1, "/d", 10, 5), LogDirRow(1, "/d", 10, 5, "t", 0, 7, 0, False)),
        configs=frame(sources.CONFIGS, ConfigRow("t", "delete", 1, 1, 1)),
    )
    retention = retention_job.RetentionJob(readings, now_ms=1)
    retention.failures()
    for by in ROWS:
        retention.rows(by)


def _exercise_lag(spark: SparkSession) -> None:
    """The report of `kctl spark lag` over a pass that nobody made."""
    from kctl.history.evaluate.group_ranges import GroupRange
    from kctl.history.lag.live_pass import live_pass
    from kctl.history.lag.plan import LagPlan
    from kctl.history.lag.request import LagQuery
    from kctl.history.snapshots import schema
    from kctl.history.snapshots.collect import Pass
    from kctl.spark import parquet
    from kctl.spark.lag_source import LagReportJob

    live = live_pass(Pass(rows={schema.COMMITS: [("g", "t", 0, 5, 0, 9, 0, None, False)]}), 1)
    query = LagQuery(None, 1, 2, lookback_ms=0, since_ms=1, began_ms=1, judged=False, live=(live,))
    job = LagReportJob(spark, LagPlan(query, (GroupRange(upper="m"), GroupRange("m"))), keep=True)
    job.read()
    with tempfile.TemporaryDirectory(prefix="kctl-warm-") as folder:
        parquet.write(job.frame(), str(Path(folder) / "lag"), overwrite=False)


@dataclass(frozen=True)
class _MadeUp:
    """Reads rows that need no cluster, in the place of a function of kctl.history.retention.live_reads."""

    rows: tuple[tuple[Any, ...], ...]

    def __call__(self, _target: Target, _share: int, *, timeout_s: float) -> Iterator[tuple[Any, ...]]:  # noqa: ARG002
        return iter(self.rows)


@contextmanager
def _alone(path: Path, deadline: Deadline) -> Iterator[None]:
    """One at a time: writing an archive takes memory and both cores."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if deadline.expired:
                    raise Busy("another kctl is creating the class archive", hint="wait until it is done") from None
                time.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(fd)
