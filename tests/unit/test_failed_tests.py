"""Tests that failed are repeated once at the end of a run: what is listed as flaky, and what refuses the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from failed_tests import FAILED_FILE, MAX_REPEATS, describe, read_failures, repeat

CONFTEST = """
import sys
sys.path.insert(0, {support!r})
from failed_tests import register as pytest_configure
"""
PASSES_THE_SECOND_TIME = """
from pathlib import Path
def test_flaky():
    marker = Path(__file__).with_name("was-here")
    first = not marker.exists()
    marker.touch()
    assert not first, "too slow"
"""
FAILS_IN_ITS_FIXTURE = """
import pytest
@pytest.fixture
def broker():
    raise OSError("no broker")
@pytest.mark.parametrize("name", ["a b", "[x]::y"])
def test_setup(broker, name): pass
"""


def _run(folder: Path, source: str) -> tuple[int, Path]:
    """Run one test file; returns pytest's exit code and the file with the failures."""
    (folder / "conftest.py").write_text(CONFTEST.format(support=str(Path(__file__).parents[1] / "support")))
    (folder / "test_it.py").write_text(source)
    failures = folder / "failures.jsonl"
    failures.touch()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "test_it.py"],
        cwd=folder, env={**os.environ, FAILED_FILE: str(failures)}, stdin=subprocess.DEVNULL,
        capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode, failures


@pytest.mark.parametrize(
    ("source", "first_code", "repeated_code", "lines"),
    [
        ("def test_good(): pass", 0, 1, ["0 failures are not repeated: more than 30, or in the collection"]),
        (PASSES_THE_SECOND_TIME, 1, 0, ["flaky: test_it.py::test_flaky: AssertionError: too slow"]),
        ("def test_bad(): assert 1 == 2", 1, 1, ["failed twice: test_it.py::test_bad: assert 1 == 2"]),
        (
            FAILS_IN_ITS_FIXTURE, 1, 1,
            ["failed twice: test_it.py::test_setup[a b]: OSError: no broker",
             "failed twice: test_it.py::test_setup[[x]::y]: OSError: no broker"],
        ),
        ("import nothing_of_that_name", 2, 1, ["1 failures are not repeated: more than 30, or in the collection"]),
    ],
    ids=["none", "flaky", "twice", "fixture", "collection"],
)  # fmt: skip
def test_failures_are_repeated_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, first_code: int, repeated_code: int, lines: list[str]
) -> None:
    code, failures = _run(tmp_path, source)
    assert code == first_code
    monkeypatch.chdir(tmp_path)
    assert repeat(failures, tmp_path / "outcome") == repeated_code
    assert (tmp_path / "outcome").read_text().splitlines() == lines


def test_many_failures_are_not_repeated(tmp_path: Path) -> None:
    failures = tmp_path / "failures.jsonl"
    failures.write_text("".join(f'{{"test": "test_it.py::test_{n}", "error": "x"}}\n' for n in range(MAX_REPEATS + 1)))
    assert repeat(failures, tmp_path / "outcome") == 1
    assert len(read_failures(failures)) == MAX_REPEATS + 1


def test_a_test_is_described_by_its_first_error() -> None:
    assert describe({"a": "one", "b": "two"}, ["b"]) == ["flaky: a: one", "failed twice: b: two"]
