"""Repeats of failed tests, once and alone, at the end of a run. Tests that then pass are flaky and are listed.

A run with KCTL_TEST_FAILED_FILE set records each failure there, one JSON object per line (see `FailureRecorder`).
`python tests/support/failed_tests.py FILE OUTCOME` repeats them in one process, writes a line for each to OUTCOME, and
exits with 0 only if all of them passed. A flaky test is a defect to fix, but does not block a change.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

FAILED_FILE = "KCTL_TEST_FAILED_FILE"
MAX_REPEATS = 30  # more failures have a common cause, and repeats would only take time


class FailureRecorder:
    """A pytest plugin that appends each failed test to a file: {"test": node id, "error": first line of the error}.

    A failure of the collection has "test": null and cannot be repeated.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._append(report.nodeid, report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._append(None, report)

    def _append(self, test: str | None, report: pytest.TestReport | pytest.CollectReport) -> None:
        row = {"test": test, "error": first_error_line(report)}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def register(config: pytest.Config) -> None:
    """Record the failures of this run if the environment names a file; with xdist, only in the controlling process."""
    path = os.environ.get(FAILED_FILE)
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailureRecorder(Path(path)), "kctl-failure-recorder")


def first_error_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the first line of the error, at most 200 characters."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).strip().splitlines()
    return str(lines[0])[:200] if lines else "no message"


def read_failures(path: Path) -> dict[str | None, str]:
    """Return the failed tests in the order of their failures, each with its first error."""
    failures: dict[str | None, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        failures.setdefault(row["test"], row["error"])
    return failures


def describe(failures: Mapping[str | None, str], failed_again: Iterable[str | None]) -> list[str]:
    """Return one line per failure: flaky or failed twice, the name of the test, and its first error."""
    again = set(failed_again)
    return [f"{'failed twice' if test in again else 'flaky'}: {test}: {error}" for test, error in failures.items()]


def repeat(path: Path, outcome: Path) -> int:
    """Run the recorded tests again, in one process. Returns 0 if all passed, else 1; writes a line for each."""
    failures = read_failures(path)
    if None in failures or not failures or len(failures) > MAX_REPEATS:
        reason = f"more than {MAX_REPEATS}, or in the collection"
        outcome.write_text(f"{len(failures)} failures are not repeated: {reason}\n", encoding="utf-8")
        return 1
    second = path.with_suffix(".again")
    second.unlink(missing_ok=True)
    second.touch()
    tests = [test for test in failures if test is not None]
    done = subprocess.run(
        [sys.executable, "-I", "-m", "pytest", *tests],  # -I: the current folder has the checkout's kctl
        env={**os.environ, FAILED_FILE: str(second)}, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    failed_again: Iterable[str | None] = read_failures(second)
    if done.returncode not in {0, 1}:  # pytest itself failed, so no test has passed
        failed_again = list(failures)
    outcome.write_text("".join(f"{line}\n" for line in describe(failures, failed_again)), encoding="utf-8")
    return 0 if done.returncode == 0 and not failed_again else 1


if __name__ == "__main__":
    sys.exit(repeat(Path(sys.argv[1]), Path(sys.argv[2])))
