"""Engines that evaluate reports over time: kctl's own processes here, Spark in kctl.commands.spark.engine."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import Table
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.history.lag.plan import LagPlan
    from kctl.history.lag.status_rows import LagStatus
    from kctl.history.report.build import ReadGroups
    from kctl.history.retention.live_plan import RetentionPlan
    from kctl.history.retention.store_reads import StoreReads
    from kctl.history.rollups.catch_up import MakeHours
    from kctl.history.snapshots.read_progress import ReadProgress
    from kctl.protocol.target import Target

_LINES_EVERY_S = 30.0


@dataclass(frozen=True)
class ParquetFolder:
    """The output folder of --parquet. where: None if no rows are written."""

    where: str | None = None
    overwrite: bool = False

    def check(self, *, embedded: bool = True) -> None:
        """Raise if the folder must not be written. embedded: this machine writes the files."""
        if self.overwrite and self.where is None:
            raise UsageError("--overwrite needs --parquet DIR")
        if self.where is not None:
            from kctl.history.packages import need_packages
            from kctl.history.parquet import check_target

            need_packages()
            check_target(self.where, overwrite=self.overwrite, embedded=embedded)

    def write(self, rows: Sequence[Any], row: type[Any]) -> None:
        """Write the rows (of dataclass `row`) from this process, if a folder is set."""
        if self.where is not None:
            from kctl.history.parquet import write_table
            from kctl.history.row_tables import table_of

            write_table(table_of(rows, row), self.where)


NO_PARQUET = ParquetFolder()


def lines_every_s() -> float | None:
    """Return the time between progress lines without a terminal; None under spark-submit.

    spark-submit merges the stderr of Python into stdout (org.apache.spark.deploy.PythonRunner).
    """
    from kctl.spark.submitted import submitted_master

    return _LINES_EVERY_S if submitted_master() is None else None


def shown(progress: output.Progress | None) -> ReadProgress | None:
    """Return an observer of the store's reads that updates a progress display."""
    from kctl.history.snapshots.read_progress import ReadProgress

    if progress is None:
        return None
    return ReadProgress(lambda step: progress.update(str(step), step.done, step.total))


class ReportRun(ABC):
    """One run of a report: reading, evaluating, and writing results."""

    def __init__(self, progress: output.Progress | None, parquet: ParquetFolder) -> None:
        self.progress, self.parquet = progress, parquet
        self._emit: Callable[[], None] | None = None

    @abstractmethod
    def watched(self, message: str) -> AbstractContextManager[None]:
        """Show progress while the block runs."""

    @abstractmethod
    def lag(self, plan: LagPlan) -> tuple[list[LagStatus], list[str]]:
        """Return the rows of a lag report and read failures. Writes the rows as Parquet."""

    @abstractmethod
    def usage(self, target: Target, plan: RetentionPlan, by: str, timeout_s: float) -> tuple[list[Any], list[str]]:
        """Return the rows of a live retention report and read failures. Writes the rows as Parquet."""

    @abstractmethod
    def store_reads(self, store: str, from_ms: int, to_ms: int) -> StoreReads:
        """Return the reader of a retention report over a store."""

    @abstractmethod
    def write(self, rows: Sequence[Any], row: type[Any]) -> None:
        """Write rows of a dataclass as Parquet, if a folder is set."""

    @abstractmethod
    def groups(self) -> ReadGroups:
        """Return the function that reads the groups of a report."""

    @abstractmethod
    def hours(self) -> MakeHours:
        """Return the function that rolls up hours."""

    def emit(self, inv: Invocation, rows: Sequence[Any], tables: Callable[[], Sequence[Table]]) -> None:
        """Store the rows for `show`, which runs after the progress display has ended."""
        self._emit = lambda: inv.emit(rows, tables)

    def show(self) -> None:
        """Show the emitted rows."""
        if self._emit is not None:
            self._emit()
            sys.stdout.flush()  # stopping Spark takes another second
        if self.parquet.where is not None:
            output.note(f"written to {self.parquet.where}")


class ReportEngine(ABC):
    """Base class of the report engines. tasks: maximum number of parts that a report is split into."""

    tasks: int

    @abstractmethod
    def running(
        self, inv: Invocation, parquet: ParquetFolder = NO_PARQUET, *, cluster: bool = False
    ) -> AbstractContextManager[ReportRun]:
        """Start a run and show what the block emitted when it ends. cluster: the run connects to a Kafka cluster."""


class OwnProcesses(ReportEngine):
    """Evaluation in processes started by kctl, without Java."""

    def __init__(self) -> None:
        from kctl.history.packages import need_packages

        need_packages()
        from kctl.history.evaluate.processes import available_cpus

        self.tasks = available_cpus()

    @contextmanager
    def running(
        self, inv: Invocation, parquet: ParquetFolder = NO_PARQUET, *, cluster: bool = False
    ) -> Iterator[ReportRun]:
        parquet.check()
        if cluster:
            inv.target()  # a wrong context is reported before anything starts
        from kctl.history.snapshots.read_progress import observed

        with interrupt_when_terminated():
            with output.progress("reading", lines_every_s=lines_every_s()) as progress, observed(shown(progress)):
                run = _OwnRun(progress, parquet, self.tasks)
                yield run
            run.show()


class _OwnRun(ReportRun):
    def __init__(self, progress: output.Progress, parquet: ParquetFolder, tasks: int) -> None:
        super().__init__(progress, parquet)
        self._tasks = tasks

    @contextmanager
    def watched(self, message: str) -> Iterator[None]:
        assert self.progress is not None
        self.progress.update(message)
        yield

    def lag(self, plan: LagPlan) -> tuple[list[LagStatus], list[str]]:
        from kctl.history.lag.evaluate import evaluate
        from kctl.history.lag.row_batches import ROWS

        rows, errors = evaluate(plan)
        self.write(rows, ROWS[plan.query.by])
        return rows, errors

    def usage(self, target: Target, plan: RetentionPlan, by: str, timeout_s: float) -> tuple[list[Any], list[str]]:
        from kctl.history.retention.live_usage import live_usage
        from kctl.history.retention.usage import ROWS

        live = live_usage(target, plan, timeout_s=timeout_s)
        rows = live.usage.rows(by)
        self.write(rows, ROWS[by])
        return rows, live.failures

    def store_reads(self, store: str, from_ms: int, to_ms: int) -> StoreReads:
        from kctl.history.retention.store_reads import reads_of

        return reads_of(store, from_ms, to_ms, at_once=self._tasks)

    def write(self, rows: Sequence[Any], row: type[Any]) -> None:
        self.parquet.write(rows, row)

    def groups(self) -> ReadGroups:
        from kctl.history.report.build import read_in_processes

        return read_in_processes

    def hours(self) -> MakeHours:
        from kctl.history.rollups.catch_up import hours_here

        return hours_here
