"""verify: which offsets a finding concerns, what an incomplete end means, and what cannot be known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kctl.commands.app import main
from kctl.errors import UsageError
from kctl.segment.verify.context import VerifyOptions
from kctl.segment.verify.findings import FileProblem
from kctl.segment.verify.verify import verify
from segment_defects import INDEX, PARTS, T, partition
from segment_defects_folders import beyond, log_dir, second_segment
from segment_files import batch, offset_index, positions, time_index, with_bytes, write

Capture = pytest.CaptureFixture[str]


def findings(path: Path, *, deep: bool = False) -> list[FileProblem]:
    return list(verify([path], VerifyOptions(deep=deep)).findings)


def codes(path: Path) -> list[str]:
    return [found.code for found in findings(path)]


# --- which offsets ----------------------------------------------------------------------------------------------------

WRONG_CRC = [with_bytes(part, 70, b"\xff") for part in PARTS]


@pytest.mark.parametrize(
    ("parts", "code", "concerned"),
    [
        ([PARTS[0], WRONG_CRC[1], PARTS[2]], "batch_crc", [(10, 19)]),
        ([WRONG_CRC[0], PARTS[1]], "batch_crc", [(0, 9)]),
        ([PARTS[0], with_bytes(PARTS[1], 0, b"\x01"), PARTS[2]], "offset_overflow", [(None, None)]),
        ([WRONG_CRC[0], WRONG_CRC[1], PARTS[2]], "batch_crc", [(0, 19), (0, 19)]),
        ([PARTS[0], PARTS[1], WRONG_CRC[2]], "batch_crc", [(20, None)]),
        ([PARTS[0], b"\xa5" * 100, PARTS[2]], "garbage", [(10, 19)]),
        ([PARTS[0], b"\xa5" * 100, PARTS[1]], "garbage", [(None, None)]),
        ([PARTS[0], PARTS[1][:-20]], "batch_incomplete", [(10, None)]),
        ([PARTS[0], bytes(100)], "zero_tail", [(None, None)]),
        ([PARTS[0], batch(10, 10, attributes=6)], "batch_codec", [(10, 19)]),
    ],
)
@pytest.mark.parametrize("deep", [False, True])
def test_the_offsets_between_what_is_whole(
    parts: list[bytes], code: str, concerned: list[tuple[int | None, int | None]], deep: bool, tmp_path: Path
) -> None:
    (folder,) = partition(tmp_path / "orders-0", parts, index=b"", timeindex=b"")
    found = [each for each in findings(folder, deep=deep) if each.code == code]
    assert [(each.first_offset, each.last_offset) for each in found] == concerned


def test_a_log_whose_name_does_not_tell_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / f"{7:020d}-{1:010d}.checkpoint"
    path.write_bytes(b"".join([WRONG_CRC[0], PARTS[1], WRONG_CRC[2]]))
    damaged = [each for each in findings(path) if each.code == "kraft_snapshot"]
    assert [(each.first_offset, each.last_offset) for each in damaged] == [(None, 9), (20, None)]


def test_offsets_in_the_table(tmp_path: Path, capsys: Capture) -> None:
    (folder,) = partition(tmp_path / "orders-0", [PARTS[0], WRONG_CRC[1], PARTS[2]])
    assert main(["segment", "verify", str(folder)]) == 1
    assert " 10..19  the CRC does not match\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("magic", "says"), [(0xFF, "; unknown magic -1; as magic 2"), (1, "; magic 1 is wrong; as magic 2")]
)
def test_only_the_magic_is_wrong(magic: int, says: str, tmp_path: Path) -> None:
    parts = [PARTS[0], with_bytes(PARTS[1], 16, bytes([magic])), PARTS[2]]
    (folder,) = partition(tmp_path / "orders-0", parts)
    (found,) = [each for each in findings(folder) if each.code == "batch_crc"]
    assert found.message == f"the CRC does not match{says}, the CRC matches"
    parts[1] = with_bytes(parts[1], 70, b"\xff")
    (folder,) = partition(tmp_path / "orders-0", parts)
    (found,) = [each for each in findings(folder) if each.code == "batch_crc"]
    assert "is right" not in found.message


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cut", "code"), [(-20, "batch_incomplete"), (None, "zero_tail")])
def test_indexes_that_point_behind_an_incomplete_end(cut: int | None, code: str, tmp_path: Path) -> None:
    last = PARTS[2][:cut] if cut else bytes(len(PARTS[2]))
    index, times = offset_index([(29, positions(PARTS)[2])]), time_index([(T + 209, 29)])
    (folder,) = partition(tmp_path / "orders-0", [*PARTS[:2], last], index=index, timeindex=times)
    found = findings(folder)
    assert [each.code for each in found] == [code, "index_position", "timeindex_offset"]
    assert "after an unclean shutdown, the broker truncates it" in found[0].effect
    assert "cleanshutdown" not in found[0].message
    (tmp_path / ".kafka_cleanshutdown").touch()
    found = findings(folder)
    assert "next start does not truncate it" in next(each for each in found if each.code == code).message


# --- what cannot be read ----------------------------------------------------------------------------------------------


def refuse(monkeypatch: pytest.MonkeyPatch, *ends: str) -> None:
    """Nobody may read files and folders with such names; as root nothing is forbidden, so the refusal is made up."""
    open_file, iterdir = os.open, Path.iterdir

    def opened(path: str | Path, *args: int, **options: int) -> int:
        if str(path).endswith(ends):
            raise PermissionError(13, "Permission denied", str(path))
        return open_file(path, *args, **options)

    def listed(path: Path) -> object:
        if str(path).endswith(ends):
            raise PermissionError(13, "Permission denied", str(path))
        return iterdir(path)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(Path, "iterdir", listed)


@pytest.mark.parametrize("what", [f"{0:020d}.log", "orders-0"])
def test_nothing_is_concluded_from_what_cannot_be_read(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (path,) = log_dir(tmp_path / "data", replication_offset=beyond(30), recovery_point_offset=beyond(30))
    refuse(monkeypatch, what)
    (found,) = findings(path)
    assert found.code == "unreadable"
    assert "run kctl as the broker's user" in found.message
    assert main(["segment", "verify", str(path)]) == 4
    told = capsys.readouterr()
    assert "1 file or folder unreadable: permission denied" in told.err
    assert "unreadable" in told.out


def test_another_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = log_dir(tmp_path / "data")
    (path / "lost+found").mkdir()
    refuse(monkeypatch, "lost+found")
    result = verify([path])
    assert [found.code for found in result.findings] == ["folder_name"]
    assert result.checked.partition_count == 1


def test_a_segment_in_the_middle_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no gap; and a gap elsewhere may be compaction's."""
    second_segment(tmp_path / "orders-0")
    write(tmp_path / "orders-0", 40, [batch(40, 10, base_timestamp=T + 400)], index=b"", timeindex=b"")
    refuse(monkeypatch, f"{30:020d}.log")
    assert set(codes(tmp_path / "orders-0")) - {"timeindex_last"} == {"unreadable"}
    write(tmp_path / "orders-0", 70, [batch(70, 10, base_timestamp=T + 700)], index=b"", timeindex=b"")
    assert set(codes(tmp_path / "orders-0")) - {"timeindex_last"} == {"unreadable", "segment_gap"}


def test_a_snapshot_behind_a_log_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder,) = partition(tmp_path / "orders-0")
    (folder / f"{90:020d}.snapshot").write_bytes(b"")
    assert "snapshot_offset" in codes(folder)
    refuse(monkeypatch, ".log")
    assert "snapshot_offset" not in codes(folder)


# --- what is no log's -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "is_one"),
    [
        (["polkit-1/rules.d/x", "ssl/y"], False),
        (["dpkg.log", "apt/z"], False),
        (["orders-0/00000000000000000000.log"], True),
        (["meta.properties"], True),
        (["polkit-1/x", ".kafka_cleanshutdown"], True),
    ],
)
def test_folders_without_anything_of_kafka(files: list[str], is_one: bool, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    if is_one:
        assert verify([tmp_path]).checked.log_dir_count == 1
        return
    with pytest.raises(UsageError, match="is not a log dir"):
        verify([tmp_path])


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path / "orders-0", 0, None, index=INDEX)
    (found,) = findings(tmp_path / "orders-0")
    assert "the records of this segment are missing" in found.message
    assert found.effect == "removes the index at startup"
