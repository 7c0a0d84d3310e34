"""Create the class archive with a run that executes the reports on sample rows, without a cluster.

The JVM writes the archive when it exits, with all classes that it has loaded. So the run covers sources, joins, sums,
checkpoints and a Parquet file.
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
from kctl.spark.watching import TaskProgress, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOCK_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class WarmResult:
    """The class archive. made: true if this run created it, false if a complete one existed."""

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
    progress: TaskProgress | None = None,
) -> WarmResult:
    """Create the class archive for the installed Java and pyspark, unless a complete one exists.

    Raises NotSupported (no Java, no pyspark, or this Java cannot create archives), Busy if another run is still
    creating the archive at the deadline, and OperationFailed if no archive was written.
    """
    started = time.monotonic()
    checked = spark_settings.checked(replace(settings, use_archive=False, start_timeout_s=timeout_s))
    archive = class_archive(find_java())
    partial = archive.new_partial()
    deadline = Deadline(timeout_s)
    with _creation_lock(archive.path.with_name("lock"), deadline):
        outdated = force or not archive.whole
        if outdated:
            try:
                _train(checked, partial, deadline, verbose=verbose, progress=progress)
                archive.adopt(partial)
            finally:
                partial.unlink(missing_ok=True)
        archive.remove_others()
    return _result(archive, outdated, time.monotonic() - started)


def _result(archive: ClassArchive, created: bool, seconds: float) -> WarmResult:
    return WarmResult(
        path=archive.path,
        made=created,
        size_bytes=archive.path.stat().st_size,
        spark_version=spark_version(),
        java_version=archive.java.version,
        duration_ms=round(seconds * 1000),
    )


def _train(
    settings: SparkSettings, partial: Path, deadline: Deadline, *, verbose: bool, progress: TaskProgress | None
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
    """Run both reports on sample rows, and write one of them as Parquet."""
    from kctl.history.retention.live_reads import ConfigRow, LogDirReplicaRow, LogRow
    from kctl.history.retention.usage import ROWS
    from kctl.spark import retention_job, sources

    def frame(kind: sources.SourceKind, *rows: tuple[Any, ...]) -> DataFrame:
        return sources.load(spark, kind._replace(read_rows=_SampleRows(rows)), Target("sample", ()), [0, 1])

    _exercise_lag(spark)
    readings = retention_job.RetentionReadings(
        logs=frame(sources.LOGS, LogRow("t", 0, 1, 0, 10, 1), LogRow("t", 1, 1, error="made up")),
        log_dirs=frame(
            sources.LOG_DIRS, LogDirReplicaRow(1, "/d", 10, 5), LogDirReplicaRow(1, "/d", 10, 5, "t", 0, 7, 0, False)
        ),
        configs=frame(sources.CONFIGS, ConfigRow("t", "delete", 1, 1, 1)),
    )
    retention = retention_job.RetentionJob(readings, now_ms=1)
    retention.failures()
    for by in ROWS:
        retention.rows(by)


def _exercise_lag(spark: SparkSession) -> None:
    """Run the report of `kctl spark lag` on a sample pass."""
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
class _SampleRows:
    """A substitute for a read function of kctl.history.retention.live_reads that needs no cluster."""

    rows: tuple[tuple[Any, ...], ...]

    def __call__(self, _target: Target, _share: int, *, timeout_s: float) -> Iterator[tuple[Any, ...]]:  # noqa: ARG002
        return iter(self.rows)


@contextmanager
def _creation_lock(path: Path, deadline: Deadline) -> Iterator[None]:
    """Hold a lock, so that only one run at a time creates an archive: this takes memory and CPU. Raises Busy."""
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
