"""`kctl topic reassign show`: a saved plan is shown as it was planned, and nothing in a file is believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kctl.commands.app import main

pytestmark = pytest.mark.usefixtures("one_command_tree")
Run = Callable[..., tuple[int, str, str]]


def export() -> dict[str, Any]:
    """Four brokers in two racks with two log dirs each, broker 4 empty; the log dirs of broker 1 are uneven."""
    rows = [[1, 2], [2, 3], [3, 2], [1, 2], [2, 1], [3, 2]]

    def dirs(node: int) -> list[dict[str, Any]]:
        held = [{"topic": "t", "partition": p, "size_bytes": 1_000_000} for p, row in enumerate(rows) if node in row]
        return [
            {"path": f"/srv/kafka/d{n}", "usable_bytes": 10**9, "total_bytes": 10**10, "replicas": [held, []][n]}
            for n in (0, 1)
        ]

    return {
        "cluster_id": "cid",
        "brokers": [{"id": n, "host": "h", "port": 9, "rack": "ba"[n % 2], "log_dirs": dirs(n)} for n in (1, 2, 3, 4)],
        "topics": [
            {
                "name": "t",
                "partitions": [
                    {"partition": p, "leader": row[0], "replicas": row, "isr": row, "size_bytes": 1_000_000}
                    for p, row in enumerate(rows)
                ],
            }
        ],
    }


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """run(*arguments) of `kctl topic reassign` → exit code, stdout, stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        return main(["topic", "reassign", *arguments]), *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    "goals",
    [
        ["--remove-broker", "3", "--throttle", "1MB/s"],
        ["--add-broker", "4", "--balance", "leaders"],
        ["--brokers", "1,2", "--exclude-broker", "4", "--max-concurrent-moves", "1"],
        ["--balance", "bytes", "--log-dirs"],
        ["--remove-broker", "3", "--max-moves", "1"],
        ["--leaders-only"],
        ["--log-dirs"],
        ["--remove-broker", "4"],
    ],
)
@pytest.mark.parametrize("form", [[], ["-o", "wide"], ["-o", "csv"]])
def test_it_is_shown_as_it_was_planned(run: Run, tmp_path: Path, goals: list[str], form: list[str]) -> None:
    cluster, file = tmp_path / "cluster.json", tmp_path / "plan.json"
    cluster.write_text(json.dumps(export()))
    _, planned, _ = run("plan", "--from-file", str(cluster), *goals, "--out", str(file), *form)
    code, out, _ = run("show", str(file), *form)
    assert (code, out) == (0, planned)
    code, out, _ = run("show", str(file), "-o", "json")
    assert (code, out) == (0, file.read_text())


def test_log_dirs_are_short(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps(export()))
    out = run("plan", "--from-file", str(cluster), "--log-dirs")[1]
    assert "Log dirs in /srv/kafka/; bar: bytes" in out
    assert "1: d0 -> d1" in out
    assert max(map(len, out.splitlines())) <= 80


def test_warnings_and_what_is_not_reached_are_told_again(run: Run, tmp_path: Path) -> None:
    cluster, file = tmp_path / "cluster.json", tmp_path / "plan.json"
    cluster.write_text(json.dumps(export()))
    assert run("plan", "--from-file", str(cluster), "--remove-broker", "3", "--max-moves", "1", "--out", str(file))[0]
    code, _, err = run("show", str(file))
    assert code == 0
    assert "warning: the plan does not reach its goals: " in err


def test_what_kafkas_tool_writes_is_shown_without_what_it_does_not_say(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [2, 1]}]}')
    code, out, _ = run("show", str(file))
    assert code == 0
    assert "1 partition; the file has neither the original replicas" in out
    assert "2,1" in out


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("before", 5), ("after", [{"broker": 1}]), ("before", []), ("goals", {"balance": [[]]}),
        ("goals", {"add_broker": "x"}), ("hosts", [-1]), ("lower_bound", -1), ("lower_bound", 2**80), ("left", True),
        ("estimated_ms", "x"), ("throttle_bytes_per_s", 1.5), ("warnings", [5]), ("unmet", "x"),
        ("log_dirs_after", [{"broker": 1, "path": 5}]), ("max_concurrent_moves", []), ("current", None),
    ],
)  # fmt: skip
def test_no_value_of_a_file_is_believed(run: Run, tmp_path: Path, key: str, value: Any) -> None:
    cluster, file = tmp_path / "cluster.json", tmp_path / "plan.json"
    cluster.write_text(json.dumps(export()))
    assert run("plan", "--from-file", str(cluster), "--remove-broker", "3", "--out", str(file))[0] == 0
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    code, _, err = run("show", str(file))
    if key == "current":
        assert code == 0
    else:
        assert (code, err.startswith(f"error: {file} has ")) == (2, True), err
