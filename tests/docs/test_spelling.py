"""codespell knows every word of the product, the documentation and the tests, or the word is listed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ["kctl", "commands", "spark", "playbooks", "docs", "examples", "install.sh", "mkdocs.yml", "pyproject.toml"]
NAMES = ["nd", "notin", "unsecure"]  # "[E]nd the run?", an operator of Jinja, a property of librdkafka
# What tests, and the page that quotes the linter, misspell on purpose.
MISSPELLED = [
    "anull", "asert", "comit", "defned", "defualt", "frist", "fulll", "grups", "lenght", "loger", "mesage", "modul",
    "paramters", "partitons", "pasword", "registr", "througput", "unter", "valu", "wiat",
]  # fmt: skip
SKIPPED = "*.svg,*.png,*.min.js,*.pyc,tests/data,tests/bench/results,docs/playbooks.md"


def misspellings(paths: list[str], skipped: str, words: list[str]) -> str:
    argv = ["-m", "codespell_lib", "--skip", skipped, "--ignore-words-list", ",".join(words), *paths]
    done = subprocess.run([sys.executable, *argv], cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("paths", "skipped", "words"),
    [
        ([*PRODUCT, *(path.name for path in ROOT.glob("*.md"))], SKIPPED, NAMES),
        (["tests", "docs/playbooks.md"], SKIPPED.rpartition(",")[0], [*NAMES, *MISSPELLED]),
    ],
    ids=["product", "tests"],
)
def test_words_are_spelled_right(paths: list[str], skipped: str, words: list[str]) -> None:
    assert misspellings(paths, skipped, words) == ""


def test_a_misspelling_is_reported(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("a mesage\n")
    assert "mesage ==> message" in misspellings([str(tmp_path)], SKIPPED, NAMES)
