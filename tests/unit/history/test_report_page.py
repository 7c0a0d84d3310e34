"""The HTML page of a report: what is in it, that it needs nothing else, and that no name breaks out of it."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from html import escape
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import pytest

from kctl.base.text import printable
from kctl.commands.terminal.output import jsonable
from kctl.history.report import model
from kctl.history.report.html_page import LIBRARY, html_page, report_json
from kctl.history.report.page_columns import GROUPS, LOG_DIRS, LOSSES, PARTITIONS, TOPICS
from report_pages import report_in
from report_samples import HOSTILE, group_report, sample_report

# As npm has it: uplot 1.6.32, dist/uPlot.iife.min.js.
LIBRARY_SHA256 = "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"


class Page(HTMLParser):
    """The elements of a page as parsed by a browser: (name, attributes), and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in self.CDATA_CONTENT_ELEMENTS:
            self.texts.append((tag, ""))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            tag, before = self.texts[-1]
            self.texts[-1] = tag, before + data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def text() -> str:
    return html_page(sample_report())


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_names_add_no_elements(page: Page) -> None:
    plain = [dataclasses.replace(each, now=dataclasses.replace(each.now, group="g")) for each in sample_report().groups]
    other = Page(html_page(dataclasses.replace(sample_report(), groups=plain)))
    assert [name for name, _ in page.elements] == [name for name, _ in other.elements]
    assert not {"img", "svg", "iframe"} & {name for name, _ in page.elements}
    assert [name for name, _ in page.texts] == ["style", "script", "script", "script"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_as_text(text: str, name: str) -> None:
    """In the HTML, outside of the JSON. Characters that reorder text are escapes."""
    assert f'<td class="name">{escape(printable(name))}</td>' in text


def test_the_page_contains_the_report(page: Page, text: str) -> None:
    assert page.texts[1][1] == report_json(sample_report())  # as a browser sees it
    found = report_in(text)
    assert found == jsonable(sample_report())
    assert set(HOSTILE) <= {group["now"]["group"] for group in found["groups"]}


@pytest.mark.parametrize("char", ["<", ">", "&", "\u2028", "\u202e", "é"])
def test_unsafe_characters_are_escaped(char: str) -> None:
    report = dataclasses.replace(sample_report(), groups=[group_report(f"a{char}b", 1)])
    assert char in report_in(html_page(report))["groups"][0]["now"]["group"]
    assert char not in report_json(report)


def test_template_marks_in_names_are_not_replaced(text: str) -> None:
    assert "@REPORT@@SCRIPT@" in text  # the hostile group's name, in the JSON
    assert text.count('id="report"') == 1
    assert not re.search(r"@(POLICY|STYLE|VERSION|MADE|LIBRARY)@", text)


def test_non_finite_numbers_are_null() -> None:
    group = group_report("g", 1)
    odd = dataclasses.replace(group, now=dataclasses.replace(group.now, consumed_per_s=float("inf")))
    found = report_in(html_page(dataclasses.replace(sample_report(), groups=[odd])))
    assert found["groups"][0]["now"]["consumed_per_s"] is None


def _policy(page: Page) -> dict[str, list[str]]:
    (content,) = [a["content"] for a in page.of("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert content is not None
    return {part.split()[0]: part.split()[1:] for part in content.split(";")}


def test_the_policy_allows_only_the_scripts_of_the_page(page: Page) -> None:
    policy = _policy(page)
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    styles = [_hash(body) for tag, body in page.texts if tag == "style"]
    scripts = [_hash(body) for tag, body in page.texts[2:]]
    assert policy["style-src"] == styles
    assert policy["script-src"] == scripts
    assert "unsafe" not in str(policy)


def _hash(body: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()}'"


def test_the_policy_comes_first(page: Page) -> None:
    names = [name for name, _ in page.elements]
    policy = next(i for i, (_, a) in enumerate(page.elements) if a.get("http-equiv") == "Content-Security-Policy")
    assert policy < min(names.index(name) for name in ("style", "script", "title", "body"))


def test_the_page_loads_nothing(page: Page) -> None:
    for name, attributes in page.elements:
        assert not {"src", "srcset", "action", "poster", "style"} & set(attributes), name
        assert (attributes.get("href") or "#").startswith("#"), name
        assert not [key for key in attributes if key.startswith("on")], name
    assert not page.of("link")
    assert not re.search(r"url\(|@import", page.texts[0][1])
    scripts = page.texts[2][1] + page.texts[3][1]
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts)\b", scripts)


def test_the_script_never_parses_text_as_html(page: Page) -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", page.texts[3][1]
    )


def test_the_library_is_unmodified_and_has_its_license(page: Page) -> None:
    folder = files("kctl.history.report").joinpath("page")
    assert hashlib.sha256(folder.joinpath(LIBRARY).read_bytes()).hexdigest() == LIBRARY_SHA256
    assert folder.joinpath(LIBRARY).read_text() in page.texts[2][1]
    assert "Permission is hereby granted" in page.texts[2][1]


def test_a_page_is_small() -> None:
    assert len(html_page(sample_report(0, 0))) < 180_000
    large = html_page(sample_report(1000, 2000))
    assert len(large) < 4_000_000


def test_every_column_of_the_page_is_in_the_report(page: Page) -> None:
    """The script sorts rows by values of the report."""
    rows = jsonable(sample_report())
    known = {key for name in ("groups", "log_dirs", "topics") for row in rows[name] for key in (*row, *row["now"])}
    known |= {*rows["partitions"][0], *rows["losses"][0], "filled_by"}  # made of `causes`
    used = {each.key for columns in (GROUPS, PARTITIONS, LOG_DIRS, LOSSES, TOPICS) for each in columns}
    assert used <= known
    assert used == {title["data-key"] for title in page.of("th")}


def test_the_page_converts_all_columns_back_to_rows(page: Page) -> None:
    """Otherwise its rows would be silently omitted."""
    listed = re.search(r"for \(const name of (\[[^\]]*\])\) report\[name\] = rowsOf", page.texts[3][1])
    assert listed is not None
    plain = {"lacking", "missing_tables"}  # of text
    lists = {each.name for each in dataclasses.fields(model.Report) if str(each.type).startswith("list[")}
    assert set(json.loads(listed[1])) == lists - plain


REPORT_KEYS: dict[type, list[str]] = {
    model.Report: [
        "cluster_id", "made_at", "span", "overview", "findings", "groups", "partitions", "brokers", "log_dirs",
        "topics", "losses", "lacking", "silent_brokers", "missing_tables",
    ],
    model.ReportFinding: ["severity", "kind", "name", "broker", "what", "advice", "since", "due_ms", "before_span"],
    model.ReportSpan: [
        "from_at", "to_at", "bucket_ms", "buckets", "passes", "incomplete", "failures", "missed", "gaps",
    ],
    model.Gap: ["from_at", "to_at", "passes", "open"],
    model.SilentBroker: ["broker", "since", "log_dir_count"],
    model.StatusSpan: ["first", "count", "status"],
    model.GroupReport: ["now", "gone", "lag_over_time", "time_lag_over_time", "timeline"],
    model.LogDirReport: ["now", "error", "size_over_time", "silent_since"],
    model.TopicReport: ["now", "size_over_time"],
    model.Overview: [
        "group_count", "groups_ok", "groups_warn", "groups_err", "groups_unknown", "partition_count", "lag", "lost",
        "time_lag_ms", "time_lag_at_least_ms", "next_loss_ms", "broker_count", "log_dir_count", "offline_log_dirs",
        "topic_count",
        "replicas_bytes", "growth_bytes_per_hour", "next_full_ms",
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", REPORT_KEYS, ids=lambda kind: kind.__name__)
def test_the_keys_of_a_report_never_change(kind: Any) -> None:
    assert [field.name for field in dataclasses.fields(kind)] == REPORT_KEYS[kind]
