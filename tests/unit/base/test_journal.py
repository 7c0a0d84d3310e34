"""The one format of journals: what is appended is there, a torn end is cut off, one process at a time holds it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kctl.base import journal, run_files
from kctl.errors import Busy, InvalidFile, NotFound, OperationFailed, Refused


def test_what_is_appended_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run.jsonl"
    with journal.create(path) as held:
        held.append("begin", batches=[[1, 2]], name="ä\n")
        held.append("end")
    entries = journal.read(path)
    assert [entry["step"] for entry in entries] == ["begin", "end"]
    assert entries[0]["batches"] == [[1, 2]]
    assert entries[0]["name"] == "ä\n"
    assert entries[0]["at"].endswith("Z")
    assert path.stat().st_mode & 0o777 == 0o600


def test_each_entry_is_synced_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    with journal.create(tmp_path / "run.jsonl") as held:
        path = tmp_path / "run.jsonl"
        monkeypatch.setattr("kctl.base.journal.os.fsync", lambda _fd: synced.append(path.read_bytes()))
        held.append("begin")
    assert [json.loads(data)["step"] for data in synced] == ["begin"]


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_torn_last_line_is_cut_off_when_it_goes_on(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "run.jsonl"
    with journal.create(path) as held:
        held.append("begin")
        held.append("torn", text="abc")
    path.write_bytes(path.read_bytes()[:-cut])
    assert [entry["step"] for entry in journal.read(path)] == ["begin"]
    with journal.resume(path) as held:
        held.append("next")
    assert [entry["step"] for entry in journal.read(path)] == ["begin", "next"]


@pytest.mark.parametrize("line", [b"{}", b"[]", b"nonsense", b"\xff", b'{"step": 1}', b"[" * 100_000])
def test_a_line_that_is_no_entry_is_refused_and_left_alone(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"step":"begin"}\n' + line + b"\n")
    for function in (journal.read, journal.resume):
        with pytest.raises(InvalidFile, match="line 2"):
            function(path)
    assert path.read_bytes().endswith(line + b"\n")


def test_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    program = (
        "import sys; from pathlib import Path; from kctl.base import journal\n"
        "j = journal.create(Path(sys.argv[1])); j.append('begin'); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert journal.is_locked(path)
        with pytest.raises(Busy):
            journal.resume(path)
        assert journal.read(path)[0]["step"] == "begin"
        other.kill()
    assert not journal.is_locked(path)
    with journal.resume(path) as held:
        assert held.entries[0]["step"] == "begin"


def test_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    assert not journal.is_locked(path)
    with pytest.raises(NotFound):
        journal.read(path)
    with pytest.raises(NotFound):
        journal.resume(path)


def test_a_journal_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal.create(path).close()
    with pytest.raises(OperationFailed, match="exists"):
        journal.create(path)


def test_a_full_disk_leaves_no_half_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    with journal.create(path) as held:
        held.append("begin")

        def full(fd: int, data: bytes) -> None:
            real(fd, data[:5])
            raise OSError(28, "No space left on device")

        real = journal._write
        monkeypatch.setattr(journal, "_write", full)  # a full disk cannot be made on demand
        with pytest.raises(OperationFailed, match="No space left"):
            held.append("next")
        monkeypatch.setattr(journal, "_write", real)
        held.append("after")
    assert [entry["step"] for entry in journal.read(path)] == ["begin", "after"]


# --- what nobody else may have written ----------------------------------------------------------------------------


def _three(path: Path) -> list[bytes]:
    with journal.create(path) as held:
        held.append("begin", before=[1, 2, 3])
        held.append("moving", check="x")
        held.append("end")
    return path.read_bytes().splitlines(keepends=True)


def _changed(lines: list[bytes], how: str) -> list[bytes]:
    first, second, third = lines
    return {
        "a value": [first.replace(b"[1,2,3]", b"[1,2,9]"), second, third],
        "a value of the last": [first, second, third.replace(b"end", b"END")],
        "a blank": [first.replace(b",", b", ", 1), second, third],
        "a key of JSON twice": [first.replace(b"{", b'{"before":[9],', 1), second, third],
        "its check": [first, second.replace(b'"check":"', b'"check":"0', 1), third],
        "without a check": [first, second[: second.rindex(b',"check"')] + b"}\n", third],
        "a line gone": [first, third],
        "the first gone": [second, third],
        "in another order": [second, first, third],
        "a line twice": [first, second, second, third],
        "a line more": [first, b'{"step":"moving","at":""}\n', second, third],
        "a line more at the end": [first, second, third, b'{"step":"end","at":""}\n'],
        "an empty line": [first, b"\n", second, third],
        "line ends of Windows": [line.replace(b"\n", b"\r\n") for line in lines],
    }[how]


@pytest.mark.parametrize(
    "how",
    ["a value", "a value of the last", "a blank", "a key of JSON twice", "its check", "without a check", "a line gone",
     "the first gone", "in another order", "a line twice", "a line more", "a line more at the end", "an empty line",
     "line ends of Windows"],
)  # fmt: skip
def test_what_was_changed_by_hand_is_not_believed(tmp_path: Path, how: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(_changed(_three(path), how)))
    before = path.read_bytes()
    for function in (journal.read, journal.resume):
        with pytest.raises(InvalidFile, match=r"line \d of "):
            function(path)
    assert path.read_bytes() == before


def test_a_torn_end_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = _three(path)
    path.write_bytes(b"".join(lines)[:-5])
    with journal.resume(path) as held:
        held.append("end")
    assert [entry["step"] for entry in journal.read(path)] == ["begin", "moving", "end"]
    assert path.read_bytes().splitlines()[2].endswith(path.read_bytes()[-20:].strip())


def test_a_journal_of_an_older_kctl_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"step":"begin","at":"2026-01-01T00:00:00.000Z"}\n')
    with journal.resume(path) as held:
        held.append("moving")
    with journal.resume(path) as held:
        held.append("end")
    assert [entry["step"] for entry in journal.read(path)] == ["begin", "moving", "end"]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0].replace(b"begin", b"BEGIN") + b"".join(lines[1:]))
    assert journal.read(path)[0]["step"] == "BEGIN"  # nothing says what it was
    path.write_bytes(lines[0] + lines[1].replace(b"moving", b"going") + lines[2])
    with pytest.raises(InvalidFile, match="line 2"):
        journal.read(path)


def test_the_checks_are_not_part_of_the_entries(tmp_path: Path) -> None:
    _three(tmp_path / "run.jsonl")
    entries = journal.read(tmp_path / "run.jsonl")
    assert "check" not in entries[0]
    assert entries[1]["check"] == "x"  # a field of that name is another thing


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "link", "dangling link", "device"])
def test_what_is_no_file_is_named_and_does_not_hang(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run.jsonl"
    other = tmp_path / "other.jsonl"
    server = socket.socket(socket.AF_UNIX)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        server.bind(str(path))
    elif kind == "link":
        _three(other)
        path.symlink_to(other)
    elif kind == "dangling link":
        path.symlink_to(other)
    else:
        path.symlink_to("/dev/zero")
    with server:
        for function in (journal.read, journal.resume, journal.is_locked):
            with pytest.raises(InvalidFile, match=r"is a|is not a file"):
                function(path)
        with pytest.raises(InvalidFile):
            run_files.runs(tmp_path)


@pytest.mark.parametrize(
    ("file", "folder", "refused"),
    [
        (0o600, 0o700, None),
        (0o644, 0o755, None),
        (0o444, 0o755, None),
        (0o620, 0o700, "other users can write to the journal"),
        (0o602, 0o700, "other users can write to the journal"),
        (0o666, 0o777, "other users can write to the journal"),
        (0o600, 0o770, "other users can write to the folder"),
        (0o600, 0o757, "other users can write to the folder"),
        (0o600, 0o1777, None),
    ],
)
def test_files_that_others_may_write_are_refused(tmp_path: Path, file: int, folder: int, refused: str | None) -> None:
    where = tmp_path / "runs"
    path = where / "run.jsonl"
    _three(path)
    path.chmod(file)
    where.chmod(folder)
    for function in (journal.read, run_files.runs):
        argument = path if function is journal.read else where
        if refused is None:
            assert function(argument)
            continue
        with pytest.raises(Refused, match=refused) as caught:
            function(argument)
        assert "chmod go-w" in (caught.value.hint or "")


@pytest.mark.parametrize("what", ["file", "folder"])
def test_files_of_another_user_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    where = tmp_path / "runs"
    path = where / "run.jsonl"
    _three(path)
    me = os.geteuid()
    monkeypatch.setattr("kctl.base.journal.os.geteuid", lambda: me + 4711)
    if me == 0:
        os.chown(path if what == "file" else where, 4712, -1)
    with pytest.raises(Refused, match="belongs to user"):
        journal.read(path)


# --- the order of runs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "there",
    [
        "20991231T235959.999Z-1.jsonl",
        "20261127T180000.000Z-9.jsonl",
        "99991231T235959.999Z-1.jsonl",
        "00010101T000000.000Z-1.jsonl",
        "20260230T000000.000Z-1.jsonl",
        "no-name.jsonl",
    ],
)
def test_a_new_run_comes_last_whatever_the_clock_says(tmp_path: Path, there: str) -> None:
    (tmp_path / there).touch()
    name = run_files.new_name(tmp_path)
    if there.startswith(("99991231", "no-name")):
        assert name.endswith(f"-{os.getpid()}.jsonl")  # there is no time behind that one
        return
    assert name > there
    (tmp_path / name).touch()
    assert run_files.new_name(tmp_path) > name


def test_nothing_is_begun_where_others_can_write(tmp_path: Path) -> None:
    where = tmp_path / "runs"
    with run_files.one_at_a_time(where):
        assert where.stat().st_mode & 0o777 == 0o700
    where.chmod(0o777)
    with pytest.raises(Refused, match="other users can write to the folder"), run_files.one_at_a_time(where):
        raise AssertionError
