"""Every option that names a file to write: what is there is not replaced unasked, and what is no file stays."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from command_tree import every_command
from kctl.commands import app

# Command lines by the option that names the file; refused before a cluster is asked.
SERVER = ("--bootstrap-server", "127.0.0.1:9")
COMMANDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("cluster export", "--out"): ("cluster", "export", *SERVER),
    ("group export", "--out"): ("group", "export", "g", *SERVER),
    ("leader balance", "--out"): ("leader", "balance", *SERVER),
    ("topic reassign plan", "--out"): ("topic", "reassign", "plan", "--remove-broker", "1", *SERVER),
    ("playbook run", "--junit"): ("playbook", "run", "h.yaml"),
    ("playbook resume", "--junit"): ("playbook", "resume", "none"),
    ("history report", "--html"): ("history", "report", "--store", "store", "--last", "1h"),
    ("spark report", "--html"): ("spark", "report", "--store", "store", "--last", "1h"),
    ("spark bundle", "--out"): ("spark", "bundle"),
}
# These have a rule of their own: what is not acknowledged is kept in a new file only.
OTHERS = {("produce", "--failed-file")}
PLAYBOOK = "playbook: 1\nname: h\nsteps:\n- assert: 1 == 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "h.yaml").write_text(PLAYBOOK)
    (tmp_path / "store").mkdir()
    (tmp_path / "out.tgz").write_text("precious")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_the_table_has_all_of_them() -> None:
    found = {
        (path, option)
        for path, command in every_command()
        for param in command.params
        for option in param.opts
        if option in {"--out", "--html", "--junit"} or option.endswith("-file")
        if "rite" in (param.help or "") or "ave" in (param.help or "") or option in {"--out", "--failed-file"}
    }
    assert found == COMMANDS.keys() | OTHERS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_is_not_replaced_unasked(
    command: tuple[str, str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = app.main([*COMMANDS[command], command[1], "out.tgz"])
    said = capsys.readouterr()
    assert (code, said.out) == (4, "")
    assert "out.tgz exists" in said.err
    assert " to replace " in said.err
    assert (folder / "out.tgz").read_text() == "precious"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("path", ["folder.tgz", "none/out.tgz", "loop.tgz"])
def test_what_cannot_be_written_is_said_before_any_work(
    command: tuple[str, str], path: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "folder.tgz").mkdir()
    (folder / "loop.tgz").symlink_to("loop.tgz")
    assert app.main([*COMMANDS[command], command[1], path, "--yes"]) == 2
    assert path.partition("/")[0] in capsys.readouterr().err


@pytest.mark.parametrize("yes", [(), ("--yes",)])
def test_a_pipe_that_nobody_reads_stays(
    yes: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kctl.base.output_file.PIPE_WAIT_S", 0.1)
    os.mkfifo("pipe")
    assert app.main(["playbook", "run", "h.yaml", "--junit", "pipe", *yes]) == 5
    assert "no reader opened the pipe" in capsys.readouterr().err
    assert stat.S_ISFIFO((folder / "pipe").lstat().st_mode)


def test_an_own_report_is_made_anew_and_another_one_is_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["playbook", "run", "h.yaml", "--junit", "j.xml"]
    assert app.main(argv) == 0
    assert app.main(argv) == 0
    (folder / "j.xml").write_text('<?xml version="1.0"?>\n<testsuites name="pytest tests"></testsuites>')
    assert app.main(argv) == 4
    assert "pytest tests" in (folder / "j.xml").read_text()
    assert app.main([*argv, "--yes"]) == 0
    assert 'name="h"' in (folder / "j.xml").read_text()


def test_a_link_is_named_and_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "link.xml").symlink_to("out.tgz")
    argv = ["playbook", "run", "h.yaml", "--junit", "link.xml"]
    assert app.main(argv) == 4
    assert f"link.xml (a link to {folder}/out.tgz) exists" in capsys.readouterr().err
    assert app.main([*argv, "--yes"]) == 0
    assert (folder / "link.xml").is_symlink()
    assert "testsuites" in (folder / "out.tgz").read_text()
