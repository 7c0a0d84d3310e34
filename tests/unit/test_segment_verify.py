"""verify: each code of a finding is made on purpose, and files of real brokers give no others than they should."""

from __future__ import annotations

import os
import re
import resource
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from kctl.errors import NotAuthorized, NotFound, UsageError
from kctl.segment.findings import CODES, Severity, effect_of, severity_of
from kctl.segment.verify import verify
from kctl.segment.verify_context import VerifyOptions
from segment_files import (
    BASE_TIMESTAMP,
    Rec,
    batch,
    leader_epochs,
    marker,
    offset_checkpoint,
    offset_index,
    positions,
    producer_snapshot,
    time_index,
    transaction_index,
    with_bytes,
    write,
)

DATA = Path(__file__).parent.parent / "data" / "segments"
T = BASE_TIMESTAMP
# Three batches of ten records, and the indexes that a broker with index.interval.bytes=0 writes.
PARTS = [batch(number * 10, 10, base_timestamp=T + number * 100) for number in range(3)]
AT = positions(PARTS)
INDEX = offset_index([(19, AT[1]), (29, AT[2])])
TIMES = time_index([(T + 109, 19), (T + 209, 29)])
# Producer 7 aborts the records 0 to 9 at 10; producer 8 begins at 11.
TXN = [
    batch(0, 10, producer=(7, 0, 0), transactional=True),
    marker(10, (7, 0), commit=False),
    batch(11, 4, producer=(8, 0, 0), transactional=True),
]
ABORTED = (7, 0, 10, 11)

Build = Callable[[Path], list[Path]]
CASES: list[tuple[str, Build]] = []


def case(code: str) -> Callable[[Build], Build]:
    """Says which finding the files of a function shall give."""

    def remember(function: Build) -> Build:
        CASES.append((code, function))
        return function

    return remember


def partition(folder: Path, parts: list[bytes] | bytes = PARTS, base: int = 0, **companions: bytes) -> list[Path]:
    """A partition's folder with one segment."""
    return [write(folder, base, parts, **{"index": INDEX, "timeindex": TIMES, **companions}).parent]


def with_header(data: bytes, offset: int, layout: str, value: int) -> bytes:
    """A batch with another value in the header, before what the CRC covers."""
    return with_bytes(data, offset, struct.pack(layout, value))


# --- the log ----------------------------------------------------------------------------------------------------------


@case("batch_crc")
def a_bit_is_flipped(folder: Path) -> list[Path]:
    return partition(folder, [PARTS[0], with_bytes(PARTS[1], 80, b"\xff"), PARTS[2]])


@case("batch_magic")
def a_magic_of_the_future(folder: Path) -> list[Path]:
    return partition(folder, [PARTS[0], with_header(PARTS[1], 16, ">b", 5), PARTS[2]])


@case("batch_count")
def a_count_that_does_not_fit(folder: Path) -> list[Path]:
    return partition(folder, [batch(0, 10, count=11)], index=b"", timeindex=b"")


@case("batch_count")
def a_negative_count(folder: Path) -> list[Path]:
    return partition(folder, [batch(0, 10, count=-5)], index=b"", timeindex=b"")


@case("batch_codec")
def an_unknown_codec(folder: Path) -> list[Path]:
    return partition(folder, [batch(0, 10, attributes=6)], index=b"", timeindex=b"")


@case("batch_incomplete")
def the_last_batch_is_cut(folder: Path) -> list[Path]:
    return partition(folder, b"".join(PARTS)[:-20])


@case("zero_tail")
def zeros_behind_the_last_batch(folder: Path) -> list[Path]:
    return partition(folder, [*PARTS, bytes(5000)])


@case("garbage")
def garbage_between_batches(folder: Path) -> list[Path]:
    return partition(folder, [PARTS[0], b"\xa5" * 100, *PARTS[1:]], index=b"", timeindex=b"")


@case("garbage")
def an_older_segment_is_cut(folder: Path) -> list[Path]:
    partition(folder, b"".join(PARTS)[:-20])
    return [write(folder, 30, batch(30), index=b"", timeindex=b"").parent]


@case("offset_order")
def a_batch_twice(folder: Path) -> list[Path]:
    return partition(folder, [*PARTS, PARTS[1]])


@case("offset_order")
def a_batch_that_ends_before_it_begins(folder: Path) -> list[Path]:
    return partition(folder, [PARTS[0], batch(10, 1, last_offset_delta=-3)], index=b"", timeindex=b"")


@case("offset_before_base")
def an_offset_before_the_segment(folder: Path) -> list[Path]:
    return partition(folder, [batch(3)], base=5, index=b"", timeindex=b"")


@case("offset_overflow")
def an_offset_too_far_away(folder: Path) -> list[Path]:
    return partition(folder, [PARTS[0], batch(2**31 + 7)], index=b"", timeindex=b"")


@case("records")
def records_that_are_cut(folder: Path) -> list[Path]:
    return partition(folder, [batch(0, 3, payload=b"\x20\x00")], index=b"", timeindex=b"")


@case("records")
def a_payload_that_is_no_zstd(folder: Path) -> list[Path]:
    return partition(folder, [batch(0, 3, codec="zstd", payload=b"no zstd")], index=b"", timeindex=b"")


@case("record_offsets")
def records_out_of_order(folder: Path) -> list[Path]:
    recs = [Rec(offset=0), Rec(offset=2), Rec(offset=1)]
    return partition(folder, [batch(0, recs)], index=b"", timeindex=b"")


@case("record_offsets")
def a_record_behind_the_batch(folder: Path) -> list[Path]:
    return partition(folder, [batch(0, [Rec(), Rec(offset=9)], last_offset_delta=1)], index=b"", timeindex=b"")


@case("record_timestamps")
def a_record_younger_than_its_batch(folder: Path) -> list[Path]:
    return partition(folder, [batch(0, 10, max_timestamp=T + 5)], index=b"", timeindex=b"")


@case("control_record")
def a_marker_without_a_type(folder: Path) -> list[Path]:
    parts = [TXN[0], batch(10, [Rec(key=b"")], producer=(7, 0, -1), transactional=True, control=True)]
    return partition(folder, parts, index=b"", timeindex=b"")


@case("control_record")
def a_marker_of_another_kind(folder: Path) -> list[Path]:
    leader_change = Rec(key=struct.pack(">hh", 0, 2))
    parts = [TXN[0], batch(10, [leader_change], producer=(7, 0, -1), transactional=True, control=True)]
    return partition(folder, parts, index=b"", timeindex=b"")


@case("transaction_state")
def a_write_outside_of_the_transaction(folder: Path) -> list[Path]:
    return partition(folder, [TXN[0], batch(10, 1, producer=(7, 0, 10))], index=b"", timeindex=b"")


@case("transactions_not_followed")
def too_many_transactions(folder: Path) -> list[Path]:
    parts = [batch(number, producer=(number, 0, 0), transactional=True) for number in range(30)]
    return partition(folder, parts, index=b"", timeindex=b"")


# --- .index, .timeindex ---------------------------------------------------------------------------------------------


@case("log_missing")
def no_log(folder: Path) -> list[Path]:
    write(folder, 0, None, index=INDEX)
    return [folder]


@case("index_missing")
def no_index(folder: Path) -> list[Path]:
    return [write(folder, 0, PARTS, timeindex=TIMES).parent]


@case("index_length")
def an_index_with_odd_bytes(folder: Path) -> list[Path]:
    return partition(folder, index=INDEX + b"\x01\x02\x03")


@case("index_tail")
def zeros_behind_an_older_index(folder: Path) -> list[Path]:
    partition(folder, index=INDEX + bytes(800))
    return [write(folder, 30, batch(30, base_timestamp=T + 300), index=b"", timeindex=b"").parent]


@case("index_tail")
def zeros_after_a_clean_shutdown(folder: Path) -> list[Path]:
    (folder.parent / ".kafka_cleanshutdown").touch()
    return partition(folder, index=INDEX + bytes(800))


@case("index_order")
def index_entries_out_of_order(folder: Path) -> list[Path]:
    return partition(folder, index=INDEX[8:] + INDEX[:8])


@case("index_position")
def an_entry_within_a_batch(folder: Path) -> list[Path]:
    return partition(folder, index=offset_index([(19, AT[1] + 7), (29, AT[2])]))


@case("index_position")
def an_entry_behind_the_log(folder: Path) -> list[Path]:
    return partition(folder, index=offset_index([(19, AT[1]), (29, 1 << 20)]))


@case("index_position")
def a_wrong_entry_in_an_index_out_of_order(folder: Path) -> list[Path]:
    return partition(folder, index=offset_index([(29, AT[2]), (19, AT[1] + 7)]))


@case("index_offset")
def an_entry_for_an_earlier_offset(folder: Path) -> list[Path]:
    return partition(folder, index=offset_index([(9, AT[1]), (29, AT[2])]))


@case("index_offset")
def an_entry_for_a_later_offset(folder: Path) -> list[Path]:
    return partition(folder, index=offset_index([(20, AT[1]), (29, AT[2])]))


@case("index_offset")
def the_last_entry_is_behind_the_log(folder: Path) -> list[Path]:
    return partition(folder, index=offset_index([(19, AT[1]), (31, AT[2])]))


@case("index_sparse")
def an_index_without_entries(folder: Path) -> list[Path]:
    payload = bytes(4 << 20)
    parts = [batch(number, payload=payload) for number in range(10)]
    return partition(folder, parts, index=b"", timeindex=b"")


@case("timeindex_missing")
def no_time_index(folder: Path) -> list[Path]:
    return [write(folder, 0, PARTS, index=INDEX).parent]


@case("timeindex_length")
def a_time_index_with_odd_bytes(folder: Path) -> list[Path]:
    return partition(folder, timeindex=TIMES + b"\x01")


@case("timeindex_tail")
def zeros_behind_an_older_time_index(folder: Path) -> list[Path]:
    partition(folder, timeindex=TIMES + bytes(1200))
    return [write(folder, 30, batch(30, base_timestamp=T + 300), index=b"", timeindex=b"").parent]


@case("timeindex_order")
def time_entries_out_of_order(folder: Path) -> list[Path]:
    return partition(folder, timeindex=time_index([(T + 109, 19), (T + 100, 29)]))


@case("timeindex_timestamp")
def an_entry_with_another_time(folder: Path) -> list[Path]:
    return partition(folder, timeindex=time_index([(T + 110, 19), (T + 209, 29)]))


@case("timeindex_timestamp")
def an_earlier_batch_is_younger(folder: Path) -> list[Path]:
    parts = [batch(0, base_timestamp=T + 900), *PARTS[1:]]
    return partition(folder, parts, index=b"", timeindex=time_index([(T + 109, 19)]))


@case("timeindex_offset")
def an_entry_for_an_offset_that_is_not_there(folder: Path) -> list[Path]:
    parts = [PARTS[0], batch(20, 10, base_timestamp=T + 200)]
    return partition(folder, parts, index=b"", timeindex=time_index([(T + 9, 15)]))


@case("timeindex_offset")
def a_time_entry_behind_the_log(folder: Path) -> list[Path]:
    return partition(folder, timeindex=time_index([(T + 109, 19), (T + 209, 30)]))


@case("timeindex_last")
def an_older_time_index_that_ends_early(folder: Path) -> list[Path]:
    partition(folder, timeindex=time_index([(T + 109, 19)]))
    return [write(folder, 30, batch(30, base_timestamp=T + 300), index=b"", timeindex=b"").parent]


# --- .txnindex --------------------------------------------------------------------------------------------------------


def transactional(folder: Path, txnindex: bytes, parts: list[bytes] = TXN) -> list[Path]:
    return partition(folder, parts, index=b"", timeindex=b"", txnindex=txnindex)


@case("txnindex_length")
def a_txnindex_with_odd_bytes(folder: Path) -> list[Path]:
    return transactional(folder, transaction_index([ABORTED]) + b"\x01")


@case("txnindex_version")
def a_txnindex_of_the_future(folder: Path) -> list[Path]:
    return transactional(folder, transaction_index([ABORTED], version=1))


@case("txnindex_order")
def aborted_transactions_out_of_order(folder: Path) -> list[Path]:
    return transactional(folder, transaction_index([ABORTED, ABORTED]))


@case("txnindex_before_base")
def a_transaction_before_the_segment(folder: Path) -> list[Path]:
    parts = [batch(100)]
    return partition(folder, parts, base=100, index=b"", timeindex=b"", txnindex=transaction_index([(7, 0, 10, 11)]))


@case("txnindex_extra")
def an_entry_for_a_commit(folder: Path) -> list[Path]:
    return transactional(folder, transaction_index([ABORTED]), [TXN[0], marker(10, (7, 0)), TXN[2]])


@case("txnindex_extra")
def an_entry_without_a_marker(folder: Path) -> list[Path]:
    return transactional(folder, transaction_index([ABORTED, (8, 11, 14, 15)]))


@case("txnindex_extra")
def an_entry_of_another_producer(folder: Path) -> list[Path]:
    return transactional(folder, transaction_index([(9, 0, 10, 11)]))


@case("txnindex_extra")
def an_entry_for_an_empty_transaction(folder: Path) -> list[Path]:
    return transactional(folder, transaction_index([(7, 0, 10, 11)]), [PARTS[0], marker(10, (7, 0), commit=False)])


@case("txnindex_lacks")
def an_abort_without_an_entry(folder: Path) -> list[Path]:
    return partition(folder, TXN, index=b"", timeindex=b"")


@case("txnindex_entry")
def an_entry_that_begins_elsewhere(folder: Path) -> list[Path]:
    return transactional(folder, transaction_index([(7, 5, 10, 11)]))


@case("txnindex_entry")
def an_entry_with_another_stable_offset(folder: Path) -> list[Path]:
    open_before = [batch(0, producer=(8, 0, 0), transactional=True), batch(1, producer=(7, 0, 0), transactional=True)]
    return transactional(folder, transaction_index([(7, 1, 2, 3)]), [*open_before, marker(2, (7, 0), commit=False)])


# --- a partition's folder ---------------------------------------------------------------------------------------------


def second_segment(folder: Path, base: int = 30, **companions: bytes) -> list[Path]:
    """Behind the one of PARTS."""
    partition(folder)
    parts = [batch(base, 10, base_timestamp=T + 300)]
    return partition(folder, parts, base=base, index=b"", timeindex=b"", **companions)


@case("segment_gap")
def a_gap_after_compaction(folder: Path) -> list[Path]:
    partition(folder, [PARTS[0], PARTS[2]], index=b"", timeindex=time_index([(T + 209, 29)]))
    return partition(folder, [batch(100)], base=100, index=b"", timeindex=b"")


@case("segment_missing")
def a_gap_without_compaction(folder: Path) -> list[Path]:
    return second_segment(folder, 50)


@case("segment_overlap")
def segments_that_overlap(folder: Path) -> list[Path]:
    return second_segment(folder, 25)


@case("file_name")
def a_log_with_another_name(folder: Path) -> list[Path]:
    (folder / "copy.log").write_bytes(b"")
    return partition(folder)


@case("file_name_digits")
def a_log_with_a_short_name(folder: Path) -> list[Path]:
    (folder / "15.log").write_bytes(b"")
    return partition(folder)


@case("vanished")
def a_link_to_nowhere(folder: Path) -> list[Path]:
    (folder / f"{30:020d}.log").symlink_to("nowhere")
    return partition(folder)


@case("leftover")
def a_deleted_partition(folder: Path) -> list[Path]:
    paths = log_dir(folder)
    (folder / "orders-0").rename(folder / f"orders-0.{'0a' * 16}-delete")
    return paths


@case("unknown_file")
def a_note_of_somebody(folder: Path) -> list[Path]:
    (folder / "README").write_text("moved here on Monday", encoding="utf-8")
    return partition(folder)


@case("leftover")
def a_deleted_segment(folder: Path) -> list[Path]:
    (folder / f"{0:020d}.log.deleted").write_bytes(b"")
    return partition(folder)


@case("snapshot")
def a_snapshot_with_a_wrong_crc(folder: Path) -> list[Path]:
    return second_segment(folder, snapshot=with_bytes(producer_snapshot(), 3, b"\xff"))


@case("snapshot_offset")
def a_snapshot_behind_the_log(folder: Path) -> list[Path]:
    (folder / f"{99:020d}.snapshot").write_bytes(producer_snapshot())
    return partition(folder)


@case("snapshot_offset")
def a_snapshot_between_segments(folder: Path) -> list[Path]:
    (folder / f"{20:020d}.snapshot").write_bytes(producer_snapshot())
    return second_segment(folder)


@case("snapshot_entry")
def a_snapshot_that_knows_the_future(folder: Path) -> list[Path]:
    return second_segment(folder, snapshot=producer_snapshot([(7, 0, 0, 30, 0, T, 0, -1)]))


@case("snapshot_transaction")
def a_snapshot_with_a_transaction_that_is_not_open(folder: Path) -> list[Path]:
    return second_segment(folder, snapshot=producer_snapshot([(7, 0, 0, 20, 0, T, 0, 20)]))


@case("snapshot_transaction")
def a_snapshot_without_an_open_transaction(folder: Path) -> list[Path]:
    (folder / f"{15:020d}.snapshot").write_bytes(producer_snapshot())
    return transactional(folder, transaction_index([ABORTED]))


@case("epochs")
def epochs_that_are_no_numbers(folder: Path) -> list[Path]:
    (folder / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 x\n")
    return partition(folder)


@case("epochs")
def a_negative_epoch(folder: Path) -> list[Path]:
    (folder / "leader-epoch-checkpoint").write_bytes(leader_epochs([(-1, 0)]))
    return partition(folder)


@case("epochs_order")
def epochs_out_of_order(folder: Path) -> list[Path]:
    (folder / "leader-epoch-checkpoint").write_bytes(leader_epochs([(1, 0), (0, 0)]))
    return partition(folder)


@case("epochs_batch")
def a_batch_of_another_epoch(folder: Path) -> list[Path]:
    (folder / "leader-epoch-checkpoint").write_bytes(leader_epochs([(0, 0), (3, 20)]))
    return partition(folder)


@case("epochs_batch")
def an_empty_epoch_checkpoint(folder: Path) -> list[Path]:
    (folder / "leader-epoch-checkpoint").write_bytes(b"")
    return partition(folder)


@case("epochs_batch")
def epochs_that_go_back(folder: Path) -> list[Path]:
    return partition(folder, [batch(0, epoch=4), batch(1, epoch=3)], index=b"", timeindex=b"")


@case("partition_metadata")
def a_topic_id_that_is_none(folder: Path) -> list[Path]:
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", encoding="utf-8")
    return partition(folder)


# --- log dirs ---------------------------------------------------------------------------------------------------------

TOPIC_ID = "version: 0\ntopic_id: HhKSqwgGRnCLbiOCHHjq2A\n"


def log_dir(path: Path, *, meta: str = "broker.id=1\ncluster.id=abc\n", **files: bytes) -> list[Path]:
    """A log dir with the partition orders-0 of the offsets 0 to 29. files: its checkpoints, by the first word."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "meta.properties").write_text(meta, encoding="utf-8")
    for name, data in files.items():
        (path / f"{name.replace('_', '-')}-checkpoint").write_bytes(data)
    partition(path / "orders-0")
    return [path]


def beyond(offset: int) -> bytes:
    return offset_checkpoint({("orders", 0): offset})


@case("checkpoint")
def a_checkpoint_of_another_version(folder: Path) -> list[Path]:
    return log_dir(folder, replication_offset=b"1\n0\n")


@case("checkpoint")
def a_checkpoint_with_a_wrong_count(folder: Path) -> list[Path]:
    return log_dir(folder, recovery_point_offset=b"0\n2\norders 0 30\n")


@case("checkpoint_folder")
def a_partition_that_is_gone(folder: Path) -> list[Path]:
    return log_dir(folder, replication_offset=offset_checkpoint({("orders", 1): 3}))


@case("recovery_point")
def more_was_flushed_than_there_is(folder: Path) -> list[Path]:
    return log_dir(folder, recovery_point_offset=beyond(31))


@case("high_watermark")
def more_was_replicated_than_there_is(folder: Path) -> list[Path]:
    return log_dir(folder, replication_offset=beyond(31))


@case("log_start_offset")
def the_log_begins_behind_its_end(folder: Path) -> list[Path]:
    return log_dir(folder, log_start_offset=beyond(31))


@case("cleaner_offset")
def more_was_compacted_than_there_is(folder: Path) -> list[Path]:
    return log_dir(folder, cleaner_offset=beyond(31))


@case("meta_properties")
def a_node_id_that_is_no_number(folder: Path) -> list[Path]:
    return log_dir(folder, meta="version=1\nnode.id=one\ncluster.id=abc\n")


@case("meta_properties")
def no_cluster_id_where_it_must_be(folder: Path) -> list[Path]:
    return log_dir(folder, meta="version=1\nnode.id=1\n")


@case("meta_properties")
def a_line_without_a_value(folder: Path) -> list[Path]:
    return log_dir(folder, meta="broker.id\n")


@case("meta_properties_missing")
def no_meta_properties(folder: Path) -> list[Path]:
    paths = log_dir(folder)
    (folder / "meta.properties").unlink()
    return paths


@case("cluster_id")
def log_dirs_of_two_clusters(folder: Path) -> list[Path]:
    return [*log_dir(folder / "a"), *log_dir(folder / "b", meta="broker.id=2\ncluster.id=other\n")]


@case("directory_id")
def a_copied_log_dir(folder: Path) -> list[Path]:
    meta = "version=1\nnode.id={}\ncluster.id=abc\ndirectory.id=HhKSqwgGRnCLbiOCHHjq2A\n"
    return [*log_dir(folder / "a", meta=meta.format(1)), *log_dir(folder / "b", meta=meta.format(2))]


@case("partition_twice")
def a_partition_in_two_log_dirs_of_a_broker(folder: Path) -> list[Path]:
    return [*log_dir(folder / "a"), *log_dir(folder / "b")]


@case("topic_id")
def a_topic_that_was_made_again(folder: Path) -> list[Path]:
    paths = [*log_dir(folder / "a"), *log_dir(folder / "b", meta="broker.id=2\ncluster.id=abc\n")]
    for path, text in zip(paths, (TOPIC_ID, TOPIC_ID.replace("Hh", "Ii")), strict=True):
        (path / "orders-0" / "partition.metadata").write_text(text, encoding="utf-8")
    return paths


@case("folder_name")
def a_folder_of_the_file_system(folder: Path) -> list[Path]:
    (folder / "lost+found").mkdir(parents=True)
    return log_dir(folder)


@case("folder_name")
def a_partition_that_was_renamed(folder: Path) -> list[Path]:
    paths = log_dir(folder)
    (folder / "orders-0").rename(folder / "orders")
    return paths


# --- anywhere ---------------------------------------------------------------------------------------------------------


@case("unreadable")
def a_log_that_is_a_folder(folder: Path) -> list[Path]:
    partition(folder)
    path = folder / f"{30:020d}.index"
    path.mkdir()
    (folder / f"{30:020d}.log").write_bytes(b"")
    return [folder]


@case("too_large")
def a_checkpoint_of_gigabytes(folder: Path) -> list[Path]:
    with (folder / "leader-epoch-checkpoint").open("wb") as file:
        file.truncate(3 << 30)
    return partition(folder)


@case("batch_too_large")
def a_batch_larger_than_the_largest_message(folder: Path) -> list[Path]:
    return partition(folder, [batch(0, payload=bytes(6 << 20))], index=b"", timeindex=b"")


def codes(paths: list[Path], **options: int) -> set[str]:
    return {found.code for found in verify(paths, VerifyOptions(**options)).findings}  # type: ignore[arg-type]


@pytest.mark.parametrize(("code", "build"), CASES, ids=[f"{code}-{build.__name__}" for code, build in CASES])
def test_a_defect_is_found(code: str, build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.segment.verify_transactions.MAX_OPEN", 20)
    folder = tmp_path / "orders-0"
    folder.mkdir()
    result = verify(build(folder), VerifyOptions(deep=True, max_message_bytes=5 << 20))
    found = next(each for each in result.findings if each.code == code)
    assert found.severity is severity_of(code)
    assert found.effect is effect_of(code)
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
    assert (found.position, found.offset, found.severity) == (AT[1], 10, Severity.ERROR)


def test_healthy_files_and_what_was_checked(tmp_path: Path) -> None:
    paths = log_dir(tmp_path / "data", replication_offset=beyond(30), recovery_point_offset=beyond(30))
    (tmp_path / "data" / "orders-0" / "leader-epoch-checkpoint").write_bytes(leader_epochs([(0, 0)]))
    result = verify(paths, VerifyOptions(deep=True))
    assert result.findings == ()
    assert result.healthy
    checked = result.checked
    assert (checked.log_dirs, checked.partitions, checked.segments, checked.batches, checked.records) == (
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
    "trunc-header": ({"batch_incomplete"}, set()),
    "trunc-size-only": ({"batch_incomplete"}, set()),
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
    assert verify([folder, folder]).checked.partitions == 1


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
        (f"{7:020d}-{1:010d}.checkpoint", PARTS[0], set()),
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
    count = 30_000
    data = bytearray(one * count)
    for number in range(count):
        struct.pack_into(">q", data, number * len(one), number)
    index = offset_index((number, number * len(one)) for number in range(1, count))
    folder = partition(tmp_path / "orders-0", bytes(data), index=index, timeindex=b"")[0]
    del data, index
    verify([DATA / "v2" / "none"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = verify([folder])
    assert result.checked.batches == count
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000


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
    assert "cannot have" in result.findings[0].message


def test_messages_fit_into_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.segment.verify_transactions.MAX_OPEN", 20)
    for number, (_, build) in enumerate(CASES):
        folder = tmp_path / str(number) / "orders-0"
        folder.mkdir(parents=True)
        for found in verify(build(folder), VerifyOptions(max_message_bytes=5 << 20)).findings:
            assert not re.search(r"[\n\t]|None|^$", found.message), found
            assert len(found.message.replace(str(tmp_path), "")) < 220, found
