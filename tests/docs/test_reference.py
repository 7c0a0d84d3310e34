"""docs/reference.md says what the program says."""

from __future__ import annotations

from command_reference import TARGET, render


def test_the_reference_is_not_stale() -> None:
    assert TARGET.read_text() == render(), "run: python tests/support/command_reference.py"
