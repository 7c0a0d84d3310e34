"""kctl spark trends: weeks and months of lag and of bytes, from hourly and daily roll-ups beside the snapshots."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.group.choice import MATCH
from kctl.commands.history.lag_view import require_match
from kctl.commands.spark.run import (
    Conf,
    GroupGlobs,
    Memory,
    Overwrite,
    Parquet,
    StoreFolder,
    TopicGlobs,
    check_parquet,
    running,
    settings_of,
    show_size,
)
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import undone_when_terminated
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table
from kctl.commands.terminal.sparkline import sparkline
from kctl.commands.terminal.views import incomplete
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.history.rollups.trends import Course
    from kctl.history.snapshots.store import Store
    from kctl.lag.selection import Names
    from kctl.spark.rollup_job import CaughtUp

_HOUR_MS = 3_600_000
_MOST_HOURLY_MS = 7 * 24 * _HOUR_MS


class Of(str, Enum):
    """What a trend is of."""

    GROUPS = "groups"
    TOPICS = "topics"
    LOG_DIRS = "log-dirs"


class Every(str, Enum):
    """How long a period is."""

    HOUR = "hour"
    DAY = "day"


def trends(
    ctx: typer.Context,
    store: StoreFolder,
    of: Annotated[Of, typer.Option(help="What a trend is of.")] = Of.GROUPS,
    every: Annotated[
        Every | None, typer.Option(help="How long a period is.  [default: hour, and day beyond 7d]")
    ] = None,
    last: Annotated[str, typer.Option(metavar="DURATION", help="So far back.")] = "7d",
    group: GroupGlobs = None,
    match: Annotated[list[str] | None, MATCH] = None,
    topic: TopicGlobs = None,
    top: Annotated[int | None, typer.Option(min=1, help="Show so many, those that changed most.")] = None,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Make missing roll-ups with Spark: local[N], spark://HOST:PORT, …"),
    ] = None,
    conf: Conf = None,
    driver_memory: Memory = "1g",
    parquet: Parquet = None,
    overwrite: Overwrite = False,
) -> None:
    """Show how lag, topics or disks changed over weeks and months, from roll-ups that are kept beside the snapshots.

    Each hour of snapshots that has ended is rolled up once, and each day; roll-ups stay when snapshots expire. A table
    has a line for each group's topic, topic or log dir; the other formats have a row for each period.

    Example: kctl spark trends --store ./snapshots --of groups --every day --last 30d
    """
    from kctl.base.units import parse_duration_ms
    from kctl.history.snapshots.store import open_store
    from kctl.lag.selection import names_of
    from kctl.spark.settings import need_packages

    inv = invocation(ctx)
    if (group or match) and of is not Of.GROUPS:
        raise UsageError(f"{'--group' if group else '--match'} does not apply to {of.value}")
    if topic and of is Of.LOG_DIRS:
        raise UsageError("--topic has no meaning for log dirs: a roll-up has no topics there")
    span_ms = parse_duration_ms(last)
    if span_ms <= 0:
        raise UsageError("--last is more than 0")
    if every is None:
        every = Every.HOUR if span_ms <= _MOST_HOURLY_MS else Every.DAY
    check_parquet(parquet, overwrite=overwrite, embedded=True)
    need_packages()
    found = open_store(store)
    made = _catch_up(inv, found, master, conf, driver_memory)
    # A table needs few columns of what can be a million rows.
    whole = parquet is not None or inv.output not in output.FOR_PEOPLE
    groups, topics = names_of(group, match), names_of(topic)
    rows, errors = _rows(found, of, every, span_ms, groups, topics, whole=whole)
    _emit(inv, of, every, rows, top, parquet)
    if made.hours:
        days = f" and {counted(made.days, 'day')}" if made.days else ""
        were = "was" if made.hours == 1 and not made.days else "were"
        output.note(f"{counted(made.hours, 'hour')}{days} {were} rolled up")
    failures = [*made.errors, *errors]
    if failures:
        raise incomplete(failures)
    if not rows:
        require_match(groups, topics)


def _catch_up(
    inv: Invocation, store: Store, master: str | None, conf: list[str] | None, driver_memory: str
) -> CaughtUp:
    """Make what is missing: here, or with Spark."""
    from kctl.spark.rollup_job import catch_up, missing_hours

    if master is None or not missing_hours(store):
        if conf:
            raise UsageError("--conf is for Spark: it needs --master")
        with undone_when_terminated(), output.progress("Rolling up") as progress:
            return catch_up(store, progress=lambda done, total: progress.update("Rolling up", done, total))
    settings = settings_of(master, conf, driver_memory)
    with running(inv, settings, None, overwrite=False, cluster=False) as run:
        spark = run.driver.session()
        with run.watched("rolling up"):
            return catch_up(store, spark=spark, parallelism=settings.parallelism)


def _rows(
    store: Store, of: Of, every: Every, span_ms: int, groups: Names, topics: Names, *, whole: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    from kctl.history.rollups.trends import course_columns
    from kctl.history.snapshots.rollup_files import days_done, hours_done, rows_of

    days = every is Every.DAY
    starts = days_done(store) if days else {hour.start_ms for hour in hours_done(store)}
    end_ms = max(starts, default=time.time_ns() // 1_000_000) + 1

    def chosen(row: dict[str, Any]) -> bool:
        return ("group" not in row or row["group"] in groups) and ("topic" not in row or row["topic"] in topics)

    columns = None if whole else course_columns(of.value)
    span = (max(end_ms - span_ms, 0), end_ms)
    rows, damaged = rows_of(store, of.value, *span, days=days, chosen=chosen, columns=columns)
    return rows, [str(each) for each in damaged]


def _emit(
    inv: Invocation, of: Of, every: Every, rows: Sequence[dict[str, Any]], top: int | None, parquet: str | None
) -> None:
    from kctl.history.rollups.trends import courses, with_times

    period_ms = _HOUR_MS * (24 if every is Every.DAY else 1)
    found = courses(of.value, rows, period_ms)
    shown = found if top is None else found[:top]
    if top is not None:
        keys = {course.key for course in shown}
        names = _key_names(of)
        rows = [row for row in rows if tuple(row[name] for name in names) in keys]
    told = rows if inv.output in output.FOR_PEOPLE else with_times(of.value, rows)
    inv.emit(told, lambda: [_table(of, shown)])
    if parquet is not None:
        from kctl.history.snapshots.rollup_files import table_of
        from kctl.spark.parquet import write_table

        write_table(table_of(of.value, rows), parquet)
        output.note(f"written to {parquet}")
    if len(shown) < len(found):
        output.note(f"{len(shown)} of {len(found)} are shown, those that changed most")


def _key_names(of: Of) -> tuple[str, ...]:
    from kctl.history.rollups.rollup import key_columns

    return key_columns(of.value)


def _table(of: Of, found: Sequence[Course]) -> Table:
    show = (lambda value: f"{value:,}") if of is Of.GROUPS else show_size
    change = (
        (lambda value: f"{value:+,}")
        if of is Of.GROUPS
        else (lambda value: f"{'+' if value > 0 else ''}{show_size(value)}")
    )
    names = _key_names(of)
    rows = [
        dict(zip(names, course.key, strict=True))
        | {
            "course": sparkline(course.values),
            "first": course.first,
            "last": course.last,
            "peak": course.peak,
            "change": course.change,
            "consumed": course.consumed,
            "produced": course.produced,
        }
        for course in found
    ]
    figures = [Column(name, show=show, align="right") for name in ("first", "last", "peak")]
    moved = [
        Column(name, show=lambda value: f"{value:,}", align="right")
        for name in ("consumed", "produced")
        if any(row[name] is not None for row in rows)
    ]
    title = "PEAK LAG" if of is Of.GROUPS else "BYTES"
    columns = [
        *(Column(name) for name in names), Column("course", title), *figures,
        Column("change", show=change, align="right"), *moved,
    ]  # fmt: skip
    return Table(columns, rows, empty="no hour has ended since the first snapshot")
