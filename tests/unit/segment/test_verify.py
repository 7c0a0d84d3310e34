"""verify: each code of a finding is made on purpose, and files of real brokers give no others than they should."""

from __future__ import annotations

import os
import re
import struct
import tracemalloc
from pathlib import Path

import pytest

from control_records import snapshot
from kctl.errors import NotAuthorized, NotFound, UsageError
from kctl.segment.verify.context import VerifyOptions
from kctl.segment.verify.findings import CODES, ProblemSeverity
from kctl.segment.verify.verify import verify
from segment_defects import AT, CASES, INDEX, PARTS, TIMES, TXN, Build, T, a_bit_is_flipped, partition, transactional
from segment_defects_folders import beyond, log_dir
from segment_files import (
    batch,
    leader_epochs,
    marker,
    offset_index,
    positions,
    producer_snapshot,
    time_index,
    transaction_index,
    with_bytes,
    write,
)

DATA = Path(__file__).parents[2] / "data" / "segments"


def codes(paths: list[Path], **options: int) -> set[str]:
    return {found.code for found in verify(paths, VerifyOptions(**options)).findings}  # type: ignore[arg-type]


@pytest.mark.parametrize(("code", "build"), CASES, ids=[f"{code}-{build.__name__}" for code, build in CASES])
def test_a_defect_is_found(code: str, build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.segment.verify.transactions.MAX_OPEN", 20)
    folder = tmp_path / "orders-0"
    folder.mkdir()
    result = verify(build(folder), VerifyOptions(deep=True, max_message_bytes=5 << 20))
    found = next(each for each in result.findings if each.code == code)
    assert found.message
    assert result.healthy == (not result.errors and not result.warnings)


def test_each_code_has_a_case() -> None:
    assert {code for code, _ in CASES} == set(CODES)


@pytest.mark.parametrize("name", ["an_entry_within_a_batch", "a_bit_is_flipped", "a_time_entry_behind_the_log"])
def test_a_defect_gives_one_finding(name: str, tmp_path: Path) -> None:
    """One cause is said once, at the place where it is."""
    build = next(build for _, build in CASES if build.__name__ == name)
    result = verify(build(tmp_path / "orders-0"))
    assert len(result.findings) == 1, result.findings


def test_where_a_finding_is(tmp_path: Path) -> None:
    folder = a_bit_is_flipped(tmp_path / "orders-0")[0]
    (found,) = verify([folder]).findings
    assert found.file == str(folder / f"{0:020d}.log")
    assert (found.position, found.offset, found.severity) == (AT[1], 10, ProblemSeverity.ERROR)


def test_healthy_files_and_what_was_checked(tmp_path: Path) -> None:
    paths = log_dir(tmp_path / "data", replication_offset=beyond(30), recovery_point_offset=beyond(30))
    (tmp_path / "data" / "orders-0" / "leader-epoch-checkpoint").write_bytes(leader_epochs([(0, 0)]))
    result = verify(paths, VerifyOptions(deep=True))
    assert result.findings == ()
    assert result.healthy
    checked = result.checked
    assert (checked.log_dir_count, checked.partition_count, checked.segments, checked.batches, checked.records) == (
        1,
        1,
        1,
        3,
        30,
    )
    assert checked.size_bytes == len(b"".join(PARTS))
    assert checked.files == 7


def test_what_a_broker_preallocates_is_right(tmp_path: Path) -> None:
    assert codes(partition(tmp_path / "orders-0", index=INDEX + bytes(10000), timeindex=TIMES + bytes(12000))) == set()


def test_an_active_segment_without_records_needs_no_index(tmp_path: Path) -> None:
    """A broker makes them with the first append."""
    partition(tmp_path / "orders-0")
    write(tmp_path / "orders-0", 30, b"")
    assert codes([tmp_path / "orders-0"]) == set()


def test_entries_of_a_follower(tmp_path: Path) -> None:
    """It appends several batches at once, and indexes the first one's position with the last one's offset."""
    parts = [batch(number * 10, 10, base_timestamp=T + number * 100) for number in range(4)]
    index = offset_index([(29, positions(parts)[1]), (39, positions(parts)[3])])
    times = time_index([(T + 209, 29), (T + 309, 39)])
    assert codes(partition(tmp_path / "orders-0", parts, index=index, timeindex=times)) == set()


def test_a_follower_knows_later_transactions(tmp_path: Path) -> None:
    """The last stable offset of an entry is the first offset of one that began behind the marker."""
    parts = [TXN[0], TXN[1], batch(11, 2), batch(13, 2, producer=(8, 0, 0), transactional=True)]
    assert codes(transactional(tmp_path / "orders-0", transaction_index([(7, 0, 10, 13)]), parts)) == set()


def test_a_transaction_that_began_earlier(tmp_path: Path) -> None:
    """In a segment that is looked at alone: judged with the snapshot at its base offset, not judged without."""
    path = write(tmp_path, 100, [marker(100, (7, 0), commit=False)], index=b"", timeindex=b"",
                 txnindex=transaction_index([(7, 40, 100, 101)]))  # fmt: skip
    assert codes([path]) == set()
    path.with_suffix(".snapshot").write_bytes(producer_snapshot([(7, 0, 0, 99, 0, T, 0, 40)]))
    assert codes([path]) == set()
    path.with_suffix(".snapshot").write_bytes(producer_snapshot([(7, 0, 0, 99, 0, T, 0, 50)]))
    assert codes([path]) == {"txnindex_entry"}
    path.with_suffix(".snapshot").write_bytes(producer_snapshot())
    assert codes([path]) == {"txnindex_extra"}


def test_a_transaction_over_two_segments(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    write(folder, 0, [TXN[0]], index=b"", timeindex=time_index([(T + 9, 9)]))
    entries = transaction_index([(7, 0, 10, 11)])
    snapshot = producer_snapshot([(7, 0, 9, 9, 9, T, 0, 0)])
    write(folder, 10, [TXN[1]], index=b"", timeindex=b"", txnindex=entries, snapshot=snapshot)
    assert codes([folder]) == set()


def test_batches_before_the_log_start_have_no_epoch(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_bytes(leader_epochs([(5, 20), (7, 40)]))
    parts = [*PARTS[:2], batch(20, 10, epoch=5, base_timestamp=T + 200)]
    assert codes(partition(tmp_path / "orders-0", parts)) == set()


# --- files of real brokers --------------------------------------------------------------------------------------------

HEALTHY = sorted({path.parent for kind in ("v0", "v1", "v2", "internal") for path in DATA.glob(f"{kind}/*/*.log")})


@pytest.mark.parametrize("folder", HEALTHY, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.parametrize("deep", [False, True])
def test_files_of_a_broker_are_fine(folder: Path, deep: bool) -> None:
    result = verify([folder], VerifyOptions(deep=deep))
    assert {found.code for found in result.findings} <= {"unknown_file", "segment_gap"}, result.findings
    assert result.healthy
    assert result.checked.batches


def test_the_log_dir_of_a_broker_is_fine() -> None:
    """Its partitions were left out."""
    assert codes([DATA / "logdir-28"]) == {"checkpoint_folder"}


@pytest.mark.parametrize("path", sorted(DATA.glob("internal/kraft*/*.checkpoint")), ids=lambda path: path.name)
def test_snapshots_of_kraft_are_fine(path: Path) -> None:
    assert codes([path], deep=True) == set()


# Folder → codes without and with --deep; what is not in the first list needs --deep.
CORRUPT = {
    "bad-gzip-crc-ok": ({"index_missing", "timeindex_missing"}, {"records"}),
    "bad-snappy-crc-ok": ({"index_missing", "timeindex_missing"}, {"records"}),
    "bitflip-attributes": ({"batch_crc"}, set()),
    "count-minus1-crc-ok": (set(), {"records"}),
    "duplicate-batch": ({"offset_order"}, set()),
    "index-empty": (set(), set()),  # with index.interval.bytes at its default a broker would make no entry either
    "index-missing": ({"index_missing"}, set()),
    "index-offset-wrong": ({"index_offset"}, set()),
    "index-pos-wrong": ({"index_position"}, set()),
    "log-missing": ({"log_missing"}, set()),
    "magic-minus1": ({"batch_crc"}, set()),
    "names": ({"file_name", "leftover"}, set()),
    "record-length-bad-crc-ok": (set(), {"records"}),
    "size-huge": ({"garbage"}, set()),
    "size-too-small": ({"garbage"}, set()),
    "timeindex-last-below-first": ({"timeindex_order"}, set()),
    "timeindex-offset-not-found": ({"timeindex_offset"}, set()),
    "timeindex-out-of-order": ({"timeindex_order"}, set()),
    "trunc-header": ({"batch_incomplete", "index_position", "timeindex_offset"}, set()),
    "trunc-size-only": ({"batch_incomplete", "index_position", "timeindex_offset"}, set()),
    "zero-tail": ({"zero_tail"}, set()),
}


@pytest.mark.parametrize("name", sorted(path.name for path in (DATA / "corrupt").iterdir()))
def test_recorded_damage_is_found(name: str) -> None:
    shallow, more = CORRUPT[name]
    assert codes([DATA / "corrupt" / name]) - {"unknown_file"} == shallow
    assert codes([DATA / "corrupt" / name], deep=True) - {"unknown_file"} == shallow | more


# --- paths ------------------------------------------------------------------------------------------------------------


def test_a_path_that_is_given_twice(tmp_path: Path) -> None:
    folder = partition(tmp_path / "orders-0")[0]
    assert verify([folder, folder]).checked.partition_count == 1


def test_a_companion_stands_for_its_segment(tmp_path: Path) -> None:
    folder = partition(tmp_path / "orders-0")[0]
    files = [folder / f"{0:020d}{suffix}" for suffix in (".log", ".index", ".timeindex")]
    result = verify(files)
    assert (result.checked.segments, result.findings) == (1, ())
    assert verify(files[1:2]).checked.batches == 3


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("leader-epoch-checkpoint", b"x\n", {"epochs"}),
        ("partition.metadata", b"version: 0\n", {"partition_metadata"}),
        ("meta.properties", b"version=7\n", {"meta_properties"}),
        ("replication-offset-checkpoint", b"0\n1\n", {"checkpoint"}),
        (f"{7:020d}.snapshot", b"", {"snapshot"}),
        (f"{0:020d}.log.deleted", b"\1" * 90, {"batch_incomplete"}),
        (f"{7:020d}-{1:010d}.checkpoint", PARTS[0], {"kraft_snapshot_header"}),
        (f"{7:020d}-{1:010d}.checkpoint", snapshot(), set()),
        (f"{7:020d}-{1:010d}.checkpoint", snapshot()[:-1], {"kraft_snapshot_footer"}),
        ("quorum-state", b"{}", {"quorum_state"}),
    ],
)
def test_single_files(name: str, data: bytes, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    assert codes([tmp_path / name]) == expected


@pytest.mark.parametrize(
    ("name", "error"),
    [("none.log", NotFound), (f"{0:020d}.log", NotFound), ("notes.txt", UsageError), ("empty", UsageError)],
)
def test_paths_that_are_none_of_a_log(name: str, error: type[Exception], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    with pytest.raises(error):
        verify([tmp_path / name])


def test_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root nothing is forbidden, so the refusal is made up."""
    folder = partition(tmp_path / "orders-0")[0]

    def refuse(path: object, *_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *a, **k: refuse(path) if str(path).endswith(".log") else real(path, *a, **k)
    )
    result = verify([folder])
    assert [found.code for found in result.findings] == ["unreadable"]
    with pytest.raises(NotAuthorized):
        verify([folder / f"{0:020d}.log"])


# --- hostile input ----------------------------------------------------------------------------------------------------


def test_findings_are_listed_up_to_a_limit(tmp_path: Path) -> None:
    parts = [with_bytes(batch(number), 70, b"\xff") for number in range(500)]
    result = verify(partition(tmp_path / "orders-0", parts, index=b"", timeindex=b""), VerifyOptions(max_findings=5))
    assert len(result.findings) == 5
    assert [(each.code, each.count) for each in result.omitted] == [("batch_crc", 495)]
    assert result.errors == 500


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """A log of as many batches as possible, each of a producer of its own, with an index entry for each."""
    one = batch(0, 0, producer=(1, 0, 0), last_offset_delta=0, count=0)

    def peak(count: int) -> int:
        data = bytearray(one * count)
        for number in range(count):
            struct.pack_into(">q", data, number * len(one), number)
        index = offset_index((number, number * len(one)) for number in range(1, count))
        folder = partition(tmp_path / f"orders-{count}", bytes(data), index=index, timeindex=b"")[0]
        del data, index
        tracemalloc.start()
        assert verify([folder]).checked.batches == count
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(3000)  # what is imported, and the window
    assert peak(9000) - peak(3000) < 100_000


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_an_index_of_gigabytes_of_nothing(suffix: str, tmp_path: Path) -> None:
    folder = partition(tmp_path / "orders-0")[0]
    with (folder / f"{0:020d}.{suffix}").open("r+b") as file:
        file.truncate(12 << 30)
    assert verify([folder]).findings == ()


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
def test_an_index_of_gigabytes_of_garbage(suffix: str, tmp_path: Path) -> None:
    """It is not read entry by entry: the log cannot have so many batches."""
    folder = partition(tmp_path / "orders-0")[0]
    with (folder / f"{0:020d}.{suffix}").open("wb") as file:
        file.truncate(8 * 12 * 34 << 20)
        file.seek(-1, os.SEEK_END)
        file.write(b"\1")
    result = verify([folder])
    assert len(result.findings) == 1
    assert any(text in result.findings[0].message for text in ("has at most", "that fit into a log"))


def test_messages_fit_into_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.segment.verify.transactions.MAX_OPEN", 20)
    for number, (_, build) in enumerate(CASES):
        folder = tmp_path / str(number) / "orders-0"
        folder.mkdir(parents=True)
        for found in verify(build(folder), VerifyOptions(max_message_bytes=5 << 20)).findings:
            assert not re.search(r"[\n\t]|None|^$", found.message), found
            assert len(found.message.replace(str(tmp_path), "")) < 220, found
