"""What roll-ups come to over a longer time: for each group, topic or log dir its course, and how it changed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kctl.history.rollups.rollup import COLUMNS, GROUPS, LOG_DIRS, PASSES, START, TOPICS, Row, key_columns
from kctl.lag.retention import at

# The figure that a course shows, for each table, and the one as it is at the end of a period.
FIGURE = {GROUPS: "peak_lag", TOPICS: "replicas_bytes", LOG_DIRS: "replicas_bytes"}
AT_END = {**FIGURE, GROUPS: "lag"}
_SUMS = ("consumed", "produced")


@dataclass(frozen=True, slots=True)
class Course:
    """One group's topic, topic, or log dir. first, last: at the end of the first and of the last period in which it is
    known; change: last − first. peak, values: of `figure`; values: one for each period from the first one of all to the
    last one of all, None: not known then. consumed, produced: in all periods."""

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
    """The columns that `courses` goes by."""
    sums = [name for name in _SUMS if name in COLUMNS[table]]
    return [*key_columns(table), START, *dict.fromkeys((FIGURE[table], AT_END[table])), *sums]


def courses(table: str, rows: Iterable[Row], period_ms: int) -> list[Course]:
    """The course of each key, those that changed most first. rows: of roll-ups of one length."""
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
    known = [value for value in ends if value is not None]
    return Course(
        key=key,
        figure=figure,
        periods=len(rows),
        first=known[0] if known else None,
        last=known[-1] if known else None,
        peak=max(peaks, default=None),
        change=known[-1] - known[0] if known else None,
        consumed=_sum(rows, "consumed"),
        produced=_sum(rows, "produced"),
        values=values,
    )


def _sum(rows: dict[int, Row], name: str) -> int | None:
    known = [row[name] for row in rows.values() if row.get(name) is not None]
    return sum(known) if known else None


def with_times(table: str, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows as a report has them: the period's begin as a time, keys first."""
    names = [name for name in COLUMNS[table] if name not in {START, PASSES, "complete"}]
    keys = key_columns(table)

    def shown(row: Row) -> dict[str, Any]:
        start: datetime | None = at(row[START])
        rest = {name: row[name] for name in names if name not in keys}
        own = {name: row[name] for name in keys}
        return {"start": start, **own, PASSES: row[PASSES], "complete": row["complete"], **rest}

    return [shown(row) for row in rows]
