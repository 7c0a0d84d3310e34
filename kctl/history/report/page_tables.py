"""The tables of the page as HTML: rows that need attention, and the healthy ones in a closed <details>.

The script adds sorting and filters (page/tables.js). It finds a row's values by `data-row`, their index in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kctl.base.text import counted
from kctl.history.report.attention import (
    group_needs_attention,
    log_dir_needs_attention,
    partition_needs_attention,
    topic_needs_attention,
)
from kctl.history.report.model import Report
from kctl.history.report.page_cells import PageColumn, cell_html, filled_by, silence
from kctl.history.report.page_columns import GROUPS, LOG_DIRS, LOSSES, PARTITIONS, TOPICS

Row = dict[str, Any]


class Section(NamedTuple):
    """A table of the page. healthy: title of the collapsed rows. above: HTML before the collapsed table."""

    label: str
    columns: Sequence[PageColumn]
    rows: Sequence[Row]
    attention: Sequence[bool]
    healthy: str = ""
    above: str = ""


def table_html(section: Section) -> str:
    """Return the table, or a note if it has no rows."""
    places = range(len(section.rows))
    visible = [place for place in places if section.attention[place]]
    collapsed = [place for place in places if not section.attention[place]]
    parts = [_rows_html(section, visible)] if visible else []
    if collapsed:
        body = section.above + _rows_html(section, collapsed)
        parts.append(f'<details class="healthy"><summary>{section.healthy}</summary>{body}</details>')
    return "\n".join(parts) or '<p class="dim">none</p>'


def _rows_html(section: Section, places: Iterable[int]) -> str:
    head = "".join(map(_title, section.columns))
    lines = "\n".join(_line(section.columns, section.rows[place], place) for place in places)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{section.label}"><table class="rows">'
        f'<caption class="unseen">{section.label}</caption><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _title(column: PageColumn) -> str:
    least = f' data-least="{column.least}"' if column.least else ""
    return f'<th scope="col"{_css(column)} data-key="{column.key}" data-kind="{column.kind}"{least}>{column.title}</th>'


def _css(column: PageColumn) -> str:
    return f' class="{column.css}"' if column.css else ""


def _line(columns: Sequence[PageColumn], row: Row, place: int) -> str:
    cells = "".join(
        f'<td class="{column.css}">{cell_html(column, row)}</td>'
        if column.css
        else f"<td>{cell_html(column, row)}</td>"
        for column in columns
    )
    return f'<tr data-row="{place}">{cells}</tr>'


# --- sections: `plain` is the report as in JSON -------------------------------------------------------------------


def log_dirs_html(report: Report, plain: Row) -> str:
    """Return the log dirs."""
    begin = plain["span"]["from_at"]
    rows = [_log_dir(row, begin) for row in plain["log_dirs"]]
    attention = _each(log_dir_needs_attention, report.log_dirs)
    return table_html(Section("log dirs", LOG_DIRS, rows, attention, _healthy(attention, "log dir")))


def _log_dir(row: Row, begin: str) -> Row:
    flat = _flat(row)
    # Unknown growth is not "never".
    grows_never = flat["disk_used"] is not None and flat["growth_bytes_per_hour"] is not None
    return flat | {
        "filled_by": filled_by(flat["causes"]),
        "error": flat["error"] if flat["error"] is not None else silence(flat["silent_since"], begin),
        "never": "full_ms" if grows_never else None,
    }


def losses_html(plain: Row) -> str:
    """Return the losses on full disks. All need attention."""
    rows = plain["losses"]
    return table_html(Section("losses", LOSSES, rows, [True] * len(rows)))


def groups_html(report: Report, plain: Row) -> str:
    """Return the groups. Deleted groups are collapsed and counted separately."""
    attention = _each(group_needs_attention, report.groups)
    deleted = sum(row.gone for row in report.groups)
    healthy = attention.count(False) - deleted
    counts = [counted(healthy, "healthy group")] if healthy else []
    counts += [f"{deleted:,} deleted" if healthy else counted(deleted, "deleted group")] if deleted else []
    lanes = '<div class="lanes"></div>\n'
    return table_html(Section("groups", GROUPS, _all_flat(plain["groups"]), attention, ", ".join(counts), lanes))


def partitions_html(report: Report, plain: Row) -> str:
    """Return the partitions."""
    attention = _each(partition_needs_attention, report.partitions)
    return table_html(
        Section("partitions", PARTITIONS, plain["partitions"], attention, _healthy(attention, "partition"))
    )


def topics_html(report: Report, plain: Row) -> str:
    """Return the topics."""
    attention = _each(topic_needs_attention, report.topics)
    return table_html(Section("topics", TOPICS, _all_flat(plain["topics"]), attention, _healthy(attention, "topic")))


def _healthy(attention: Sequence[bool], noun: str) -> str:
    return counted(attention.count(False), f"healthy {noun}")


def _each(needs_attention: Callable[[Any], bool], rows: Iterable[Any]) -> list[bool]:
    return [needs_attention(row) for row in rows]


def _all_flat(rows: Iterable[Row]) -> list[Row]:
    return [_flat(row) for row in rows]


def _flat(row: Row) -> Row:
    """Return a row with current values and series at one level."""
    return {**row["now"], **{key: value for key, value in row.items() if key != "now"}}
