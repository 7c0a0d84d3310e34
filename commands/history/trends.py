"""kctl history trends: weeks and months of lag and sizes, from the hourly and daily rollups of a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.group.choice import MATCH
from kctl.commands.history.engine import OwnProcesses, ParquetFolder, ReportEngine, lines_every_s, shown
from kctl.commands.history.lag_view import require_match
from kctl.commands.history.options import GroupGlobs, Overwrite, Parquet, StoreFolder, TopicGlobs, show_size
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.output import Column, Table
from kctl.commands.terminal.sparkline import sparkline
from kctl.commands.terminal.views import incomplete
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.history.rollups.catch_up import CaughtUp
    from kctl.history.rollups.trends import Course
    from kctl.history.snapshots.store import Store
    from kctl.lag.selection import Names

_HOUR_MS = 3_600_000
_MAX_HOURLY_MS = 7 * 24 * _HOUR_MS


class Of(str, Enum):
    """Subject of a trend."""

    GROUPS = "groups"
    TOPICS = "topics"
    LOG_DIRS = "log-dirs"


class Every(str, Enum):
    """Length of a period."""

    HOUR = "hour"
    DAY = "day"


@dataclass(frozen=True)
class TrendsOptions:
    """Options of `kctl history trends` and `kctl spark trends`."""

    store: StoreFolder
    of: Annotated[Of, typer.Option(help="Subject of the trends.")] = Of.GROUPS
    every: Annotated[Every | None, typer.Option(help="Period length (default: hour; day if --last exceeds 7d).")] = None
    last: Annotated[str, typer.Option(metavar="DURATION", help="How far back to go.")] = "7d"
    group: GroupGlobs = None
    match: Annotated[list[str] | None, MATCH] = None
    topic: TopicGlobs = None
    top: Annotated[int | None, typer.Option(min=1, help="Show only this many rows, largest change first.")] = None
    parquet: Parquet = None
    overwrite: Overwrite = False


@takes_options(TrendsOptions)
def trends(ctx: typer.Context, options: TrendsOptions) -> None:
    """Show trends of lag, topics or disks over weeks and months.

    Each hour and each day is rolled up once it has ended. Roll-ups are kept when snapshots expire. A table has one row
    per group and topic, per topic, or per log dir; other formats have one row per period.

    # Show the daily lag of groups over 30 days
    kctl history trends --store ./snapshots --of groups --every day --last 30d
    """
    report_trends(invocation(ctx), options, OwnProcesses)


def report_trends(inv: Invocation, options: TrendsOptions, engine: Callable[[], ReportEngine]) -> None:
    """Run `kctl history trends` or `kctl spark trends`. engine: creates missing rollups."""
    from kctl.base.units import parse_duration_ms
    from kctl.history.packages import need_packages
    from kctl.lag.selection import names_of

    of, every = options.of, options.every
    if (options.group or options.match) and of is not Of.GROUPS:
        raise UsageError(f"{'--group' if options.group else '--match'} does not apply to {of.value}")
    if options.topic and of is Of.LOG_DIRS:
        raise UsageError("--topic does not apply to log-dirs: their roll-ups have no topics")
    span_ms = parse_duration_ms(options.last)
    if span_ms <= 0:
        raise UsageError("--last must be greater than 0")
    if every is None:
        every = Every.HOUR if span_ms <= _MAX_HOURLY_MS else Every.DAY
    parquet = ParquetFolder(options.parquet, options.overwrite)
    parquet.check()
    need_packages()
    from kctl.history.snapshots.store import open_store

    store = open_store(options.store)
    rollups = _catch_up(inv, store, engine)
    # Rows can number a million; a table needs only a few columns.
    whole = parquet.where is not None or inv.output not in output.FOR_PEOPLE
    groups, topics = names_of(options.group, options.match), names_of(options.topic)
    rows, errors = _rows(store, of, every, span_ms, groups, topics, whole=whole)
    _emit(inv, of, every, rows, options.top, parquet)
    if rollups.hours:
        days = f" and {counted(rollups.days, 'day')}" if rollups.days else ""
        were = "was" if rollups.hours == 1 and not rollups.days else "were"
        output.note(f"{counted(rollups.hours, 'hour')}{days} {were} rolled up")
    failures = [*rollups.errors, *errors]
    if failures:
        raise incomplete(failures)
    if not rows:
        require_match(groups, topics)


def _catch_up(inv: Invocation, store: Store, engine: Callable[[], ReportEngine]) -> CaughtUp:
    """Create missing rollups. The engine is started only if hours are missing."""
    from kctl.history.rollups.catch_up import catch_up, missing_hours

    runner = engine() if missing_hours(store) else OwnProcesses()
    with runner.running(inv) as run, run.watched("rolling up"):
        return catch_up(store, make_hours=run.hours())


def _rows(
    store: Store, of: Of, every: Every, span_ms: int, groups: Names, topics: Names, *, whole: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    from kctl.history.rollups.trends import course_columns
    from kctl.history.snapshots.read_progress import observed
    from kctl.history.snapshots.rollup_files import days_done, hours_done, rows_of

    days = every is Every.DAY
    starts = days_done(store) if days else {hour.start_ms for hour in hours_done(store)}
    end_ms = max(starts, default=time.time_ns() // 1_000_000) + 1

    def chosen(row: dict[str, Any]) -> bool:
        return ("group" not in row or row["group"] in groups) and ("topic" not in row or row["topic"] in topics)

    columns = None if whole else course_columns(of.value)
    span = (max(end_ms - span_ms, 0), end_ms)
    with output.progress("reading rollups", lines_every_s=lines_every_s()) as progress, observed(shown(progress)):
        rows, damaged = rows_of(store, of.value, *span, days=days, chosen=chosen, columns=columns)
    return rows, [str(each) for each in damaged]


def _emit(
    inv: Invocation, of: Of, every: Every, rows: Sequence[dict[str, Any]], top: int | None, parquet: ParquetFolder
) -> None:
    from kctl.history.rollups.trends import courses, with_times

    period_ms = _HOUR_MS * (24 if every is Every.DAY else 1)
    all_courses = courses(of.value, rows, period_ms)
    selected = all_courses if top is None else all_courses[:top]
    if top is not None:
        keys = {course.key for course in selected}
        names = _key_names(of)
        rows = [row for row in rows if tuple(row[name] for name in names) in keys]
    output_rows = rows if inv.output in output.FOR_PEOPLE else with_times(of.value, rows)
    inv.emit(output_rows, lambda: [_table(of, selected)])
    if parquet.where is not None:
        from kctl.history.parquet import write_table
        from kctl.history.snapshots.rollup_files import table_of

        write_table(table_of(of.value, rows), parquet.where)
        output.note(f"written to {parquet.where}")
    if len(selected) < len(all_courses):
        output.note(f"showing {len(selected)} of {len(all_courses)}, largest change first")


def _key_names(of: Of) -> tuple[str, ...]:
    from kctl.history.rollups.rollup import key_columns

    return key_columns(of.value)


def _table(of: Of, selected: Sequence[Course]) -> Table:
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
        for course in selected
    ]
    figures = [Column(name, show=show, align="right") for name in ("first", "last", "peak")]
    counts = [
        Column(name, show=lambda value: f"{value:,}", align="right")
        for name in ("consumed", "produced")
        if any(row[name] is not None for row in rows)
    ]
    title = "PEAK LAG" if of is Of.GROUPS else "BYTES"
    columns = [
        *(Column(name) for name in names), Column("course", title), *figures,
        Column("change", show=change, align="right"), *counts,
    ]  # fmt: skip
    return Table(columns, rows, empty="no full hour of snapshots yet")
