"""kctl spark: lag and retention usage, computed by PySpark."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands import output
from kctl.commands.interrupts import undone_when_terminated
from kctl.commands.invocation import CommandGroup, Invocation, invocation
from kctl.commands.output import Column, Table, jsonable
from kctl.commands.views import By, incomplete, judge, lag_table, remarks
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.spark.session import SparkDriver
    from kctl.spark.settings import SparkSettings

app = CommandGroup("Compute lag and retention usage with PySpark.")
app.command_of("snapshot", "kctl.commands.spark_snapshot")

_JOB_TIMEOUT_S = 600.0
_REQUEST_TIMEOUT_S = 30.0

Master = Annotated[str, typer.Option(metavar="URL", help="local, local[N], spark://HOST:PORT, yarn or k8s://….")]
Conf = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of Spark's; repeatable.")]
Memory = Annotated[str, typer.Option(metavar="SIZE", help="The driver's heap.")]
Parquet = Annotated[str | None, typer.Option(metavar="DIR", help="Also write the rows there, as Parquet.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the folder of --parquet.")]
TopicNames = Annotated[list[str] | None, typer.Option("--topic", help="Only this topic; repeatable.")]


class RetentionBy(str, Enum):
    """What a row is."""

    TOPIC = "topic"
    PARTITION = "partition"
    BROKER = "broker"
    LOG_DIR = "log-dir"


@app.command()
def lag(
    ctx: typer.Context,
    group: Annotated[list[str] | None, typer.Option(help="Only this group; repeatable.")] = None,
    topic: TopicNames = None,
    state: Annotated[list[str] | None, typer.Option(help="Only groups in this state; repeatable.")] = None,
    by: Annotated[By, typer.Option(help="What a row adds up.")] = By.PARTITION,
    max_lag: Annotated[int | None, typer.Option(min=0, help="Exit 1 when the lag of any row is more.")] = None,
    parquet: Parquet = None,
    overwrite: Overwrite = False,
    master: Master = "local",
    conf: Conf = None,
    driver_memory: Memory = "1g",
) -> None:
    """Compute consumer lag with Spark: the rows and figures of `kctl lag`.

    For a cluster that fits one machine `kctl lag` answers at once; this is for a Spark cluster, and for Parquet.

    Example: kctl spark lag --by group --parquet ./lag
    """
    from kctl.groups.overview import failures_of, known_states

    inv = invocation(ctx)
    states, topics = known_states(state), _topics(topic)
    settings = _settings(master, conf, driver_memory)
    with _spark(inv, settings, parquet, overwrite=overwrite) as run:
        from kctl.spark.planning import plan_lag

        with inv.connect(timeout_s=_REQUEST_TIMEOUT_S) as client:
            plan = plan_lag(client, group or None, topics=topics, states=states, parallelism=settings.parallelism)
            target = client.target
        spark = run.driver.session()
        from kctl.spark.lag_job import lag_job

        with run.watched("reading offsets"):
            job = lag_job(spark, target, plan, timeout_s=_REQUEST_TIMEOUT_S)
            report = job.report()
            rows = job.rows(by.value)
            run.write(job.frame(by.value))
        run.emit(inv, rows, lambda: [lag_table(rows, by, members=True)])
    remarks(report)
    judge(rows, by, max_lag)
    failures = failures_of(report)
    if failures:
        raise incomplete(failures)


@app.command()
def retention(
    ctx: typer.Context,
    topic: TopicNames = None,
    by: Annotated[RetentionBy, typer.Option(help="What a row is.")] = RetentionBy.TOPIC,
    parquet: Parquet = None,
    overwrite: Overwrite = False,
    master: Master = "local",
    conf: Conf = None,
    driver_memory: Memory = "1g",
) -> None:
    """Compute what logs take on the disks, and how much of their retention limits they have used.

    Shares go over 100 %: Kafka deletes whole segments, by their newest record. Sizes are of segments, without
    their indexes.

    Example: kctl spark retention --by log-dir
    """
    inv = invocation(ctx)
    topics = _topics(topic)
    settings = _settings(master, conf, driver_memory)
    with _spark(inv, settings, parquet, overwrite=overwrite) as run:
        from kctl.spark.planning import plan_retention

        with inv.connect(timeout_s=_REQUEST_TIMEOUT_S) as client:
            plan = plan_retention(client, topics=topics, parallelism=settings.parallelism)
            target = client.target
        spark = run.driver.session()
        from kctl.spark.retention_job import retention_job

        now_ms = time.time_ns() // 1_000_000
        with run.watched("reading logs"):
            job = retention_job(spark, target, plan, now_ms=now_ms, timeout_s=_REQUEST_TIMEOUT_S)
            failures = job.failures()
            rows = job.rows(by.value)
            run.write(job.frame(by.value))
        run.emit(inv, rows, lambda: [_retention_table(rows, by)])
    if failures:
        raise incomplete(failures)


@app.command()
def warm(
    ctx: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="Make it again.")] = False,
    driver_memory: Memory = "1g",
) -> None:
    """Make the class archive with which Spark starts in half the time.

    It takes one to two minutes and 160 MB in kctl's cache folder, once for each version of Spark and Java.

    Example: kctl spark warm
    """
    from kctl.spark.warm import warm as make

    inv = invocation(ctx)
    settings = _settings("local", None, driver_memory)
    with undone_when_terminated(), output.progress("starting Spark") as progress:
        result = make(
            settings,
            force=force,
            timeout_s=inv.timeout_s(_JOB_TIMEOUT_S),
            verbose=inv.verbose,
            progress=progress,
        )
    columns = [
        Column("path"),
        Column("made"),
        Column("size_bytes", "SIZE", show=_size, align="right"),
        Column("spark_version", "SPARK"),
        Column("java_version", "JAVA", align="right"),
        Column("duration_ms", "TIME", show=_duration, align="right"),
    ]
    inv.emit(result, lambda: [Table(columns, [jsonable(result)])])


# --- one run of Spark -------------------------------------------------------------------------------------------


class _Run:
    """A driver that is starting, and where its results go."""

    def __init__(
        self,
        driver: SparkDriver,
        progress: output.Progress | None,
        timeout_s: float,
        parquet: str | None,
        overwrite: bool,
    ) -> None:
        self.driver = driver
        self._progress = progress
        self._timeout_s = timeout_s
        self._parquet = parquet
        self._overwrite = overwrite
        self._emit: Callable[[], None] | None = None

    def watched(self, message: str) -> Any:
        from kctl.spark.watching import watched

        return watched(self.driver, message, timeout_s=self._timeout_s, progress=self._progress)

    def write(self, frame: Any) -> None:
        """The rows as Parquet, when that was asked for."""
        if self._parquet is not None:
            from kctl.spark.parquet import write

            write(frame, self._parquet, overwrite=self._overwrite)

    def emit(self, inv: Invocation, rows: Sequence[Any], tables: Callable[[], Sequence[Table]]) -> None:
        """Show the rows, once the progress display is gone."""
        self._emit = lambda: inv.emit(rows, tables)

    def show(self) -> None:
        if self._emit is not None:
            self._emit()
            sys.stdout.flush()  # ending Spark takes a second more
        if self._parquet is not None:
            output.note(f"written to {self._parquet}")


@contextmanager
def _spark(inv: Invocation, settings: SparkSettings, parquet: str | None, *, overwrite: bool) -> Iterator[_Run]:
    """Start Spark, and end it; what the block emitted is shown before the end is waited for."""
    from kctl.spark.parquet import check_target
    from kctl.spark.session import SparkDriver

    if overwrite and parquet is None:
        raise UsageError("--overwrite needs --parquet DIR")
    if parquet is not None:
        check_target(parquet, overwrite=overwrite, embedded=settings.embedded)
    inv.target()  # a wrong context is told before anything starts
    with undone_when_terminated(), SparkDriver(settings, verbose=inv.verbose) as driver:
        with output.progress("starting Spark") as progress:
            run = _Run(
                driver,
                progress if sys.stderr.isatty() else None,
                inv.timeout_s(_JOB_TIMEOUT_S),
                parquet,
                overwrite,
            )
            yield run
        run.show()


def _settings(master: str, conf: list[str] | None, driver_memory: str) -> SparkSettings:
    from kctl.spark.settings import SparkSettings, checked, parse_conf

    return checked(SparkSettings(master=master, conf=parse_conf(conf), driver_memory=driver_memory))


def _topics(names: list[str] | None) -> list[str] | None:
    from kctl.topics.names import check_name

    return [check_name(name) for name in names] if names else None


# --- tables -------------------------------------------------------------------------------------------------------


def _retention_table(rows: Sequence[Any], by: RetentionBy) -> Table:
    columns = {
        RetentionBy.TOPIC: [Column("topic"), _number("partitions"), *_sizes("size_bytes"), _limit(), *_shares()],
        RetentionBy.PARTITION: [
            Column("topic"), _number("partition"), _number("leader"), _number("replicas"),
            *_sizes("size_bytes"), _limit(), *_shares(),
        ],
        RetentionBy.BROKER: [
            _number("broker"), _number("log_dirs"), _number("topics"), _number("replicas"),
            *_sizes("size_bytes", replicas=False), _share("disk_used", "DISK"), *_shares(),
        ],
        RetentionBy.LOG_DIR: [
            _number("broker"), Column("log_dir"), _number("replicas"),
            *_sizes("size_bytes", replicas=False),
            Column("usable_bytes", "FREE", show=_size, align="right"), _share("disk_used", "DISK"), *_shares(),
        ],
    }[by]  # fmt: skip
    return Table(columns, jsonable(rows), empty="nothing there")


def _number(key: str) -> Column:
    return Column(key, align="right")


def _sizes(key: str, *, replicas: bool = True) -> list[Column]:
    size = Column(key, "SIZE", show=_size, align="right")
    return [size, Column("replicas_bytes", "ALL REPLICAS", show=_size, align="right")] if replicas else [size]


def _limit() -> Column:
    return Column("retention_bytes", "RETENTION BYTES", show=_bytes_limit, align="right")


def _shares() -> list[Column]:
    return [
        _share("retention_bytes_used", "BYTES USED"),
        Column("oldest_age_ms", "OLDEST", show=_duration, align="right"),
        _share("retention_ms_used", "TIME USED"),
    ]


def _share(key: str, header: str) -> Column:
    return Column(
        key,
        header,
        show=_percent,
        align="right",
        style=lambda row: "yellow" if (row[key] or 0) >= 0.9 else None,
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}"


def _size(value: int) -> str:
    from kctl.units import format_size

    return format_size(value)


def _bytes_limit(value: int) -> str:
    return "none" if value < 0 else _size(value)


def _duration(value: int) -> str:
    from kctl.units import format_duration

    return format_duration(value)
