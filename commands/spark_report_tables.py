"""A report as terminal tables: what the HTML page shows, with sparklines for charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kctl.commands.output import Column, Table, jsonable
from kctl.commands.spark_retention_view import losses_table
from kctl.commands.sparkline import WIDTH, sparkline, state_line
from kctl.text import counted
from kctl.units import format_duration, format_size

if TYPE_CHECKING:
    from kctl.report.model import Report, Span

_STYLES = {"ERR": "red", "STOP": "red", "STALL": "red", "REWIND": "red", "WARN": "yellow"}


def report_tables(report: Report, worst: int, *, wide: bool = False) -> list[Table]:
    """What needs a person and the overview, then `worst` rows each of groups, partitions that are not well, log dirs,
    topics and losses. wide: also what 80 columns do not hold."""
    behind = [row for row in report.partitions if row.lag or row.lost or row.status not in {"OK", None}]
    tables = [
        _findings(report, worst),
        _overview(report),
        _rows("Consumer groups", _groups(wide), report.groups, worst, report.overview.groups),
        _rows("Partitions that are behind", _partitions(wide), behind, worst, len(behind)),
        _rows("Log dirs", _log_dirs(wide), report.log_dirs, worst, len(report.log_dirs)),
        _rows("Topics", _topics(wide), report.topics, worst, report.overview.topics),
    ]
    if report.losses:
        tables.append(replace(losses_table(report.losses[:worst]), title="Unread when a disk is full"))
    return tables


def _findings(report: Report, worst: int) -> Table:
    columns = [
        Column("severity", " ", style=lambda row: _STYLES[row["severity"]]),
        Column("name", "WHAT NEEDS YOU"),
        Column("what", "IS THE MATTER"),
        Column("since", show=lambda iso: iso[5:16].replace("T", " ")),
        _until("due_ms", "DUE IN"),
    ]
    rows = [row | {"name": _named(row)} for row in jsonable(report.findings[:worst])]
    more = len(report.findings) - len(rows)
    title = f"The first {len(rows)} of {len(report.findings)} that need you" if more else ""
    return Table(columns, rows, title=title, empty="nothing that was read needs you")


def _named(row: Mapping[str, Any]) -> str:
    broker = "" if row["broker"] is None else f" of broker {row['broker']}"
    return f"{row['kind']} {row['name']}{broker}"


def _rows(title: str, columns: Sequence[Column], rows: Sequence[Any], worst: int, count: int) -> Table:
    shown = rows[:worst]
    more = f" (the first {len(shown)} of {count:,})" if len(shown) < count else ""
    return Table(columns, jsonable(shown), title=title + more)


def _overview(report: Report) -> Table:
    span, totals = report.span, report.overview
    lines = [
        ("cluster", report.cluster_id or "-"),
        ("time", f"{span.from_at:%Y-%m-%d %H:%M:%S} to {span.to_at:%Y-%m-%d %H:%M:%S} UTC, {_passes(span.passes)}"),
        ("lacking", _lacking(span, totals.groups_unknown)),
        ("groups", f"{totals.groups}: {totals.groups_err} ERR, {totals.groups_warn} WARN, {totals.groups_ok} OK"),
        ("lag", _text(totals.lag, lambda v: f"{v:,} messages")),
        ("longest time lag", _text(totals.time_lag_ms, format_duration)),
        ("lost", _text(totals.lost, lambda v: f"{v:,} messages")),
        ("next loss in", _text(totals.next_loss_ms, _eta)),
        ("log dirs", f"{totals.log_dirs} on {totals.brokers} brokers, {totals.offline_log_dirs} offline"),
        ("all replicas", format_size(totals.replicas_bytes)),
        ("growth", _text(totals.growth_bytes_per_hour, _growth)),
        ("a disk is full in", _text(totals.next_full_ms, _eta)),
    ]
    rows = [{"what": name, "value": value} for name, value in lines]
    return Table([Column("what", "OVERVIEW"), Column("value", " ")], rows)


def _lacking(span: Span, unknown: int) -> str:
    parts = []
    if span.incomplete:
        parts.append(": ".join([f"{_passes(span.incomplete)} could not read all", *span.failures[:1]]))
    if span.passes == 1 and unknown:
        parts.append("one pass alone tells no status, no rates and no growth")
    if span.missed:
        parts.append(f"{_passes(span.missed)} left out")
    return ", ".join(parts) or "nothing"


def _passes(count: int) -> str:
    return counted(count, "pass", "passes")


def _text(value: Any, show: Callable[[Any], str]) -> str:
    return "-" if value is None else show(value)


# --- columns --------------------------------------------------------------------------------------------------------


def _groups(wide: bool) -> list[Column]:
    return [
        Column("now.group", "GROUP"),
        Column("now.status", "STATUS", style=_status("now")),
        *([Column("now.worst_status", "WORST"), Column("now.state", "STATE")] if wide else []),
        _count("now.lag", "LAG"),
        _course("lag_over_time", "LAG OVER TIME", wide),
        Column("timeline", "STATUS OVER TIME", show=partial(_timeline, width=_width(wide))),
        _count("now.lost", "LOST"),
        _duration("now.time_lag_at_least_ms", "TIME LAG"),
        _duration("now.catch_up_ms", "CATCHES UP IN"),
        _until("now.loss_ms", "LOSES IN"),
    ]


def _partitions(wide: bool) -> list[Column]:
    return [
        Column("group"),
        Column("topic"),
        _count("partition", "PART"),
        Column("status", style=_status(None)),
        *([Column("standing")] if wide else []),
        _count("lag", "LAG"),
        _count("lost", "LOST"),
        _duration("time_lag_at_least_ms", "TIME LAG"),
        _duration("catch_up_ms", "CATCHES UP IN"),
        *([_until("deletion_ms", "DELETED IN")] if wide else []),
        _until("loss_ms", "LOSES IN"),
        *([Column("client_id", "CLIENT")] if wide else []),
    ]


def _log_dirs(wide: bool) -> list[Column]:
    return [
        _count("now.broker", "BROKER"),
        Column("now.log_dir", "LOG DIR"),
        _size("now.size_bytes", "SIZE"),
        _course("size_over_time", "SIZE OVER TIME", wide),
        Column("now.growth_bytes_per_hour", "GROWTH", show=_growth, align="right"),
        _size("now.usable_bytes", "FREE"),
        Column("now.disk_used", "USED", show=_percent, align="right"),
        _until("now.full_ms", "FULL IN"),
        Column("error", style=lambda _: "red"),
    ]


def _topics(wide: bool) -> list[Column]:
    return [
        Column("now.topic", "TOPIC"),
        *([_count("now.partitions", "PARTITIONS")] if wide else []),
        _size("now.replicas_bytes", "ALL REPLICAS"),
        _course("size_over_time", "SIZE OVER TIME", wide),
        Column("now.growth_bytes_per_hour", "GROWTH", show=_growth, align="right"),
        Column("now.retention_ms_used", "TIME USED", show=_percent, align="right"),
        Column("now.retention_bytes_used", "BYTES USED", show=_percent, align="right"),
        _size("now.ceiling_bytes", "GROWS TO"),
    ]


def _status(inside: str | None) -> Callable[[Mapping[str, Any]], str | None]:
    return lambda row: _STYLES.get((row if inside is None else row[inside])["status"] or "")


def _timeline(spans: Sequence[Mapping[str, Any]], width: int) -> str:
    return state_line([(span["count"], span["status"]) for span in spans], width)


def _course(key: str, title: str, wide: bool) -> Column:
    return Column(key, title, show=partial(sparkline, width=_width(wide)))


def _width(wide: bool) -> int:
    return WIDTH if wide else WIDTH // 2


def _count(key: str, title: str) -> Column:
    return Column(key, title, align="right")


def _duration(key: str, title: str) -> Column:
    return Column(key, title, show=format_duration, align="right")


def _until(key: str, title: str) -> Column:
    return Column(key, title, show=_eta, align="right")


def _eta(duration_ms: int) -> str:
    return "now" if duration_ms <= 0 else format_duration(duration_ms)


def _size(key: str, title: str) -> Column:
    return Column(key, title, show=format_size, align="right")


def _growth(per_hour: float) -> str:
    return f"{'+' if per_hour > 0 else ''}{format_size(round(per_hour))}/h"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}"
