"""Trends from rollups: the values of each group, topic or log dir over time, and their change. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kctl.history.rollups.rollup import COLUMNS, GROUPS, LOG_DIRS, PASSES, START, TOPICS, Row, key_columns
from kctl.lag.retention import at

# For each table: the column that a time series shows, and the column with the value at the end of a period.
FIGURE = {GROUPS: "peak_lag", TOPICS: "replicas_bytes", LOG_DIRS: "replicas_bytes"}
AT_END = {**FIGURE, GROUPS: "lag"}
_SUMS = ("consumed", "produced")


@dataclass(frozen=True, slots=True)
class Course:
    """A time series of a group's topic, a topic, or a log dir.

    first, last: values at the end of the first and the last period with a value; change: last − first. peak, values: of
    `figure`. values: one for each period between the first and the last period of all courses; None: unknown.
    consumed, produced: sums over all periods.
    """

    key: tuple[Any, ...]
    figure: str
    periods: int
    first: int | None
    last: int | None
    peak: int | None
    change: int | None
    consumed: int | None
    produced: int | None
    values: tuple[int | None, ...]


def course_columns(table: str) -> list[str]:
    """Return the columns that `courses` needs."""
    sums = [name for name in _SUMS if name in COLUMNS[table]]
    return [*key_columns(table), START, *dict.fromkeys((FIGURE[table], AT_END[table])), *sums]


def courses(table: str, rows: Iterable[Row], period_ms: int) -> list[Course]:
    """Return the time series of each key, largest change first. rows: rollups of periods of equal length."""
    keys = key_columns(table)
    by_key: dict[tuple[Any, ...], dict[int, Row]] = {}
    for row in rows:
        by_key.setdefault(tuple(row[name] for name in keys), {})[row[START]] = row
    starts = sorted({start for each in by_key.values() for start in each})
    if not starts:
        return []
    every = range(starts[0], starts[-1] + 1, period_ms)
    result = [_course(table, key, each, every) for key, each in by_key.items()]
    return sorted(result, key=lambda course: (-abs(course.change or 0), -(course.peak or 0), course.key))


def _course(table: str, key: tuple[Any, ...], rows: dict[int, Row], every: Sequence[int]) -> Course:
    figure = FIGURE[table]
    values = tuple(rows[start][figure] if start in rows else None for start in every)
    peaks = [value for value in values if value is not None]
    ends = (rows[start][AT_END[table]] for start in sorted(rows))
    end_values = [value for value in ends if value is not None]
    return Course(
        key=key,
        figure=figure,
        periods=len(rows),
        first=end_values[0] if end_values else None,
        last=end_values[-1] if end_values else None,
        peak=max(peaks, default=None),
        change=end_values[-1] - end_values[0] if end_values else None,
        consumed=_sum(rows, "consumed"),
        produced=_sum(rows, "produced"),
        values=values,
    )


def _sum(rows: dict[int, Row], name: str) -> int | None:
    values = [row[name] for row in rows.values() if row.get(name) is not None]
    return sum(values) if values else None


def with_times(table: str, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return rows in the form of a report: the start of the period as a time, keys first."""
    names = [name for name in COLUMNS[table] if name not in {START, PASSES, "complete"}]
    keys = key_columns(table)

    def with_time(row: Row) -> dict[str, Any]:
        start: datetime | None = at(row[START])
        key_values = {name: row[name] for name in keys}
        rest = {name: row[name] for name in names if name not in keys}
        return {"start": start, **key_values, PASSES: row[PASSES], "complete": row["complete"], **rest}

    return [with_time(row) for row in rows]
