"""docs/performance.md quotes the kept results and nothing else."""

from __future__ import annotations

from page import TARGET, TITLES, newest, render


def test_the_page_is_not_stale() -> None:
    assert TARGET.read_text() == render(), "run: python tests/bench/page.py"
    assert set(newest()) == set(TITLES)
