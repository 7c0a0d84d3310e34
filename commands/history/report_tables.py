"""A report as terminal tables. Sparklines replace the charts of the HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kctl.base.units import format_due, format_duration, format_size
from kctl.commands.history.lag_view import show_time_lag
from kctl.commands.history.retention_view import full_in, losses_table
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.sparkline import WIDTH, sparkline, state_line
from kctl.history.report.texts import gap_text, growth_text, passes_text, share_text

if TYPE_CHECKING:
    from kctl.history.report.model import Report

_MAX_GAPS = 5
_STATES = "; status over time: . OK, W WARN, E ERR, ? unknown, blank not read"
_WIDE_LOSSES = {"partition_count", "sole"}
_STYLES = {"ERR": "red", "STOP": "red", "STALL": "red", "REWIND": "red", "WARN": "yellow"}


def report_tables(report: Report, worst: int, *, wide: bool = False) -> list[Table]:
    """Return the tables of a report. wide: also columns beyond 80 characters.

    They are findings and the overview, then `worst` rows each of log dirs, losses, groups, partitions with problems and
    topics.
    """
    behind = [row for row in report.partitions if row.lag or row.lost or row.status not in {"OK", None}]
    return [
        _findings(report, worst),
        _overview(report),
        _log_dir_rows(report, worst, wide=wide),
        *([_losses(report, worst, wide=wide)] if report.losses else []),
        _rows("Consumer groups", _groups(wide), report.groups, worst, report.overview.group_count, _STATES),
        _rows("Partitions that are behind", _partitions(wide), behind, worst, len(behind)),
        _rows("Topics", _topics(wide), report.topics, worst, report.overview.topic_count),
    ]


def _log_dir_rows(report: Report, worst: int, *, wide: bool) -> Table:
    """Return the log dirs with their error (offline, or stale values) and when each is full."""
    table = _rows("Log dirs", _log_dirs(wide), report.log_dirs, worst, len(report.log_dirs))
    begin = jsonable(report.span.from_at)
    rows = [
        {**row, "error": row["error"] or _silence(row["silent_since"], begin), "full": full_in(row["now"])}
        for row in table.rows
    ]
    return replace(table, rows=rows)


def _silence(since: str | None, begin: str) -> str | None:
    if since is None:
        return None
    return f"no response since {'before ' if since == begin else ''}{since[11:19]}"


def _losses(report: Report, worst: int, *, wide: bool) -> Table:
    table = losses_table(report.losses[:worst])
    columns = [column for column in table.columns if wide or column.key not in _WIDE_LOSSES]
    return replace(table, columns=columns, title="Unread messages when a disk is full")


def _findings(report: Report, worst: int) -> Table:
    columns = [
        Column("severity", " ", style=lambda row: _STYLES[row["severity"]]),
        Column("name", "NEEDS ATTENTION"),
        Column("what", "PROBLEM"),
        Column("since", show=str),
        _until("due_ms", "DUE IN"),
    ]
    begin = _minute(jsonable(report.span.from_at))
    rows = [row | {"name": _subject(row), "since": _since(row, begin)} for row in jsonable(report.findings[:worst])]
    more = len(report.findings) - len(rows)
    title = f"First {len(rows)} of {len(report.findings)} findings" if more else ""
    return Table(columns, rows, title=title, empty="nothing needs attention")


def _since(row: Mapping[str, Any], begin: str) -> str | None:
    if row["before_span"]:
        return f"before {begin}"
    return None if row["since"] is None else _minute(row["since"])


def _minute(iso: str) -> str:
    """Return an ISO 8601 time without year and seconds."""
    return iso[5:16].replace("T", " ")


def _subject(row: Mapping[str, Any]) -> str:
    broker = "" if row["broker"] is None else f" on broker {row['broker']}"
    return f"{row['kind']} {row['name']}{broker}"


def _rows(
    title: str, columns: Sequence[Column], rows: Sequence[Any], worst: int, count: int, legend: str = ""
) -> Table:
    first = rows[:worst]
    more = f" (first {len(first)} of {count:,})" if len(first) < count else ""
    return Table(columns, [_with_time_lag(row) for row in jsonable(first)], title=title + more + legend)


def _with_time_lag(row: dict[str, Any]) -> dict[str, Any]:
    """Add the formatted time lag to rows of groups and partitions."""
    inner = row.get("now", row)
    if "time_lag_ms" in inner:
        inner["shown_time_lag"] = show_time_lag(inner["time_lag_ms"], inner["time_lag_at_least_ms"])
    return row


def _overview(report: Report) -> Table:
    span, totals = report.span, report.overview
    lines: list[tuple[str, str]] = [
        ("cluster", report.cluster_id or "-"),
        ("time", f"{span.from_at:%Y-%m-%d %H:%M:%S} to {span.to_at:%Y-%m-%d %H:%M:%S} UTC, {passes_text(span.passes)}"),
        *((("" if number else "incomplete"), text) for number, text in enumerate(_incomplete(report))),
        ("groups", _group_counts(report)),
        ("lag", _text(totals.lag, lambda v: f"{v:,} messages")),
        ("longest time lag", show_time_lag(totals.time_lag_ms, totals.time_lag_at_least_ms) or "-"),
        ("lost", _text(totals.lost, lambda v: f"{v:,} messages")),
        ("next loss in", _text(totals.next_loss_ms, format_due)),
        (
            "log dirs",
            (
                f"{totals.log_dir_count} on {totals.broker_count} brokers, {totals.offline_log_dirs} offline"
                f"{_silent(report)}"
            ),
        ),
        ("all replicas", format_size(totals.replicas_bytes)),
        ("growth", _text(totals.growth_bytes_per_hour, growth_text)),
        ("next full disk in", _text(totals.next_full_ms, format_due)),
    ]
    rows = [{"what": name, "value": value} for name, value in lines]
    return Table([Column("what", "OVERVIEW"), Column("value", " ")], rows)


def _group_counts(report: Report) -> str:
    totals = report.overview
    if "commits" in report.missing_tables:
        return "unknown: the store has no commits"
    return f"{totals.group_count}: {totals.groups_err} ERR, {totals.groups_warn} WARN, {totals.groups_ok} OK"


def _silent(report: Report) -> str:
    names = ", ".join(str(each.broker) for each in report.silent_brokers)
    return f"; no response from {'brokers' if len(report.silent_brokers) > 1 else 'broker'} {names}" if names else ""


def _incomplete(report: Report) -> list[str]:
    """Return a line for each reason why the report is incomplete."""
    span = report.span
    lines = []
    if span.passes == 1 and report.overview.groups_unknown:
        lines.append("a single pass gives no status, rates or growth")
    lines += [gap_text(gap) for gap in span.gaps[:_MAX_GAPS]]
    if len(span.gaps) > _MAX_GAPS:
        lines.append(f"and {len(span.gaps) - _MAX_GAPS:,} more gaps without passes")
    if span.missed:
        lines.append(f"{passes_text(span.missed)} skipped: the previous pass took too long")
    if span.incomplete:
        more = f", first of {len(span.failures)} failures:" if len(span.failures) > 1 else ":"
        lines += [f"{passes_text(span.incomplete)} incomplete{more}", *(f"- {text}" for text in span.failures[:1])]
    return lines or ["nothing"]


def _text(value: Any, show: Callable[[Any], str]) -> str:
    return "-" if value is None else show(value)


# --- columns --------------------------------------------------------------------------------------------------------


def _groups(wide: bool) -> list[Column]:
    return [
        Column("now.group", "GROUP"),
        Column("now.status", "STATUS", style=_status("now")),
        *([Column("now.worst_status", "WORST"), Column("now.state", "STATE")] if wide else []),
        _count("now.lag", "LAG"),
        _over_time("lag_over_time", "LAG OVER TIME", wide),
        Column("timeline", "STATUS OVER TIME", show=partial(_timeline, width=_width(wide))),
        _count("now.lost", "LOST"),
        _duration("now.shown_time_lag", "TIME LAG", str),
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
        _duration("shown_time_lag", "TIME LAG", str),
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
        _over_time("size_over_time", "SIZE OVER TIME", wide),
        Column("now.growth_bytes_per_hour", "GROWTH", show=growth_text, align="right"),
        _size("now.usable_bytes", "FREE"),
        Column("now.disk_used", "USED", show=share_text, align="right"),
        Column("full", "FULL IN", align="right"),
        Column("error", style=lambda _: "red"),
    ]


def _topics(wide: bool) -> list[Column]:
    return [
        Column("now.topic", "TOPIC"),
        *([_count("now.partition_count", "PARTITIONS")] if wide else []),
        _size("now.replicas_bytes", "ALL REPLICAS"),
        _over_time("size_over_time", "SIZE OVER TIME", wide),
        Column("now.growth_bytes_per_hour", "GROWTH", show=growth_text, align="right"),
        Column("now.retention_ms_used", "TIME USED", show=share_text, align="right"),
        Column("now.retention_bytes_used", "BYTES USED", show=share_text, align="right"),
        _size("now.ceiling_bytes", "GROWS TO"),
    ]


def _status(inside: str | None) -> Callable[[Mapping[str, Any]], str | None]:
    return lambda row: _STYLES.get((row if inside is None else row[inside])["status"] or "")


def _timeline(spans: Sequence[Mapping[str, Any]], width: int) -> str:
    return state_line([(span["count"], span["status"]) for span in spans], width)


def _over_time(key: str, title: str, wide: bool) -> Column:
    return Column(key, title, show=partial(sparkline, width=_width(wide)))


def _width(wide: bool) -> int:
    return WIDTH if wide else WIDTH // 2


def _count(key: str, title: str) -> Column:
    return Column(key, title, align="right")


def _duration(key: str, title: str, show: Callable[[Any], str] = format_duration) -> Column:
    return Column(key, title, show=show, align="right")


def _until(key: str, title: str) -> Column:
    return Column(key, title, show=format_due, align="right")


def _size(key: str, title: str) -> Column:
    return Column(key, title, show=format_size, align="right")
