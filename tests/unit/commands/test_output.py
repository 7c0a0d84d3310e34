"""The renderer: each format, and what it does to text from outside."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml

from kctl.commands.terminal import output
from kctl.commands.terminal.output import Column, Table
from kctl.errors import NotFound
from kctl.model import TopicPartition
from kctl.reassign.run.checks import PlanProblem
from kctl.reassign.run.prepare import refusal
from kctl.reassign.run.run_state import Paused


@dataclass(frozen=True)
class Row:
    topic: str
    replicas: tuple[int, ...]
    lag: int | None
    at: datetime
    nested: dict[str, int]


ROWS = [
    Row("orders", (1, 2), None, datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc), {"a_bytes": 1}),
    Row('evil\x1b[2J,"x"', (), 7, datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1))), {"a_bytes": 2}),
]
COLUMNS = [Column("topic"), Column("replicas"), Column("lag", align="right"), Column("nested.a_bytes", "A")]


def _tables() -> list[Table]:
    return [Table(COLUMNS, [output.jsonable(r) for r in ROWS], empty="nothing")]


def test_json_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit(ROWS, _tables, "json")
    rows = json.loads(capsys.readouterr().out)
    assert rows[0] == {
        "topic": "orders", "replicas": [1, 2], "lag": None, "at": "2026-01-02T03:04:05.000Z", "nested": {"a_bytes": 1},
    }  # fmt: skip
    assert rows[1]["at"] == "2026-01-01T23:00:00.000Z"
    assert rows[1]["topic"] == ROWS[1].topic  # data is never altered where a program reads it


def test_yaml_says_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit(ROWS, _tables, "yaml")
    assert yaml.safe_load(capsys.readouterr().out) == output.jsonable(ROWS)


def test_csv_flattens(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit(ROWS, _tables, "csv")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == ["topic", "replicas", "lag", "at", "nested.a_bytes"]
    assert rows[0]["replicas"] == "1 2"
    assert rows[0]["lag"] == ""
    assert rows[1]["topic"] == ROWS[1].topic


@pytest.mark.parametrize("form", ["json", "yaml", "csv", "table"])
def test_half_of_a_surrogate_pair_is_an_escape(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's name may have one, JSON as well, and no stream takes it."""
    data = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(data, encoding="utf-8"))
    output.emit([{"é": "\udcff"}], [Table([Column("é")], [{"é": "\udcff"}])], form)
    sys.stdout.flush()
    assert b"\\udcff" in data.getvalue().lower()
    if form == "json":
        assert json.loads(data.getvalue()) == [{"é": "\udcff"}]


def test_table_in_a_pipe_is_plain_and_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit(ROWS, _tables, None)
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["TOPIC", "REPLICAS", "LAG", "A"]
    assert "\x1b" not in out
    assert "evil\\x1b[2J" in out
    assert out.splitlines()[1].split() == ["orders", "1,2", "-", "1"]


def test_an_empty_table_says_so_on_stderr_only(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit([], [Table(COLUMNS, [], empty="no topics")], None)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "no topics\n")
    output.emit([], [Table(COLUMNS, [], empty="no topics")], "json")
    assert capsys.readouterr().out == "[]\n"


def test_errors_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    error = NotFound("topic 'a\x1b' does not exist", hint="kctl topic list", details={"topic": TopicPartition("a", 1)})
    output.error(error, None)
    assert capsys.readouterr().err == "error: topic 'a\\x1b' does not exist\n  kctl topic list\n"
    output.error(error, "json")
    body = json.loads(capsys.readouterr().err)
    assert body == {
        "code": "not_found", "reason": "not_found", "exit_code": 4,
        "message": "topic 'a\x1b' does not exist", "hint": "kctl topic list",
        "topic": {"topic": "a", "partition": 1},
    }  # fmt: skip


def test_what_somebody_asked_for_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    output.error(Paused("paused by a command", hint="resume"), None)
    assert capsys.readouterr().err == "paused by a command\n  resume\n"


@pytest.mark.parametrize("count", [1, 2, 3, 4, 20, 1200])
def test_several_problems_have_a_line_each(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    error = refusal([PlanProblem(f"t-{n}", "no\x1b such") for n in range(count)])
    output.error(error, None)
    lines = capsys.readouterr().err.splitlines()
    listed = [line for line in lines if line.startswith("  - t-")]
    assert "\x1b" not in "".join(lines)
    assert len(listed) == (0 if count == 1 else min(count, 20))
    if count == 1:
        assert lines[0] == "error: the plan cannot be carried out, 1 problem: t-0: no\\x1b such"
    else:
        assert lines[0] == f"error: the plan cannot be carried out, {count:,} problems"
    assert ("  - and 1,180 more; use -o json to see all" in lines) == (count == 1200)
    output.error(error, "json")
    assert len(json.loads(capsys.readouterr().err)["problems"]) == count


def test_paths_and_sets_are_jsonable() -> None:
    assert output.jsonable({"p": Path("/x"), "s": {3, 1}}) == {"p": "/x", "s": [1, 3]}


def test_one_long_text_does_not_pad_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    """A topic's name has 249 characters at most; a client id may have 30,000."""
    rows = [{"name": "x" * length, "n": 1} for length in (5, 3000, 249)]
    columns = [output.Column("name"), output.Column("n")]
    output.emit(None, [output.Table(columns, rows)], "table")
    output.stream(iter(rows), columns, "table")
    assert [len(line) for line in capsys.readouterr().out.splitlines()] == [252, 252, 3003, 252] * 2
