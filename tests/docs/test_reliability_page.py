"""docs/reliability.md: its tables are those of kept runs as the program shows them; it tells of every validation."""

from __future__ import annotations

import json

from kctl.validate.invariants import INVARIANTS
from kctl.validate.matrix import SETUPS
from kctl.validate.report.sentences import OPTIONS
from kctl.validate.scenarios import SCENARIOS
from reliability_page import KEPT, TARGET, page

TEXT = TARGET.read_text(encoding="utf-8")


def test_the_measured_tables_are_not_stale() -> None:
    assert page(TEXT) == TEXT, "run: python tests/support/reliability_page.py"


def test_the_kept_runs_are_whole_and_held() -> None:
    value = json.loads((KEPT / "all.json").read_text())
    assert [row["scenario"] for row in value["scenarios"]] == [
        each.name for each in SCENARIOS if each.servers != "controllers"
    ]
    assert value["ok"]
    matrix = json.loads((KEPT / "matrix.json").read_text())
    assert len(matrix["matrix"]) == len(SETUPS)
    assert matrix["ok"]


def test_every_validation_invariant_and_budget_is_explained() -> None:
    for each in SCENARIOS:
        assert f"| `{each.name}` |" in TEXT, each.name
    for name in INVARIANTS:
        assert f"| `{name}` |" in TEXT, name
    for option in OPTIONS.values():
        assert f"| `{option}` |" in TEXT, option
