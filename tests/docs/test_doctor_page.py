"""docs/doctor.md and docs/doctor/ have the rules of the program."""

from __future__ import annotations

from doctor_page import FOLDER, TARGET, pages, render
from kctl.doctor.rule_table import RULES


def test_the_list_of_rules_is_current() -> None:
    assert TARGET.read_text() == render(TARGET.read_text()), "run: python tests/support/doctor_page.py"


def test_the_pages_of_rules_are_current() -> None:
    existing = {path: path.read_text() for path in FOLDER.glob("*.md")}
    assert existing == pages(), "run: python tests/support/doctor_page.py; delete pages without rules"


def test_every_rule_has_a_section() -> None:
    text = "\n".join(pages().values())
    assert [rule.id for rule in RULES if f"\n## {rule.id}\n" not in text] == []
