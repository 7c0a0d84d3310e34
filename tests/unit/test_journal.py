"""The one format of journals: what is appended is there, a torn end is cut off, one process at a time holds it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kctl import journal
from kctl.errors import Busy, InvalidFile, NotFound, OperationFailed


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
        monkeypatch.setattr("kctl.journal.os.fsync", lambda _fd: synced.append((tmp_path / "run.jsonl").read_bytes()))
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
        "import sys; from pathlib import Path; from kctl import journal\n"
        "j = journal.create(Path(sys.argv[1])); j.append('begin'); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert journal.held(path)
        with pytest.raises(Busy):
            journal.resume(path)
        assert journal.read(path)[0]["step"] == "begin"
        other.kill()
    assert not journal.held(path)
    with journal.resume(path) as held:
        assert held.entries[0]["step"] == "begin"


def test_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    assert not journal.held(path)
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
