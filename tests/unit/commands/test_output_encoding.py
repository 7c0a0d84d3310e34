"""Terminals and pipes that are not UTF-8: all is written, what they lack in ASCII, and JSON stays JSON."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
import yaml

from command_tree import every_command
from kctl.commands import app
from kctl.commands.terminal import output
from kctl.commands.terminal.output_encoding import prepare_streams

ENCODINGS = ["ascii", "latin-1", "iso8859-2", "iso8859-15", "cp437", "cp850", "cp1252", "koi8-r", "euc-jp", "gb18030"]


@contextmanager
def streams(encoding: str, errors: str = "strict") -> Iterator[Callable[[], tuple[str, str]]]:
    """stdout and stderr of an encoding; what was written to them."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding, kind) for kind in (errors, "backslashreplace"))

    def written() -> tuple[str, str]:
        out.flush()
        err.flush()
        return tuple(each.buffer.getvalue().decode(encoding) for each in (out, err))  # type: ignore[return-value]

    with mock.patch("sys.stdout", out), mock.patch("sys.stderr", err):
        prepare_streams()
        yield written


HELPS = ["", *dict.fromkeys(path.rpartition(" ")[0] for path, _ in every_command()), *(p for p, _ in every_command())]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_help(encoding: str) -> None:
    for path in dict.fromkeys(HELPS):
        with streams(encoding) as written:
            assert app.main([*path.split(), "--help"]) == 0, path
        out, err = written()
        assert err == ""
        assert out.rstrip().endswith(("see kctl --help", "130  interrupted")) or not path, path
        assert "\\u" not in out, f"{path}: kctl's own text is shown by its look"


@pytest.mark.parametrize(
    "errors", ["strict", "surrogateescape", "replace", "ignore", "backslashreplace", "xmlcharrefreplace"]
)
def test_how_somebody_chose_to_show_what_is_not_there(errors: str) -> None:
    with streams("latin-1", errors) as written:
        output.write_line("é → ż 🙂")
    assert (
        written()[0]
        == {
            "strict": "é -> \\u017c \\U0001f642\n",
            "surrogateescape": "é -> \\u017c \\U0001f642\n",
            "replace": "é ? ? ?\n",
            "ignore": "é   \n",
            "backslashreplace": "é \\u2192 \\u017c \\U0001f642\n",
            "xmlcharrefreplace": "é &#8594; &#380; &#128578;\n",
        }[errors]
    )


ROWS = [{"name": "żółć … 🙂", "note": "a→b"}, {"name": "plain", "note": "é"}]
COLUMNS = (output.Column("name"), output.Column("note"))


@pytest.mark.parametrize("encoding", [*ENCODINGS, "utf-8", "utf-16"])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_programs_read_is_what_it_was(encoding: str, form: str) -> None:
    with streams(encoding) as written:
        output.emit(ROWS, [], form)
        if form == "json":
            output.write_json_line(ROWS)
    text = written()[0]
    if form == "yaml":
        assert yaml.safe_load(text) == ROWS
        return
    whole, _, line = text.rstrip("\n").rpartition("\n")
    assert json.loads(whole) == json.loads(line) == ROWS


def test_csv_has_escapes_that_can_be_told_apart() -> None:
    with streams("latin-1") as written:
        output.emit(ROWS, [], "csv")
        output.stream(iter(ROWS), COLUMNS, "csv")
    rows = list(csv.reader(io.StringIO(written()[0])))
    assert rows == [
        ["name", "note"], ["\\u017có\\u0142\\u0107 \\u2026 \\U0001f642", "a\\u2192b"], ["plain", "é"],
    ] * 2  # fmt: skip


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_tables_stay_aligned(encoding: str) -> None:
    with streams(encoding) as written:
        output.emit(None, [output.Table(COLUMNS, ROWS, title="Über … alles")], "table")
    lines = written()[0].splitlines()[1:]
    start = lines[0].index("NOTE")
    assert all(line[start - 2 : start] == "  " and line[start] != " " for line in lines)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_messages_and_errors(encoding: str) -> None:
    with streams(encoding) as written:
        output.note("a → b … żółć 🙂 \x1b[2J")
        assert app.main(["topic", "lst…"]) == 2
        assert app.main(["topic", "lst…", "-o", "json"]) == 2
    _, err = written()
    first, *_, last = err.splitlines()
    assert "\x1b" not in first
    assert json.loads(last)["message"].endswith("'lst…'.") or "lst…" in json.loads(last)["message"]


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX"},
        {"LC_ALL": "C", "PYTHONUTF8": "0"},
        {"LC_ALL": "xx_YY.none"},
    ],
    ids=str,
)
def test_a_process_of_its_own(environment: dict[str, str], tmp_path: Path) -> None:
    """Also with names of files, and answers on stdin, that are in no encoding."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    env = {**clean, **environment, "HOME": str(tmp_path)}
    for argv, code in ((["zk", "ls", "--help"], 0), (["topic", "apply", "-f", b"/none/\xff\xe9.yaml"], 4)):
        done = subprocess.run(
            [sys.executable, "-m", "kctl", *argv], env=env, capture_output=True, input=b"\xff\n", check=False
        )
        assert (done.returncode, b"Traceback" in done.stderr) == (code, False), done.stderr
        assert b"\\udcff\\udce9.yaml" in done.stderr or code == 0


def test_a_real_locale(tmp_path: Path) -> None:
    """ISO 8859-1 as glibc has it, compiled into this test's folder."""
    folder = tmp_path / "en_US.ISO-8859-1"
    made = subprocess.run(
        ["localedef", "-c", "-i", "en_US", "-f", "ISO-8859-1", str(folder)], capture_output=True, check=False
    )  # fmt: skip
    name = "en_US.ISO-8859-1" if folder.is_dir() else "C"  # charmaps are a package of their own
    assert made.returncode is not None
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PYTHON"))}
    env = {**clean, "LOCPATH": str(tmp_path), "LC_ALL": name, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-m", "kctl", "--help"], env=env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"HOST:PORT," in done.stdout


@pytest.mark.parametrize("command", ["zk ls --help", "--version", "playbook list"])
@pytest.mark.parametrize(("target", "said"), [("&-", b"standard output is closed"), ("/dev/full", b"No space left")])
def test_a_stdout_that_takes_nothing(command: str, target: str, said: bytes) -> None:
    line = f'exec "$0" -m kctl {command} >{target}'
    done = subprocess.run(["sh", "-c", line, sys.executable], capture_output=True, check=False)
    assert done.returncode == 5
    assert said in done.stderr
    assert b"Traceback" not in done.stderr
