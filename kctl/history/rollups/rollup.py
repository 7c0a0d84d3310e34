"""Rollups: passes over a cluster aggregated by hour, and hours aggregated by day. Pure.

Each column has a rule that combines the rows of shorter periods into a row of a longer period:

- key: identifies the row; rows with the same key are combined;
- last: the value of the latest row that has one; first: of the earliest row;
- peak, least: the maximum, the minimum;
- sum: the sum;
- mean: the average, weighted by the rows' `passes`;
- all: true if all rows are true.

A column without values is None. Rows may come in any order. Missing periods are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

GROUPS, TOPICS, LOG_DIRS = "groups", "topics", "log-dirs"
START, PASSES = "start_ms", "passes"

# Column → (rule, type). start_ms: start of the period (UTC). passes: number of passes that have the row. complete: all
# passes of the period were complete, and no file was damaged. lag, lost: sums over partitions. consumed, produced:
# messages since the last pass before the period. messages: between log start and log end.
_COMMON = {START: ("first", "int64"), PASSES: ("sum", "int64"), "complete": ("all", "bool")}
COLUMNS: dict[str, dict[str, tuple[str, str]]] = {
    GROUPS: {
        "group": ("key", "string"),
        "topic": ("key", "string"),
        **_COMMON,
        "partitions": ("last", "int64"),
        "lag": ("last", "int64"),
        "peak_lag": ("peak", "int64"),
        "mean_lag": ("mean", "double"),
        "lost": ("last", "int64"),
        "consumed": ("sum", "int64"),
        "produced": ("sum", "int64"),
    },
    TOPICS: {
        "topic": ("key", "string"),
        **_COMMON,
        "partitions": ("last", "int64"),
        "messages": ("last", "int64"),
        "produced": ("sum", "int64"),
        "replicas_bytes": ("last", "int64"),
        "peak_replicas_bytes": ("peak", "int64"),
    },
    LOG_DIRS: {
        "broker": ("key", "int64"),
        "log_dir": ("key", "string"),
        **_COMMON,
        "replicas_bytes": ("last", "int64"),
        "peak_replicas_bytes": ("peak", "int64"),
        "total_bytes": ("last", "int64"),
        "usable_bytes": ("last", "int64"),
        "least_usable_bytes": ("least", "int64"),
    },
}
TABLES = tuple(COLUMNS)
Row = Mapping[str, Any]
_AGGREGATES: dict[str, Callable[[Iterable[Any]], Any]] = {"peak": max, "least": min, "sum": sum, "all": all}


def key_columns(table: str) -> tuple[str, ...]:
    """Return the columns that identify a row of the table."""
    return tuple(name for name, (rule, _) in COLUMNS[table].items() if rule == "key")


def fold(table: str, rows: Iterable[Row], start_ms: int) -> list[dict[str, Any]]:
    """Combine rows of shorter periods into rows of the period starting at start_ms, one for each key, sorted."""
    keys = key_columns(table)
    by_key: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        by_key.setdefault(tuple(row[name] for name in keys), []).append(row)
    return [_fold_key(table, sorted(by_key[key], key=_start), start_ms) for key in sorted(by_key)]


def _start(row: Row) -> int:
    start: int = row[START]
    return start


def _fold_key(table: str, rows: Sequence[Row], start_ms: int) -> dict[str, Any]:
    """Combine the rows of one key. rows: sorted by time."""
    result: dict[str, Any] = {}
    for name, (rule, _) in COLUMNS[table].items():
        values = [(row[name], row[PASSES]) for row in rows if row[name] is not None]
        result[name] = _value(rule, values)
    result[START] = start_ms
    return result


def _value(rule: str, values: Sequence[tuple[Any, int]]) -> Any:
    if not values:
        return None
    if rule in {"key", "first"}:
        return values[0][0]
    if rule == "last":
        return values[-1][0]
    if rule == "mean":
        weight = sum(passes for _, passes in values)
        return sum(value * passes for value, passes in values) / weight if weight else None
    return _AGGREGATES[rule](value for value, _ in values)
