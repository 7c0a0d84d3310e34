"""What the commands of kctl spark share: their options, one run of Spark, and how sizes and durations are shown."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import undone_when_terminated
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import Table
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.base.deadline import Deadline
    from kctl.spark.session import SparkDriver
    from kctl.spark.settings import SparkSettings

JOB_TIMEOUT_S = 600.0
REQUEST_TIMEOUT_S = 30.0

Master = Annotated[str, typer.Option(metavar="URL", help="local, local[N], spark://HOST:PORT, yarn or k8s://….")]
Conf = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of Spark's; repeatable.")]
Memory = Annotated[str, typer.Option(metavar="SIZE", help="The driver's heap.")]
Parquet = Annotated[str | None, typer.Option(metavar="DIR", help="Also write the rows there, as Parquet.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the folder of --parquet.")]
_GLOBS = "repeatable; * and ? stand for what you like, and !NAME leaves out"
GroupGlobs = Annotated[list[str] | None, typer.Option("--group", help=f"Only groups of this name; {_GLOBS}.")]
TopicGlobs = Annotated[list[str] | None, typer.Option("--topic", help=f"Only topics of this name; {_GLOBS}.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="TIME", help="Use snapshots from this time on: ISO 8601, UTC if no zone is given; or -90m."
    ),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help="Use snapshots until this time, UTC if no zone is given (default: now)."),
]


def _store(text: str) -> Path:
    from kctl.history.snapshots.remote import place

    return place(text)


def store_folder(text: str) -> Path:
    from kctl.history.snapshots.remote import is_remote

    found = _store(text)
    if is_remote(found):
        raise UsageError(
            f"--store {text} is no folder, and this command writes into the store",
            hint="mount it; `kctl spark lag`, retention and report read stores over the network",
        )
    return found


_COLLECTED = "Snapshots that `kctl spark snapshot` has collected"
# Of those that only read; those that write need a folder.
_STORE = typer.Option(metavar="DIR", parser=_store, help=f"{_COLLECTED}: a folder, or s3a://…, hdfs://….")
Store = Annotated[Any, _STORE]  # a Path, or what stands for one: of a type that is Path, typer would make one
StoreIfAny = Annotated[Any | None, _STORE]
StoreFolder = Annotated[Path, typer.Option(metavar="DIR", parser=store_folder, help=f"{_COLLECTED}.")]


class Run:
    """A driver that is starting, and where its results go."""

    def __init__(
        self,
        driver: SparkDriver,
        progress: output.Progress | None,
        deadline: Deadline,
        parquet: str | None,
        overwrite: bool,
    ) -> None:
        self.driver = driver
        self._progress = progress
        self._deadline = deadline
        self._parquet = parquet
        self._overwrite = overwrite
        self._emit: Callable[[], None] | None = None

    def watched(self, message: str) -> Any:
        from kctl.spark.watching import watched

        return watched(self.driver, message, deadline=self._deadline, progress=self._progress)

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
def running(
    inv: Invocation, settings: SparkSettings, parquet: str | None, *, overwrite: bool, cluster: bool = True
) -> Iterator[Run]:
    """Start Spark, and end it; what the block emitted is shown before the end is waited for.

    cluster: a Kafka cluster will be asked.
    """
    from kctl.base.deadline import Deadline
    from kctl.spark.session import SparkDriver

    check_parquet(parquet, overwrite=overwrite, embedded=settings.embedded)
    # A wrong context is told before anything starts.
    secrets = inv.target().security.secrets if cluster else frozenset[str]()
    deadline = Deadline(inv.timeout_s(JOB_TIMEOUT_S))
    settings = dataclasses.replace(settings, start_timeout_s=deadline.seconds)
    with undone_when_terminated(), SparkDriver(settings, verbose=inv.verbose, withheld=secrets) as driver:
        with starting(inv) as progress:
            run = Run(driver, progress, deadline, parquet, overwrite)
            yield run
        run.show()


def check_parquet(parquet: str | None, *, overwrite: bool, embedded: bool) -> None:
    """Refuse a folder that must not be written to before anything starts. embedded: this machine writes it."""
    from kctl.spark.parquet import check_target

    if overwrite and parquet is None:
        raise UsageError("--overwrite needs --parquet DIR")
    if parquet is not None:
        check_target(parquet, overwrite=overwrite, embedded=embedded)


@contextmanager
def starting(inv: Invocation) -> Iterator[output.Progress | None]:
    """A bar on a terminal; None elsewhere, and beside Spark's own log (-v), which it would be torn by."""
    if inv.verbose or not sys.stderr.isatty():
        yield None
        return
    with output.progress("starting Spark") as progress:
        yield progress


def settings_of(master: str, conf: list[str] | None, driver_memory: str) -> SparkSettings:
    from kctl.spark.settings import SparkSettings, checked, parse_conf

    return checked(SparkSettings(master=master, conf=parse_conf(conf), driver_memory=driver_memory))


def span_of(now_ms: int, *, last: str | None, from_: str | None, to: str | None) -> tuple[int, int]:
    """from_ms and to_ms, of the passes with from_ms ≤ at_ms < to_ms: the last while, or from a time on.

    All count from now_ms. One of `last` and `from_` is given. Raises UsageError.
    """
    from kctl.base.moments import parse_moment
    from kctl.base.units import parse_duration_ms

    if last is not None:
        from_ms, to_ms = now_ms - parse_duration_ms(last), now_ms + 1
    else:
        assert from_ is not None
        from_ms = parse_moment(from_, now_ms=now_ms)
        to_ms = now_ms + 1 if to is None else parse_moment(to, now_ms=now_ms)
    check_span(from_ms, to_ms, now_ms, last=last)
    return max(from_ms, 0), to_ms


def check_span(from_ms: int, to_ms: int, now_ms: int, *, last: str | None = None) -> None:
    """Raise UsageError for a span that no pass can lie in. to_ms: the first moment after it; last: what --last says."""
    from kctl.base.units import parse_duration_ms

    if last is not None and parse_duration_ms(last) <= 0:
        raise UsageError(f"--last {last} is no time: it is more than 0", hint="write for example 15m, 2h or 7d")
    if from_ms > now_ms:
        raise UsageError(f"the time lies in the future: now it is {datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S} UTC")
    if from_ms >= to_ms - 1:
        raise UsageError("that is no time: it ends before it begins")


# --- texts ----------------------------------------------------------------------------------------------------------


def show_size(value: int) -> str:
    from kctl.base.units import format_size

    return format_size(value)


def show_bytes_limit(value: int) -> str:
    return "none" if value < 0 else show_size(value)


def show_duration(value: int) -> str:
    from kctl.base.units import format_duration

    return format_duration(value)
