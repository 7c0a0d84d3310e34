"""kctl playbook list, show, lint and schema, as a terminal and as a CI job have them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kctl.commands import app
from kctl.playbook import schema

BAD = """\
playbook: 1
name: bad
steps:
- topic.create:
    names: [a]
    partitons: 3
- topic.lst: {}
"""
FINE = """\
playbook: 1
name: fine
description: What it is for.
parameters:
  topic: {description: Which one.}
  count: {type: integer, default: 3}
  sizes: {type: list, default: [1, 2]}
  pw: {secret: true}
  rack: {default: null}
steps:
- name: Look
  topic.list: {match: "{{ topic }}"}
  register: topics
- name: Make
  topic.create: {names: ["{{ topic }}"], partitions: "{{ count }}"}
  when: topics.value | length == 0
- run: [echo, "{{ sizes }}", "{{ rack }}"]
  stdin: "{{ pw }}"
- include: inner.yaml
finally:
- wait: 1s
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bad.yaml").write_text(BAD)
    (tmp_path / "fine.yaml").write_text(FINE)
    (tmp_path / "inner.yaml").write_text("playbook: 1\nname: inner\nsteps: [topic.delete: {names: [a]}]\n")
    (tmp_path / "other.yaml").write_text("a: b\n")
    (tmp_path / "notes.txt").write_text("playbook: 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_list_shows_whole_descriptions_without_details(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    descriptions = {
        "a": "Move all replicas off a broker, to the other brokers or to a replacement broker. Details.",
        "b": "Elect the leader,\n  e.g. after a restart. Then wait.",
        "c": "Check a cluster: health and lag.",
    }
    for name, description in descriptions.items():
        text = f"playbook: 1\nname: {name}\ndescription: {json.dumps(description)}\nsteps: [wait: 1s]\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    assert app.main(["playbook", "list", str(tmp_path)]) == 0
    assert [line.split(maxsplit=2)[2] for line in capsys.readouterr().out.splitlines()] == [
        "DESCRIPTION",
        "Move all replicas off a broker, to the other brokers or to a replacement broker",
        "Elect the leader",
        "Check a cluster",
    ]


def test_lint_shows_the_line_and_what_was_meant(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["playbook", "lint", "bad.yaml"]) == 2
    shown = capsys.readouterr()
    assert shown.out == (
        "bad.yaml:6:5: topic.create has no argument partitons\n"
        "        partitons: 3\n"
        "        ^^^^^^^^^\n"
        "    did you mean partitions?\n"
        "bad.yaml:7:3: unknown operation topic.lst\n"
        "    - topic.lst: {}\n"
        "      ^^^^^^^^^\n"
        "    did you mean topic.list or topic.alter or topic.delete?\n"
    )
    assert shown.err == "1 playbook: 2 problems\n"


def test_lint_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["playbook", "lint", "fine.yaml", "bad.yaml", "bad.yaml", "-o", "json"]) == 2
    rows = json.loads(capsys.readouterr().out)
    assert rows[0] == {
        "file": "bad.yaml", "line": 6, "column": 5, "message": "topic.create has no argument partitons",
        "hint": "did you mean partitions?", "severity": "error",
    }  # fmt: skip
    assert len(rows) == 2
    assert app.main(["playbook", "lint", "fine.yaml", "topic-audit", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_lint_with_warnings_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "loose.yaml").write_text("playbook: 1\nname: loose\nsteps:\n- topic.list: {}\n  register: rows\n")
    assert app.main(["playbook", "lint", "loose.yaml"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("loose.yaml:5:13: warning: rows is not used\n")
    assert shown.err == "1 playbook: 1 warning\n"
    assert app.main(["playbook", "lint", "loose.yaml", "-o", "json"]) == 0
    assert [row["severity"] for row in json.loads(capsys.readouterr().out)] == ["warning"]
    assert app.main(["playbook", "lint", "loose.yaml", "bad.yaml"]) == 2
    assert capsys.readouterr().err == "2 playbooks: 2 problems, 1 warning\n"
    assert app.main(["playbook", "show", "loose.yaml"]) == 0, "it can be run"


def test_lint_of_what_is_fine(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["playbook", "lint", "fine.yaml", "topic-audit"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "2 playbooks: no problems\n")


def test_lint_of_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["playbook", "lint", ".", "./fine.yaml"]) == 2
    shown = capsys.readouterr()
    assert "bad.yaml:6:5: topic.create has no argument partitons" in shown.out
    assert shown.err == "3 playbooks: 2 problems\n"
    (folder / "empty").mkdir()
    assert app.main(["playbook", "lint", "empty"]) == 4
    assert "folder empty contains no playbooks" in capsys.readouterr().err


def test_lint_shows_nothing_of_files_that_are_only_included(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "secrets.yaml").write_text("token: hunter2-token\nname: hunter2-name\n")
    (folder / "secrets").write_text("hunter2-line\n")
    (folder / "part.yaml").write_text("playbook: 1\nname: part\nsteps: [{lag: {}, hunter2: 1}]\n")
    (folder / "large.yaml").write_bytes(b"#" * (1 << 21))
    names = ("secrets.yaml", "./secrets", "part.yaml", "large.yaml")
    steps = "".join(f"- id: s{number}\n  include: {name}\n" for number, name in enumerate(names))
    (folder / "main.yaml").write_text(f"playbook: 1\nname: main\nsteps:\n{steps}")
    assert app.main(["playbook", "lint", "main.yaml"]) == 2
    shown = capsys.readouterr().out
    assert "hunter2-" not in shown
    assert "main.yaml:5:12: secrets.yaml is not a playbook\n      include: secrets.yaml\n" in shown
    assert "part.yaml:3:19: unknown step key hunter2\n    valid keys: " in shown
    assert "large.yaml has more than 1,048,576 bytes" in shown


def test_lint_of_what_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["playbook", "lint", "bad.yml"]) == 4
    assert "file bad.yml does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\xff\xfe", "h.yaml:1:1: not UTF-8 text"),
        (b"a: \x07", "h.yaml:1:4: not YAML"),
        (b"", "h.yaml:1:1: a playbook must be a mapping"),
        (b"x" * (1 << 21), "h.yaml:1:1: h.yaml has more than 1,048,576 bytes"),
        (
            b'playbook: 1\nname: "\\e[2J\\e]0;x\\a"\nsteps: [lag: {}]\n',
            "h.yaml:2:7: '\\x1b[2J\\x1b]0;x\\x07' is not a valid name",
        ),
        (
            "playbook: 1\nname: p\nsteps: ['\u202e': {}]\n".encode(),
            "h.yaml:3:9: unknown step key \\u202e",
        ),
        ("playbook: 1\nname: p # \u2066\nsteps: [lag: {}]\n".encode(), "h.yaml:2:11: the character U+2066 changes"),
        (
            "playbook: 1\nname: p\nsteps:\n# \u2028- run: [ls]\n".encode(),
            "h.yaml:4:3: a line separator (U+2028) ends a line",
        ),
    ],
)
def test_hostile_files(folder: Path, capsys: pytest.CaptureFixture[str], text: bytes, says: str) -> None:
    (folder / "h.yaml").write_bytes(text)
    assert app.main(["playbook", "lint", "h.yaml"]) == 2
    shown = capsys.readouterr().out
    assert shown.startswith(says)
    assert not set(shown) & set("\x07\x1b\u202e")


def test_a_secret_in_a_file_is_not_repeated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.yaml").write_text(
        "playbook: 1\nname: s\nparameters: {pw: {secret: true, default: hunter22}}\n"
        "steps: [{produce: {topic: a}, stdin: '{{ pw }}'}]\n"
    )
    assert app.main(["playbook", "lint", "s.yaml"]) == 2
    assert "hunter22" not in capsys.readouterr().out
    assert app.main(["playbook", "show", "s.yaml"]) == 2
    assert "hunter22" not in capsys.readouterr().err


def test_show(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["playbook", "show", "fine.yaml"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["fine:", "What", "it", "is", "for."]
    assert rows[2:7] == [
        ["topic", "string", "required", "Which", "one."], ["count", "integer", "3"], ["sizes", "list", "[1,", "2]"],
        ["pw", "string", "secret"], ["rack", "string", "-"],
    ]  # fmt: skip
    assert rows[8] == ["STEP", "OPERATION", "CHANGES", "WHEN", "DOES"]
    assert [row[:3] for row in rows[9:13]] == [
        ["look", "topic.list", "no"], ["make", "topic.create", "yes"], ["run", "run", "yes"],
        ["include", "include", "inner.yaml"],
    ]  # fmt: skip
    assert rows[12][3] == "yes"
    assert rows[14] == ["finally", "(always)"]


def test_show_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["playbook", "show", "fine.yaml", "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown) == ["name", "description", "file", "shipped", "digest", "changes", "parameters", "steps"]
    assert (shown["changes"], shown["shipped"], len(shown["digest"])) == (True, False, 64)
    assert shown["parameters"][1] == {
        "name": "count", "type": "integer", "required": False, "default": 3, "secret": False, "description": "",
        "choices": [], "minimum": None, "maximum": None,
    }  # fmt: skip
    assert shown["steps"][1] == {
        "step": "make", "name": "Make", "part": "steps", "operation": "topic.create", "changes": True, "dry_run": True,
        "when": "topics.value | length == 0", "loop": False, "register": None, "on_error": "fail", "line": 14,
    }  # fmt: skip
    assert [step["part"] for step in shown["steps"]][-1] == "finally"


def test_show_of_a_bad_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["playbook", "show", "bad.yaml"]) == 2
    assert capsys.readouterr().err.splitlines()[:2] == [
        "error: bad.yaml has 2 problems",
        "  - bad.yaml:6:5: topic.create has no argument partitons (did you mean partitions?)",
    ]
    assert app.main(["playbook", "show", "topic-adit"]) == 4
    assert "did you mean topic-audit?" in capsys.readouterr().err


def test_list(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["playbook", "list", ".", "-o", "json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == {"bad", "fine", "inner"}
    assert (rows["bad"]["problems"], rows["fine"]["problems"]) == (2, 0)
    assert rows["fine"] == {
        "name": "fine", "description": "What it is for.", "parameters": ["topic", "count", "sizes", "pw", "rack"],
        "steps": 5, "changes": True, "problems": 0, "shipped": False, "file": "fine.yaml",
    }  # fmt: skip
    assert app.main(["playbook", "list", "-o", "json"]) == 0
    shipped = json.loads(capsys.readouterr().out)
    assert {"topic-audit", "consumer-lag-gate"} <= {row["name"] for row in shipped}
    assert all(row["shipped"] and not row["problems"] for row in shipped)
    assert app.main(["playbook", "list", "none"]) == 4


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["playbook", "schema"]) == 0
    assert capsys.readouterr().out == schema.text()
    assert app.main(["playbook", "schema", "-o", "csv"]) == 2
