"""The order of a report: what needs attention first, and the healthy rows of each table collapsed as a group.

The page is parsed without running its script, so this is also the page without JavaScript.
"""

from __future__ import annotations

import dataclasses
import re
from html import unescape

import pytest

from kctl.commands.history.report_tables import report_tables
from kctl.history.report.attention import log_dir_needs_attention
from kctl.history.report.html_page import html_page
from kctl.history.report.model import LogDirReport, Report, State
from kctl.history.report.verdict import WEEK_MS
from report_samples import FROM, group_report, log_dir_report, partition_status, sample_report, topic_report


def _report(**parts: object) -> Report:
    """Return a report with only these parts."""
    empty = dataclasses.replace(
        sample_report(), findings=[], groups=[], partitions=[], log_dirs=[], topics=[], losses=[], lacking=[]
    )
    return dataclasses.replace(empty, **parts)  # type: ignore[arg-type] # fields by name


def _table(text: str, name: str) -> tuple[list[str], list[str], str]:
    """Return the first cells of the visible rows and of the collapsed rows of a table, and the summary."""
    body = text[text.index(f'<div id="{name}-table">') :]
    body = body[: body.index("</section>")]
    visible, details, collapsed = body.partition("<details")
    assert not collapsed.startswith(" open")
    summary = re.search("<summary>(.*?)</summary>", details + collapsed)
    return _first_cells(visible), _first_cells(collapsed), summary[1] if summary else ""


def _first_cells(html: str) -> list[str]:
    return [unescape(cell) for cell in re.findall(r'<tr data-row="\d+"><td[^>]*>([^<]*)</td>', html)]


def _log_dir(log_dir: str, **values: object) -> LogDirReport:
    """Return a healthy log dir with other values."""
    row = log_dir_report(1, log_dir, 10**11)
    return dataclasses.replace(row, now=dataclasses.replace(row.now, **{"full_ms": None, **values}))  # type: ignore[arg-type] # fields by name


def test_findings_come_first_then_disks_then_lag() -> None:
    text = html_page(sample_report())
    assert re.findall(r'<section id="([\w-]+)"', text) == [
        "findings", "lacking", "overview", "log-dirs", "groups", "partitions", "topics",
    ]  # fmt: skip


def test_the_terminal_has_the_same_order() -> None:
    titles = [re.split("[;(]", table.title or "")[0].strip() for table in report_tables(sample_report(), 100)]
    assert titles[2:] == [
        "Log dirs", "Unread messages when a disk is full", "Consumer groups", "Partitions that are behind", "Topics",
    ]  # fmt: skip
    assert [table.columns[1].key for table in report_tables(sample_report(), 100)[:2]] == ["name", "value"]


def test_healthy_groups_are_collapsed_beside_one_that_needs_attention() -> None:
    healthy = [group_report(f"healthy-{i:02d}", 0) for i in range(24)]
    text = html_page(_report(groups=[group_report("slow", 9, State.WARN), *healthy]))
    visible, collapsed, summary = _table(text, "groups")
    assert visible == ["slow"]
    assert collapsed == [row.now.group for row in healthy]
    assert summary == "24 healthy groups"


def test_without_healthy_rows_nothing_is_collapsed() -> None:
    text = html_page(_report(groups=[group_report("slow", 9, State.WARN)]))
    assert _table(text, "groups") == (["slow"], [], "")


def test_only_healthy_rows_are_a_closed_group_too() -> None:
    assert _table(html_page(_report(groups=[group_report("a", 0)])), "groups") == ([], ["a"], "1 healthy group")


def test_a_group_of_unknown_status_is_not_called_healthy() -> None:
    assert _table(html_page(_report(groups=[group_report("new", 0, State.UNKNOWN)])), "groups") == (["new"], [], "")


@pytest.mark.parametrize(
    ("healthy", "deleted", "summary"),
    [(0, 1, "1 deleted group"), (0, 2, "2 deleted groups"), (3, 1, "3 healthy groups, 1 deleted")],
)
def test_deleted_groups_are_collapsed_and_counted_separately(healthy: int, deleted: int, summary: str) -> None:
    groups = [group_report(f"h{i}", 0) for i in range(healthy)]
    groups += [group_report(f"d{i}", 0, State.ERR, gone=True) for i in range(deleted)]
    visible, collapsed, found = _table(html_page(_report(groups=groups)), "groups")
    assert (visible, len(collapsed), found) == ([], healthy + deleted, summary)


def test_every_table_collapses_its_own_healthy_rows() -> None:
    stalled = topic_report("stalled", 1)
    stalled = dataclasses.replace(stalled, now=dataclasses.replace(stalled.now, cleaner_stands_still=True))
    text = html_page(
        _report(
            log_dirs=[_log_dir("/full", full_ms=WEEK_MS), _log_dir("/a"), _log_dir("/b")],
            groups=[group_report("g", 0)],
            partitions=[partition_status("p", "t", 0, 1, State.STALL), partition_status("q", "t", 0, 0)],
            topics=[topic_report("large", 9), stalled],
        )
    )
    assert _table(text, "log-dirs") == (["/full"], ["/a", "/b"], "2 healthy log dirs")
    assert _table(text, "groups") == ([], ["g"], "1 healthy group")
    assert _table(text, "partitions") == (["p"], ["q"], "1 healthy partition")
    assert _table(text, "topics") == (["stalled"], ["large"], "1 healthy topic")


def test_a_row_knows_its_place_in_the_report() -> None:
    """The script finds the values of a row by its place."""
    text = html_page(_report(groups=[group_report("ok", 0), group_report("slow", 9, State.ERR)]))
    assert '<tr data-row="1"><td class="name">slow' in text
    assert text.index('<tr data-row="1">') < text.index('<tr data-row="0"><td class="name">ok')


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (_log_dir("/ok"), False),
        (_log_dir("/full-later", full_ms=WEEK_MS + 1), False),
        (_log_dir("/full-soon", full_ms=WEEK_MS), True),
        (_log_dir("/nearly-full", disk_used=0.95), True),
        (_log_dir("/volume-unknown", disk_used=None), True),
        (dataclasses.replace(_log_dir("/offline"), error="KAFKA_STORAGE_ERROR"), True),
        (dataclasses.replace(_log_dir("/stale"), silent_since=FROM), True),
    ],
    ids=lambda value: value.now.log_dir if isinstance(value, LogDirReport) else "",
)
def test_log_dirs_that_need_attention(row: LogDirReport, *, expected: bool) -> None:
    assert log_dir_needs_attention(row) is expected


def test_findings_and_totals_need_no_script() -> None:
    report = sample_report()
    text = html_page(report)
    assert text.count('<li class="finding">') == len(report.findings)
    assert len(re.findall('<div class="tile( ERR| WARN)?">', text)) == 12
    assert "since 09-21 10:30 · " in text
    assert "in 1h, 09-21 12:00" in text
    assert "Nothing needs attention, but the data is incomplete." in html_page(_report())


def test_values_of_a_row() -> None:
    full = _log_dir("/a", full_after_ms=3_600_000, disk_used=0.95)
    never = _log_dir("/b", disk_used=0.95)
    unknown = _log_dir("/c", disk_used=None)
    text = html_page(_report(log_dirs=[full, never, unknown]))
    rows = re.findall(r"<tr data-row=.*", text)
    assert [re.findall(r"<td[^>]*>([^<]*)</td>", row)[2] for row in rows] == ["&gt; 1h", "never", "–"]
    assert [re.findall(r"<td[^>]*>([^<]*)</td>", row)[3] for row in rows] == ["95%", "95%", "–"]
