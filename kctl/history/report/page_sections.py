"""The parts of the page around the tables as HTML: heading, findings, missing data, overview."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from kctl.base.units import format_due, format_duration, format_size
from kctl.history.report.model import FindingKind, Report, ReportFinding, ReportSpan
from kctl.history.report.page_cells import UNKNOWN, safe
from kctl.history.report.texts import gap_text, growth_text, passes_text
from kctl.history.report.verdict import DAY_MS, WEEK_MS

# The section with the row of a finding. The script filters the section's table by the name; for a broker, by
# _SILENT_FILTER.
_SECTIONS = {
    FindingKind.GROUP: "groups",
    FindingKind.LOG_DIR: "log-dirs",
    FindingKind.TOPIC: "topics",
    FindingKind.BROKER: "log-dirs",
}
_SILENT_FILTER = "no response"


def cluster_text(report: Report) -> str:
    """Return the name of the cluster as HTML."""
    return "cluster" if report.cluster_id is None else f"cluster {safe(report.cluster_id)}"


def span_text(span: ReportSpan) -> str:
    """Return the time of the report as HTML."""
    return f"{span.from_at:%Y-%m-%d %H:%M:%S} to {span.to_at:%Y-%m-%d %H:%M:%S} UTC, {passes_text(span.passes)}"


# --- findings -------------------------------------------------------------------------------------------------------


def findings_html(report: Report) -> str:
    """Return the findings as a list, or a sentence if there are none."""
    if report.findings:
        lines = "\n".join(_finding(each, report.span) for each in report.findings)
        return f'<ol id="findings-list">{lines}</ol>'
    is_partial = report.lacking or report.span.incomplete
    return f"<p>Nothing needs attention{', but the data is incomplete' if is_partial else ''}.</p>"


def _finding(finding: ReportFinding, span: ReportSpan) -> str:
    broker = "" if finding.broker is None else f" on broker {finding.broker}"
    words = _SILENT_FILTER if finding.kind is FindingKind.BROKER else finding.name
    section = _SECTIONS.get(finding.kind)
    link = f'href="#{section}" data-words="{safe(words)}"' if section else 'href="#lacking"'
    due = "" if finding.due_ms is None else f'<b class="due">{_due(finding.due_ms, span.to_at)}</b>'
    return (
        f'<li class="finding"><span class="status {finding.severity.value}">{finding.severity.value}</span>'
        f'<div><a class="link" {link}>{finding.kind.value} {safe(finding.name)}{broker}</a>'
        f'<span> {safe(finding.what)}</span><div class="dim">{_since(finding, span)}{safe(finding.advice)}</div></div>'
        f"{due}</li>"
    )


def _since(finding: ReportFinding, span: ReportSpan) -> str:
    if finding.since is not None:
        return f"since {_minute(finding.since)} · "
    return f"since before {_minute(span.from_at)} · " if finding.before_span else ""


def _due(due_ms: int, to_at: datetime) -> str:
    at = _minute(to_at + timedelta(milliseconds=due_ms))
    return "now" if due_ms <= 0 else f"in {format_duration(due_ms)}, {at}"


def _minute(at: datetime) -> str:
    return f"{at.astimezone(timezone.utc):%m-%d %H:%M}"


# --- missing data ---------------------------------------------------------------------------------------------------


def missing_html(report: Report) -> str:
    """Return a section on missing data; empty if nothing is missing."""
    span = report.span
    lines = [f"<li>{safe(text)}</li>" for text in _missing(report)]
    if span.incomplete:
        failures = "".join(f"<li>{safe(text)}</li>" for text in span.failures)
        more = f":<ul>{failures}</ul>" if failures else ""
        lines.append(f"<li>{passes_text(span.incomplete)} incomplete{more}</li>")
    hidden = "" if lines else " hidden"
    items = "\n".join(lines)
    return f'<section id="lacking" class="card lacking"{hidden}><h2>Missing data</h2><ul>{items}</ul></section>'


def _missing(report: Report) -> list[str]:
    span = report.span
    messages = []
    if span.passes == 1 and report.overview.groups_unknown:
        messages.append("a single pass gives no status, rates or growth")
    if span.missed:
        messages.append(f"{passes_text(span.missed)} skipped: the previous pass took too long")
    messages += report.lacking
    if "commits" in report.missing_tables:
        messages.append("the store has no commits: groups are unknown")
    return messages + [gap_text(gap) for gap in span.gaps]


# --- overview -------------------------------------------------------------------------------------------------------


def overview_html(report: Report) -> str:
    """Return the totals as tiles."""
    totals, silent = report.overview, len(report.silent_brokers)

    def groups(count: int) -> str:
        return UNKNOWN if "commits" in report.missing_tables else f"{count:,}"

    lost = any(not row.gone and row.now.lost and row.now.status != "OK" for row in report.groups)
    return "\n".join(
        [
            _tile("log dirs offline, of " + f"{totals.log_dir_count:,}", f"{totals.offline_log_dirs:,}",
                  "ERR" if totals.offline_log_dirs else ""),
            _tile("next full disk in", _or_unknown(totals.next_full_ms, format_due), _urgency(totals.next_full_ms)),
            _tile(f"groups in ERR, of {groups(totals.group_count)}", groups(totals.groups_err),
                  "ERR" if totals.groups_err else ""),
            _tile("groups in WARN", groups(totals.groups_warn), "WARN" if totals.groups_warn else ""),
            _tile("next loss in", _or_unknown(totals.next_loss_ms, format_due), _urgency(totals.next_loss_ms)),
            _tile("lost, messages", _or_unknown(totals.lost, _count), "ERR" if lost else ""),
            _tile("lag, messages", _or_unknown(totals.lag, _count)),
            _tile("longest time lag", _time_lag(report)),
            _tile("bytes of all replicas", format_size(totals.replicas_bytes)),
            _tile("growth", _or_unknown(totals.growth_bytes_per_hour, growth_text)),
            _tile("topics", _count(totals.topic_count)),
            _tile(f"brokers, {silent:,} not responding" if silent else "brokers", _count(totals.broker_count),
                  "ERR" if silent else ""),
        ]
    )  # fmt: skip


def _tile(title: str, value: str, css: str = "") -> str:
    return f'<div class="{f"tile {css}".strip()}"><b>{value}</b><span>{title}</span></div>'


def _count(count: int) -> str:
    return f"{count:,}"


def _or_unknown(value: Any, show: Callable[[Any], str]) -> str:
    return UNKNOWN if value is None else show(value)


def _urgency(due_ms: int | None) -> str:
    if due_ms is None or due_ms > WEEK_MS:
        return ""
    return "ERR" if due_ms <= DAY_MS else "WARN"


def _time_lag(report: Report) -> str:
    totals = report.overview
    if totals.time_lag_at_least_ms is None:
        return UNKNOWN
    return f"{'&gt;' if totals.time_lag_ms is None else ''}{format_duration(totals.time_lag_at_least_ms)}"


def limited_text(prefix: str, shown: int, count: int) -> str:
    """Return how many of all rows a limited table shows; empty if it shows all."""
    return f"{prefix} {shown:,} of {count:,}." if shown < count else ""
