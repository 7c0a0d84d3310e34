"""CHANGELOG.md has the form of Keep a Changelog, one line per entry, and begins with the version of the program."""

from __future__ import annotations

import re
from pathlib import Path

from kctl import __version__

LINES = (Path(__file__).resolve().parents[2] / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_newest_release_is_this_version_and_has_a_date() -> None:
    headings = [line for line in LINES if line.startswith("## ")]
    assert headings[0] == "## [Unreleased]"
    assert re.fullmatch(rf"## \[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d", headings[1])


def test_sections_are_those_of_keep_a_changelog() -> None:
    assert {line[4:] for line in LINES if line.startswith("### ")} <= SECTIONS


def test_each_entry_is_one_line() -> None:
    start = next(number for number, line in enumerate(LINES) if line.startswith("### "))
    other = [line for line in LINES[start:] if line and not re.match(r"#{2,4} |- ", line)]
    assert other == []
    assert [line for line in LINES if line.startswith("- ") and not line.endswith(".")] == []
