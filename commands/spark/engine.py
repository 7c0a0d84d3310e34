"""Reports evaluated by Spark."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.history.engine import NO_PARQUET, ParquetFolder, ReportEngine, ReportRun, lines_every_s, shown
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation

if TYPE_CHECKING:
    from kctl.base.deadline import Deadline
    from kctl.history.lag.plan import LagPlan
    from kctl.history.lag.status_rows import LagStatus
    from kctl.history.report.build import ReadGroups
    from kctl.history.retention.live_plan import RetentionPlan
    from kctl.history.retention.store_reads import StoreReads
    from kctl.history.rollups.catch_up import MakeHours
    from kctl.protocol.target import Target
    from kctl.spark.session import SparkDriver
    from kctl.spark.settings import SparkSettings

JOB_TIMEOUT_S = 600.0

Master = Annotated[
    str, typer.Option(metavar="URL", help="Spark master: local, local[N], spark://HOST:PORT, yarn or k8s://….")
]
Conf = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Spark setting; repeatable.")]
Memory = Annotated[str, typer.Option(metavar="SIZE", help="Driver heap size.")]


def settings_of(master: str, conf: list[str] | None, driver_memory: str) -> SparkSettings:
    from kctl.spark.settings import SparkSettings, checked, parse_conf

    return checked(SparkSettings(master=master, conf=parse_conf(conf), driver_memory=driver_memory))


class Spark(ReportEngine):
    """Evaluation by a Spark driver."""

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings
        self.tasks = settings.parallelism

    @contextmanager
    def running(
        self, inv: Invocation, parquet: ParquetFolder = NO_PARQUET, *, cluster: bool = False
    ) -> Iterator[ReportRun]:
        from kctl.base.deadline import Deadline
        from kctl.history.snapshots.read_progress import observed
        from kctl.spark.session import SparkDriver

        parquet.check(embedded=self._settings.embedded)
        # A wrong context is reported before anything starts.
        secrets = inv.target().security.secrets if cluster else frozenset[str]()
        deadline = Deadline(inv.timeout_s(JOB_TIMEOUT_S))
        settings = dataclasses.replace(self._settings, start_timeout_s=deadline.seconds)
        with interrupt_when_terminated(), SparkDriver(settings, verbose=inv.verbose, withheld=secrets) as driver:
            with starting(inv, lines_every_s=lines_every_s()) as progress, observed(shown(progress)):
                run = _SparkRun(driver, progress, deadline, parquet, self.tasks)
                yield run
            run.show()


@contextmanager
def starting(inv: Invocation, *, lines_every_s: float | None = None) -> Iterator[output.Progress | None]:
    """Yield a progress display; None with -v, whose log would break a bar, or if neither a bar nor lines can appear."""
    if inv.verbose or not (lines_every_s or sys.stderr.isatty()):
        yield None
        return
    with output.progress("starting Spark", lines_every_s=lines_every_s) as progress:
        yield progress


class _SparkRun(ReportRun):
    """A run with a driver that may still be starting."""

    def __init__(
        self,
        driver: SparkDriver,
        progress: output.Progress | None,
        deadline: Deadline,
        parquet: ParquetFolder,
        tasks: int,
    ) -> None:
        super().__init__(progress, parquet)
        self._driver, self._deadline, self._tasks = driver, deadline, tasks

    @contextmanager
    def watched(self, message: str) -> Iterator[None]:
        from kctl.spark.watching import watched

        self._driver.session()
        with (
            self._display(message) as progress,
            watched(self._driver, message, deadline=self._deadline, progress=progress),
        ):
            yield

    @contextmanager
    def _display(self, message: str) -> Iterator[output.Progress | None]:
        """Yield the progress display. Without a terminal, the first line is due some seconds after Spark's start."""
        from kctl.history.snapshots.read_progress import observed

        if self.progress is None or sys.stderr.isatty():
            yield self.progress
            return
        with output.progress(message, lines_every_s=lines_every_s()) as progress, observed(shown(progress)):
            yield progress

    def lag(self, plan: LagPlan) -> tuple[list[LagStatus], list[str]]:
        from kctl.spark.lag_source import LagReportJob

        job = LagReportJob(self._driver.session(), plan, keep=self.parquet.where is not None)
        rows, errors = job.read()
        if self.parquet.where is not None:
            self._write(job.frame())
        return rows, errors

    def usage(self, target: Target, plan: RetentionPlan, by: str, timeout_s: float) -> tuple[list[Any], list[str]]:
        from kctl.spark.retention_job import retention_job

        now_ms = time.time_ns() // 1_000_000
        job = retention_job(self._driver.session(), target, plan, now_ms=now_ms, timeout_s=timeout_s)
        failures = [*plan.failures, *job.failures()]
        rows = job.rows(by)
        if self.parquet.where is not None:
            self._write(job.frame(by))
        return rows, failures

    def store_reads(self, store: str, from_ms: int, to_ms: int) -> StoreReads:
        from kctl.spark.store_reads import reads_by_spark

        return reads_by_spark(self._driver.session(), self._tasks, store, from_ms, to_ms)

    def write(self, rows: Sequence[Any], row: type[Any]) -> None:
        if self.parquet.where is not None:
            from kctl.history.row_tables import table_of

            self._write(self._driver.session().createDataFrame(table_of(rows, row)))

    def _write(self, frame: Any) -> None:
        from kctl.spark.parquet import write

        assert self.parquet.where is not None
        write(frame, self.parquet.where, overwrite=self.parquet.overwrite)

    def groups(self) -> ReadGroups:
        from kctl.spark.report_source import read_by_spark

        return read_by_spark(self._driver.session())

    def hours(self) -> MakeHours:
        from kctl.spark.rollup_job import hours_by_spark

        return hours_by_spark(self._driver.session(), self._tasks)
