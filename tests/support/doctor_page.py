"""Write the pages of rules in docs/doctor/, and their list in docs/doctor.md: `python tests/support/doctor_page.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kctl.doctor.report import RuleRow, rule_rows

TARGET = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"
FOLDER = TARGET.with_suffix("")
BEGIN, END = "<!-- rules: made by tests/support/doctor_page.py -->\n", "<!-- end of rules -->\n"
_TITLES = {
    "state": "State of the cluster",
    "brokers": "Settings of brokers",
    "sizes": "Sizes, times, disks",
    "security": "Access",
    "topics": "Topics",
    "groups": "Consumer groups",
    "zookeeper": "ZooKeeper",
    "files": "Files",
    "clients": "Clients",
    "producers": "Producers",
    "consumers": "Consumers",
}
_MARKUP = re.compile(r"([\\*<\[\]]|(?<!\w)_)")
_CODE = re.compile(r"(`[^`]*`)")


def pages() -> dict[Path, str]:
    """Return the text of each page of rules by its path: one page for each subject."""
    rows = rule_rows()
    return {
        FOLDER / f"{subject}.md": "\n".join(_page(subject, [row for row in rows if row.subject == subject]))
        for subject in dict.fromkeys(row.subject for row in rows)
    }


def _page(subject: str, rows: list[RuleRow]) -> Iterator[str]:
    yield f"# Doctor rules: {_TITLES[subject]}\n"
    yield "<!-- made by tests/support/doctor_page.py -->\n"
    yield f"Rules of [kctl doctor](../doctor.md). `kctl doctor --about {subject}` applies only these rules.\n"
    yield "| rule | severity | problem |"
    yield "| --- | --- | --- |"
    for row in rows:
        yield f"| [{row.rule}](#{row.rule}) | {row.severity.value} | {_prose(row.title).replace('|', chr(92) + '|')} |"
    for row in rows:
        yield f"\n## {row.rule}\n"
        yield f"**{_prose(row.title)}.** {_prose(row.why)}\n"
        yield f"- Severity: {row.severity.value}"
        yield f"- Kafka releases: {_prose(row.versions)}"
        yield f"- Fix: {_prose(row.fix)}"
        yield f"- Source: {_prose(row.source)}"
    yield ""


def _prose(text: str) -> str:
    """Escape what Markdown would take for markup, outside of code spans."""
    parts = _CODE.split(text)
    parts[::2] = [_MARKUP.sub(r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def _overview() -> Iterator[str]:
    rows = rule_rows()
    yield "| page | rules |"
    yield "| --- | --- |"
    for subject in dict.fromkeys(row.subject for row in rows):
        links = ", ".join(f"[{r.rule}](doctor/{subject}.md#{r.rule})" for r in rows if r.subject == subject)
        yield f"| [{_TITLES[subject]}](doctor/{subject}.md) | {links} |"
    yield ""


def render(text: str) -> str:
    """Return docs/doctor.md with the current list of rules. text: its content now."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    overview = "\n".join(_overview())
    return f"{head}{BEGIN}\n{overview}\n{END}{tail}"


if __name__ == "__main__":
    TARGET.write_text(render(TARGET.read_text()))
    FOLDER.mkdir(exist_ok=True)
    for path, content in pages().items():
        path.write_text(content)
