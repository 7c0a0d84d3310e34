"""The table of rules in docs/doctor.md. `python tests/support/doctor_page.py` writes it anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kctl.doctor.report import RuleRow, rule_rows

TARGET = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"
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


def table() -> str:
    """All rules, by what they are about."""
    rows = rule_rows()
    return "\n".join(line for subject in dict.fromkeys(row.subject for row in rows) for line in _part(subject, rows))


def _part(subject: str, rows: list[RuleRow]) -> Iterator[str]:
    yield f"### {_TITLES[subject]}\n"
    yield "| rule | severity | Kafka | what, and why | what to do | source |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in rows:
        if row.subject == subject:
            why = f"**{row.title}.** {row.why}"
            cells = (f"`{row.rule}`", row.severity.value, row.versions, why, row.fix, row.source)
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def render(text: str) -> str:
    """The page with the table as it is now."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


if __name__ == "__main__":
    TARGET.write_text(render(TARGET.read_text()))
