"""docs/doctor.md has the rules that the program has."""

from __future__ import annotations

from doctor_page import TARGET, render
from kctl.doctor.rule_table import RULES


def test_the_table_is_not_stale() -> None:
    assert TARGET.read_text() == render(TARGET.read_text()), "run: python tests/support/doctor_page.py"


def test_every_rule_is_there() -> None:
    text = TARGET.read_text()
    assert [rule.id for rule in RULES if f"| `{rule.id}` |" not in text] == []
