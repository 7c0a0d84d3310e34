"""kctl segment find: the answers are those of reading everything, whatever the indexes say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from kctl.commands.app import main
from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.find.find import SearchReason, SearchResult, find_offset, find_timestamp, open_log, records, scan
from kctl.segment.find.find_key import every_record, find_key
from kctl.segment.format.index_lookup import offset_lookup, time_lookup
from kctl.segment.format.record import StoredRecord
from kctl.segment.log.partition_log import PartitionLog, partition_log, partition_logs
from kctl.segment.log.source import Source
from segment_files import BASE_TIMESTAMP, Rec, batch, marker, offset_index, positions, time_index, with_bytes, write

pytestmark = pytest.mark.usefixtures("one_command_tree")
DATA = Path(__file__).parents[2] / "data" / "segments"
FOLDERS = sorted(
    {str(log.parent.relative_to(DATA)) for log in DATA.rglob("*.log") if log.stat().st_size} - {"corrupt/names"}
)
HEALTHY = [name for name in FOLDERS if not name.startswith("corrupt")]


def every_known(log: PartitionLog) -> list[tuple[StoredRecord, bool]]:
    """(record, of a control batch) of a log, read from front to back without any index."""
    found = SearchResult("")
    known = []
    for files in log.segments:
        with open_log(files) as source:
            for each in scan(source, 0, found):
                known += [(record, each.control) for record in records(source, each, found, MAX_MESSAGE_BYTES)]
    return known


@lru_cache
def known_of(name: str) -> list[tuple[StoredRecord, bool]]:
    return every_known(partition_log(DATA / name))


@pytest.mark.parametrize("name", FOLDERS)
def test_offsets(name: str) -> None:
    log, known = partition_log(DATA / name), [record.offset for record, _ in known_of(name)]
    step = max(len(known) // 12, 1)
    for offset in sorted({0, 1, *(each + by for each in known[::step] for by in (0, 1))}):
        expected = next((each for each in known if each >= offset), None)
        for indexes in (True, False):
            found = find_offset(log, offset, indexes=indexes)
            assert (found.place and found.place.record.offset) == expected, (offset, found)
            assert found.exact == (expected == offset)
            if name in HEALTHY:
                assert not found.warnings
                assert not found.damage


@pytest.mark.parametrize("name", FOLDERS)
def test_timestamps(name: str) -> None:
    log, known = partition_log(DATA / name), [record for record, _ in known_of(name)]
    step = max(len(known) // 12, 1)
    for timestamp in sorted({each.timestamp + by for each in known[::step] for by in (-1, 0, 1)}):
        expected = next((each.offset for each in known if each.timestamp >= timestamp), None)
        found = find_timestamp(log, timestamp)
        assert (found.place and found.place.record.offset) == expected, (timestamp, found)
        if name in HEALTHY:
            assert not found.warnings


@pytest.mark.parametrize("name", HEALTHY)
def test_keys(name: str) -> None:
    log = partition_log(DATA / name)
    keys = {record.key for record, control in known_of(name) if not control and record.key is not None}
    for key in sorted(keys):
        expected = [each.offset for each, control in known_of(name) if each.key == key and not control]
        newest = find_key(log, key)
        assert newest.place is not None
        assert newest.place.record.offset == expected[-1]
        assert [each.record.offset for each in every_record(log, key, SearchResult(""))] == expected


def test_markers_of_transactions_have_no_key() -> None:
    (key,) = {record.key for record, control in known_of("v2/txn") if control and record.key == b"\0\0\0\1"}
    assert key is not None
    assert find_key(partition_log(DATA / "v2/txn"), key).place is None


# --- indexes that lie ------------------------------------------------------------------------------------------------

PARTS = [batch(10 * number, 10, base_timestamp=BASE_TIMESTAMP + 100 * number) for number in range(6)]
AT = positions(PARTS)


def _log(folder: Path, **companions: bytes) -> PartitionLog:
    write(folder, 0, PARTS, **companions)
    return partition_log(folder)


GOOD_OFFSETS = offset_index([(19, AT[1]), (39, AT[3])])
GOOD_TIMES = time_index([(BASE_TIMESTAMP + 109, 19), (BASE_TIMESTAMP + 309, 39)])


@pytest.mark.parametrize(
    ("index", "warns"),
    [
        (GOOD_OFFSETS, None),
        (GOOD_OFFSETS + bytes(10 << 20), None),  # as a broker allocates it
        (b"", None),
        (bytes(1 << 20), None),
        (GOOD_OFFSETS + b"\0\0\0", "3 extra bytes after the last whole entry"),
        (offset_index([(19, AT[1] + 1)]), "no valid batch"),
        (offset_index([(19, 1 << 30)]), f"the log has {sum(map(len, PARTS))} bytes"),
        (offset_index([(19, -5)]), "position -5"),
        (offset_index([(19, AT[3])]), "the batch there starts at 30"),
        (offset_index([(19, AT[0])]), None),  # too early, but true
    ],
)
def test_a_wrong_offset_index_is_told_and_not_believed(tmp_path: Path, index: bytes, warns: str | None) -> None:
    log = _log(tmp_path / "p-0", index=index, timeindex=GOOD_TIMES)
    for offset in range(60):
        found = find_offset(log, offset)
        assert found.place is not None
        assert (found.place.record.offset, found.place.position) == (offset, AT[offset // 10])
    found = find_offset(log, 25)
    assert (len(found.warnings), warns or "") == (int(warns is not None), warns or "")
    assert all(warns in each for each in found.warnings if warns)
    assert find_timestamp(log, BASE_TIMESTAMP + 305).place == find_offset(log, 35).place


@pytest.mark.parametrize(
    ("index", "warns"),
    [
        (GOOD_TIMES, None),
        (GOOD_TIMES + bytes(12 << 18), None),
        (b"", None),
        (time_index([(BASE_TIMESTAMP + 109, 39)]), "the batch there has 2023-11-14T22:13:20.309Z"),
        (time_index([(BASE_TIMESTAMP + 1, 70)]), "there is no batch with this offset"),
        (time_index([(BASE_TIMESTAMP + 1, -3)]), "the segment starts at 0"),
        (GOOD_TIMES + b"\1", "1 extra bytes after"),
        # Its last entry is true, and it hides what comes behind: as far as it reaches it is scanned.
        (time_index([(BASE_TIMESTAMP + 109, 19)]), None),
    ],
)
def test_a_wrong_time_index_is_told_and_not_believed(tmp_path: Path, index: bytes, warns: str | None) -> None:
    log = _log(tmp_path / "p-0", index=GOOD_OFFSETS, timeindex=index)
    for offset in range(60):
        found = find_timestamp(log, BASE_TIMESTAMP + offset // 10 * 100 + offset % 10)
        assert found.place is not None
        assert found.place.record.offset == offset
    found = find_timestamp(log, BASE_TIMESTAMP + 505)
    assert [warns in each for each in found.warnings if warns] == [True] * (warns is not None)


def test_missing_indexes_are_told(tmp_path: Path) -> None:
    log = _log(tmp_path / "p-0")
    assert [each.split(" has ")[1] for each in find_offset(log, 25).warnings] == [
        "no .index: scanning it from its start"
    ]
    assert "no .timeindex" in find_timestamp(log, BASE_TIMESTAMP).warnings[0]
    assert not find_offset(log, 25, indexes=False).warnings


def test_a_folder_in_place_of_an_index(tmp_path: Path) -> None:
    log = _log(tmp_path / "p-0", timeindex=GOOD_TIMES)
    log.segments[0].log.with_suffix(".index").mkdir()  # type: ignore[union-attr]
    found = find_offset(partition_log(tmp_path / "p-0"), 25)
    assert found.place is not None
    assert "is a folder" in found.warnings[0]


def test_what_is_read_of_a_large_index_is_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = 300_000
    (tmp_path / "i").write_bytes(b"".join(number.to_bytes(4, "big") * 2 for number in range(1, entries + 1)))
    read = []
    real = os.pread

    def counted(fd: int, length: int, at: int) -> bytes:
        read.append(length)
        return real(fd, length, at)

    monkeypatch.setattr(os, "pread", counted)
    monkeypatch.delattr(os, "preadv")
    with Source(tmp_path / "i") as source:
        entry, hit = offset_lookup(source, 500, 500 + 177_777)
    assert entry == (500 + 177_777, 177_777)
    assert hit == (177_776, entries, 0)
    assert sum(read) < 1 << 18


@pytest.mark.parametrize(("asked", "number"), [(BASE_TIMESTAMP - 1, None), (BASE_TIMESTAMP + 200, 0), (1 << 62, 1)])
def test_time_lookup(tmp_path: Path, asked: int, number: int | None) -> None:
    (tmp_path / "i").write_bytes(GOOD_TIMES + bytes(120))
    with Source(tmp_path / "i") as source:
        entry, hit = time_lookup(source, 0, asked)
    assert (hit.number, hit.entries) == (number, 2)
    assert (entry is None) == (number is None)


# --- reasons ---------------------------------------------------------------------------------------------------------


def test_reasons(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    write(folder, 100, [batch(100, 5), batch(110, [Rec(offset=0), Rec(offset=4)])], index=b"", timeindex=b"")
    log = partition_log(folder)
    reasons = {offset: find_offset(log, offset).reason for offset in (5, 100, 107, 112, 115, 400)}
    assert reasons == {
        5: "offset 5 is below the start of the log",
        100: None,
        107: "offset 107 does not exist: removed by compaction, or never used",
        112: "offset 112 does not exist: removed by compaction, or never used",
        115: "it is the log end offset, the offset of the next record",
        400: "it is above the log end offset 115",
    }
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n2\nother 0 7\norders 0 103\n")
    log = partition_log(folder)
    assert find_offset(log, 101).reason == ("offset 101 is below the log start offset 103: brokers no longer return it")
    first = find_timestamp(log, 0).place
    assert first is not None
    assert first.record.offset == 103


def test_damage_is_the_reason_where_it_is_on_the_way() -> None:
    """Offset 15 is in the damaged batch; behind it nothing is said of compaction either."""
    for name, offset, what, position in (
        ("bitflip-attributes", 15, "batch", 1643),
        ("size-huge", 15, "part", 1643),
        ("bad-gzip-crc-ok", 15, "batch", 378),
        ("magic-minus1", 15, "batch", 1643),
        ("record-length-bad-crc-ok", 15, "batch", 1643),
        ("count-minus1-crc-ok", 23, "batch", 1643),
    ):
        for indexes in (True, False):
            found = find_offset(partition_log(DATA / "corrupt" / name), offset, indexes=indexes)
            assert found.reason_code == SearchReason.DAMAGED, name
            assert found.reason == f"offset {offset} is in the damaged {what} 12–23 at position {position}"
    found = find_offset(partition_log(DATA / "corrupt/count-minus1-crc-ok"), 22)
    assert (found.exact, found.reason, found.damage) == (True, None, [])


def test_damage_before_a_good_offset_is_no_reason(tmp_path: Path) -> None:
    bad = with_bytes(PARTS[1], 30, b"\xff")
    write(tmp_path / "p-0", 0, [PARTS[0], bad, PARTS[2], PARTS[4]], index=b"", timeindex=b"")
    log = partition_log(tmp_path / "p-0")
    assert find_offset(log, 35).reason_code == SearchReason.NOT_THERE
    write(tmp_path / "p-0", 0, [PARTS[0], bad, with_bytes(PARTS[2], 40, b"\xff"), PARTS[4]], index=b"", timeindex=b"")
    assert find_offset(log, 35).reason == f"offset 35 is in the damaged part 10–39 at position {AT[1]}"
    write(tmp_path / "p-0", 0, [PARTS[0], PARTS[1][:50]], index=b"", timeindex=b"")
    found = find_offset(log, 15)
    assert found.reason == f"offset 15 may be in the damaged part from 10 on, at position {AT[1]}"


def test_newest_of_a_key_may_be_a_tombstone(tmp_path: Path) -> None:
    write(tmp_path / "p-0", 0, [batch(0, [Rec(b"a"), Rec(b"b"), Rec(b"a", None)], codec="zstd")])
    found = find_key(partition_log(tmp_path / "p-0"), b"a")
    assert found.place is not None
    assert (found.place.record.offset, found.place.record.value) == (2, None)
    assert "tombstone" in (found.reason or "")


def test_segments_before_the_newest_with_the_key_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "p-0"
    write(folder, 0, [batch(0, [Rec(b"a")] * 100)])
    write(folder, 100, [batch(100, [Rec(b"a"), Rec(b"b")])])
    found = find_key(partition_log(folder), b"a")
    assert found.place is not None
    assert (found.place.record.offset, found.scanned_batches) == (100, 1)


# --- the command -----------------------------------------------------------------------------------------------------


def test_damage_on_the_way_is_exit_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = with_bytes(PARTS[1], 30, b"\xff")
    write(tmp_path / "p-0", 0, [PARTS[0], bad, *PARTS[2:]], index=b"", timeindex=b"")
    assert main(["segment", "find", str(tmp_path / "p-0"), "--offset", "25", "-o", "json"]) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["place"]["record"]["offset"] == 25
    assert f"at {AT[1]}: the CRC" in found["damage"][0]
    assert "skipped damage in 1 place" in err


def test_a_record_in_a_batch_with_a_wrong_crc_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = with_bytes(PARTS[1], 30, b"\xff")
    write(tmp_path / "p-0", 0, [PARTS[0], bad, *PARTS[2:]], index=b"", timeindex=b"")
    assert main(["segment", "find", str(tmp_path / "p-0"), "--offset", "15"]) == 1
    out, err = capsys.readouterr()
    assert re.search(r"valid +no: the CRC of the batch does not match", out)
    assert "the record was found, but the CRC of the batch does not match" in err
    assert "skipped damage" not in err
    assert main(["segment", "find", str(tmp_path / "p-0"), "--offset", "15", "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["exact"], found["place"]["record"]["valid"], found["reason_code"]) == (True, False, None)


def test_a_log_dir_names_its_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(5):
        write(tmp_path / f"p-{number}", 0, [PARTS[0]])
    assert main(["segment", "find", str(tmp_path), "--offset", "1"]) == 2
    assert "it is a log dir: pass one of its folders: p-0, p-1, p-2 and 2 more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--offset", "99999"], 4, "offset 99999 was not found: it is above the log end offset 60"),
        (["--key", "nobody"], 4, "the key nobody was not found: no record has this key"),
        (["--key", "nobody", "--all"], 4, "the key nobody was not found"),
        (["--timestamp", "2099-01-01"], 4, "a record at or after 2099-01-01T00:00:00.000Z was not found"),
        ([], 2, "one of --offset, --timestamp and --key is required"),
        (["--offset", "1", "--key", "a"], 2, "--offset, --timestamp and --key cannot be combined"),
        (["--offset", "1", "--all"], 2, "--all requires --key"),
        (["--timestamp", "yesterday"], 2, "is not a time"),
        (["--key", "k"], 0, ""),
        (["--timestamp", str(BASE_TIMESTAMP)], 0, ""),
    ],
)
def test_exit_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], code: int, message: str
) -> None:
    _log(tmp_path / "p-0", index=GOOD_OFFSETS, timeindex=GOOD_TIMES)
    assert main(["segment", "find", str(tmp_path / "p-0"), *args]) == code
    assert message in capsys.readouterr().err


def test_several_partitions_give_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        write(tmp_path / f"p-{number}", 0, [batch(0, [Rec(f"k{number}".encode())])], index=b"", timeindex=b"")
    names = [str(tmp_path / f"p-{number}") for number in range(3)]
    assert main(["segment", "find", *names, "--key", "k1", "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["place"] and row["place"]["record"]["key"] for row in rows] == [None, "k1", None]
    assert main(["segment", "find", *names, "--key", "k9"]) == 4
    assert "in 3 partitions" in capsys.readouterr().err


def test_files_of_a_partition_are_one_log(tmp_path: Path) -> None:
    paths = [write(tmp_path / "p-0", 0, PARTS[:3]), write(tmp_path / "p-0", 30, PARTS[3:])]
    (log,) = partition_logs([paths[1], paths[0]])
    assert [files.base_offset for files in log.segments] == [0, 30]
    found = find_offset(log, 31)
    assert found.place is not None
    assert found.place.segment == str(paths[1])


def test_a_control_record_can_be_found(tmp_path: Path) -> None:
    write(tmp_path / "p-0", 0, [batch(0, 2), marker(2, (7, 0))], index=b"", timeindex=b"")
    found = find_offset(partition_log(tmp_path / "p-0"), 2)
    assert found.place is not None
    assert found.place.record.control == "COMMIT"


def test_start_up_is_short(tmp_path: Path) -> None:
    """What a search does not need is not imported: that would take longer than the search."""
    _log(tmp_path / "p-0", index=GOOD_OFFSETS, timeindex=GOOD_TIMES)
    code = (
        "import sys; from kctl.commands.app import main; "
        f"main(['segment', 'find', {str(tmp_path / 'p-0')!r}, '--offset', '25']); "
        "print({'rich', 'yaml', 'kafka', 'lz4', 'zstandard', 'cramjam'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.splitlines()[-1] == "set()"
