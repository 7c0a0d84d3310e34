"""A report as a single HTML page that needs no network, server or other files.

Findings and tables are HTML, so they are readable without JavaScript; what needs attention comes first. The report is
also embedded as JSON in a script element that is not executed: the page's script draws charts from it, and sorts and
filters the tables. Names of groups and topics are untrusted. Therefore:

- In the HTML, text is escaped (kctl.history.report.page_cells). The script creates only text nodes.
- In the JSON, characters that could end the element or begin another one (`<`, `>`, `&`) are escaped, and so are all
  characters outside of ASCII.
- A Content-Security-Policy in the page allows the page's two scripts, by their hashes, and nothing else: no other
  script, no event handler in an attribute, no network (W3C Content Security Policy Level 3).

uPlot (MIT license) draws the charts. Its files are in the folder `page`, unmodified.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from datetime import datetime, timezone
from html import escape
from importlib.resources import files
from typing import Any

from kctl import __version__
from kctl.history.report import page_sections, page_tables
from kctl.history.report.model import Report

LIBRARY = "uPlot.iife.min.js"
LICENSE = "uPlot.LICENSE.txt"
_STYLES = ("uPlot.min.css", "report.css")
_SCRIPTS = ("format.js", "tables.js", "charts.js", "lanes.js", "report.js")
# In JSON, these characters occur only in strings, where escapes are equivalent.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def html_page(report: Report) -> str:
    """Return the page. Non-finite numbers become null."""
    style = "\n".join(map(_part, _STYLES))
    library = f"/*\n{_part(LICENSE)}*/\n{_part(LIBRARY)}"  # the license requires its text in each copy
    script = f'(() => {{\n"use strict";\n{"".join(map(_part, _SCRIPTS))}}})();'
    parts = {
        "@POLICY@": escape(_policy([library, script], style)),
        "@STYLE@": style,
        "@VERSION@": escape(__version__),
        "@MADE@": escape(_iso(report.made_at)),
        "@REPORT@": report_json(report),
        "@LIBRARY@": library,
        "@SCRIPT@": script,
        **_sections(report),
    }
    return _filled(_part("report.html"), parts)


def _sections(report: Report) -> dict[str, str]:
    """Return the parts of the page that show the report."""
    plain, totals = _plain(report), report.overview
    return {
        "@CLUSTER@": page_sections.cluster_text(report),
        "@SPAN@": page_sections.span_text(report.span),
        "@FINDINGS@": page_sections.findings_html(report),
        "@MISSING@": page_sections.missing_html(report),
        "@OVERVIEW@": page_sections.overview_html(report),
        "@LOG_DIRS@": page_tables.log_dirs_html(report, plain),
        "@LOSSES_HIDDEN@": "" if report.losses else "hidden",
        "@LOSSES@": page_tables.losses_html(plain),
        "@GROUPS@": page_tables.groups_html(report, plain),
        "@PARTITIONS_NOTE@": page_sections.limited_text("Worst", len(report.partitions), totals.partition_count),
        "@PARTITIONS@": page_tables.partitions_html(report, plain),
        "@TOPICS_NOTE@": page_sections.limited_text("Largest", len(report.topics), totals.topic_count),
        "@TOPICS@": page_tables.topics_html(report, plain),
    }


def report_json(report: Report) -> str:
    """Return the report as JSON that is safe in a script element, with rows as columns so that each key occurs once."""
    result = _plain(report)
    for name, value in result.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            result[name] = _columns(value)
    return json.dumps(result, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


def _columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return rows with equal keys as columns, plus the number of rows. A column of objects becomes columns, too."""
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    nested = {name: _columns(values) for name, values in columns.items() if isinstance(values[0], dict)}
    return {"size": len(rows), "columns": columns | nested}


def _filled(template: str, parts: dict[str, str]) -> str:
    """Return the template with each placeholder replaced once. Inserted text is not searched for placeholders."""
    pieces = []
    rest = template
    for placeholder, text in sorted(parts.items(), key=lambda item: template.index(item[0])):
        before, separator, rest = rest.partition(placeholder)
        assert separator, placeholder
        pieces += [before, text]
    return "".join([*pieces, rest])


def _policy(scripts: list[str], style: str) -> str:
    """Return the Content-Security-Policy: only the page's own scripts and styles, by their hashes."""
    hashes = " ".join(map(_hash, scripts))
    return f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _part(name: str) -> str:
    """Return a file of the folder `page`, with normalized line ends so that hashes match in HTML."""
    text = files(__package__).joinpath("page").joinpath(name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def _plain(value: Any) -> Any:
    """Return a value as in JSON: dataclasses as objects, times as ISO 8601 UTC, no infinite numbers."""
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        if hasattr(value, "_asdict"):
            return {key: _plain(each) for key, each in value._asdict().items()}
        return [each if each is None or type(each) is int else _plain(each) for each in value]
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, float) and value - value != 0:
        return None
    return value


def _iso(at: datetime) -> str:
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
