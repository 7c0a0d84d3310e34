"""Tables of `kctl history lag` and `kctl spark lag`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kctl.base.units import format_due
from kctl.commands.history.options import show_duration
from kctl.commands.terminal import output
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.lag.gate import By, row_name

if TYPE_CHECKING:
    from kctl.history.lag.window import WindowRules
    from kctl.lag.selection import Names

_STYLES = {"WARN": "yellow", "ERR": "red", "STOP": "red", "STALL": "red", "REWIND": "red"}


def lag_tables(rows: Sequence[Any], by: By, *, wide: bool = False) -> list[Table]:
    """Return the rows as a table, without columns that are empty in every row.

    wide: also columns beyond 80 characters.
    """
    values = [_with_text(row) for row in jsonable(rows)]
    columns = [
        column
        for column in _columns(by)
        if (wide or column.key not in _WIDE) and (column.key in _ALWAYS or any(_has(row, column.key) for row in values))
    ]
    return [Table(columns, values, empty="no commits")]


def explanations(rows: Sequence[Any], rules: WindowRules) -> list[Table]:
    """Return one table per row that explains its values."""
    from kctl.history.lag.explain import explain

    columns = [Column("name", "FIGURE"), Column("text", "EXPLANATION")]
    return [
        Table(columns, [line._asdict() for line in explain(row, rules)], title=row_name(row))
        for row in rows
    ]  # fmt: skip


def require_match(groups: Names, topics: Names) -> None:
    """Raise NotFound if names or patterns match nothing. Call it for results without rows.

    Groups given by exact name are known to exist.
    """
    if not groups.everything and not groups.exact:
        raise groups.nothing("group")
    if not topics.everything:
        raise topics.nothing("topic")


def skipped_share_groups(names: Sequence[str], *, alarming: bool) -> list[str]:
    """Return a line for each requested share group that is missing; print a note for the others."""
    if not names:
        return []
    if alarming:
        return [f"share group {name} is skipped; show its lag with `kctl lag`" for name in names]
    some = ", ".join(names[:_MAX_NAMES]) + (f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else "")
    output.note(f"share groups are skipped; show their lag with `kctl lag`: {some}")
    return []


_MAX_NAMES = 5
_WIDE = frozenset({
    "committed_offset", "log_end_offset", "shown_before", "max_lag", "undecided", "control_records", "consumed_per_s",
    "produced_per_s", "deletion_ms", "last_commit", "client_id", "host",
})  # fmt: skip
_ALWAYS = frozenset({"group", "topic", "topic_count", "partition", "partition_count", "lag", "lost"})
# Columns hidden if all values are 0. A duration of 0 ms (loss_ms) is shown.
_COUNTS = frozenset({"undecided", "control_records", "not_committed", "unknown", "ahead"})


def _has(row: Mapping[str, Any], key: str) -> bool:
    value = row.get(key)
    return value is not None and (value != 0 or key not in _COUNTS)


def _with_text(row: dict[str, Any]) -> dict[str, Any]:
    """Add the formatted columns to a row.

    A lower bound is shown as ">4s". The standing replaces the state if it differs. The first lag and the worst status
    of a span are shown only if they differ from the last ones.
    """
    row["shown_time_lag"] = show_time_lag(row["time_lag_ms"], row["time_lag_at_least_ms"])
    standing = row.get("standing")
    row["shown_state"] = row["state"] if standing in {None, "active", "empty", "unknown"} else standing
    row["shown_before"] = row["lag_before"] if row["lag_before"] != row["lag"] else None
    row["shown_worst"] = row["worst_status"] if row["worst_status"] != row["status"] else None
    return row


def show_time_lag(ms: int | None, min_ms: int | None) -> str | None:
    """Return the time lag as text: "8m 46s", or ">4s" if only a lower bound is known."""
    if ms is not None:
        return show_duration(ms)
    return None if min_ms is None else f">{show_duration(min_ms)}"


def _columns(by: By) -> list[Column]:
    scope_columns = {
        By.PARTITION: [Column("topic", name=True), _right("partition", "PART")],
        By.TOPIC: [Column("topic", name=True), _right("partition_count", "PARTITIONS")],
        By.GROUP: [_right("topic_count", "TOPICS"), _right("partition_count", "PARTITIONS")],
    }[by]
    return [
        Column("group", name=True),
        *scope_columns,
        Column("shown_state", "STATE"),
        Column("status", style=lambda row: _STYLES.get(row["status"] or "")),
        Column("shown_worst", "WORST", style=lambda row: _STYLES.get(row["worst_status"] or "")),
        _right("committed_offset", "COMMITTED"),
        _right("log_end_offset", "END"),
        _right("lag"),
        _right("shown_before", "BEFORE"),
        _right("max_lag", "MAX"),
        Column("ahead", "BEYOND END", align="right", style=lambda row: "red" if row["ahead"] else None),
        Column("lost", align="right", style=lambda row: "red" if row["lost"] else None),
        _right("not_committed", "NO COMMIT"),
        Column("unknown", align="right", style=lambda row: "yellow" if row["unknown"] else None),
        _right("undecided"),
        _right("control_records", "CONTROL"),
        _right("shown_time_lag", "TIME LAG"),
        _rate("consumed_per_s", "READ/S"),
        _rate("produced_per_s", "WRITE/S"),
        _duration("catch_up_ms", "CAUGHT UP IN"),
        _duration("deletion_ms", "DELETED IN"),
        Column(
            "loss_ms", "LOSS IN", show=format_due, align="right",
            style=lambda row: "red" if row["loss_ms"] is not None and row["loss_ms"] < 3_600_000 else None,
        ),
        Column("last_commit", show=_time),
        Column("client_id", "CLIENT"),
        Column("host"),
    ]  # fmt: skip


def _right(key: str, header: str = "") -> Column:
    return Column(key, header, align="right")


def _duration(key: str, header: str) -> Column:
    return Column(key, header, show=format_due, align="right")


def _rate(key: str, header: str) -> Column:
    return Column(key, header, show=lambda value: f"{value:.3g}" if value < 1000 else f"{value:,.0f}", align="right")


def _time(text: str) -> str:
    """Format an ISO 8601 time in UTC as "2026-11-22 01:40:05"."""
    return f"{datetime.fromisoformat(text.replace('Z', '+00:00')):%Y-%m-%d %H:%M:%S}"
