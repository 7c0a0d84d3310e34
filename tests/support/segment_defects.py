"""Log files with one defect each, by the code of the expected finding: logs and their indexes.

segment_defects_folders adds those of folders and log dirs to the same list.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from old_wrappers import inner, wrapper
from segment_files import (
    BASE_TIMESTAMP,
    Rec,
    batch,
    marker,
    offset_index,
    positions,
    time_index,
    transaction_index,
    with_bytes,
    write,
)

T = BASE_TIMESTAMP
# Three batches of ten records, and the indexes of a broker with index.interval.bytes=0.
PARTS = [batch(number * 10, 10, base_timestamp=T + number * 100) for number in range(3)]
AT = positions(PARTS)
INDEX = offset_index([(19, AT[1]), (29, AT[2])])
TIMES = time_index([(T + 109, 19), (T + 209, 29)])
# Producer 7 aborts records 0 to 9 at 10; producer 8 starts at 11.
TXN = [
    batch(0, 10, producer=(7, 0, 0), transactional=True),
    marker(10, (7, 0), commit=False),
    batch(11, 4, producer=(8, 0, 0), transactional=True),
]
ABORTED = (7, 0, 10, 11)

Build = Callable[[Path], list[Path]]
CASES: list[tuple[str, Build]] = []


def case(code: str) -> Callable[[Build], Build]:
    """Register a function and the finding that its files must give."""

    def remember(function: Build) -> Build:
        CASES.append((code, function))
        return function

    return remember


def partition(folder: Path, parts: list[bytes] | bytes = PARTS, base: int = 0, **companions: bytes) -> list[Path]:
    """Write a partition folder with one segment."""
    return [write(folder, base, parts, **{"index": INDEX, "timeindex": TIMES, **companions}).parent]


def with_header(data: bytes, offset: int, layout: str, value: int) -> bytes:
    """Return a batch with a changed header field that the CRC does not cover."""
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


@case("wrapper_offset")
def a_wrapper_at_offset_0(folder: Path) -> list[Path]:
    return partition(folder, [wrapper(1, 0, inner((1, 1, 1), (0, 1, 2)))], index=b"", timeindex=b"")


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
    return transactional(folder, transaction_index([ABORTED], version=256))


@case("txnindex_version_byte")
def a_txnindex_of_an_unknown_version(folder: Path) -> list[Path]:
    return transactional(folder, transaction_index([ABORTED], version=7))


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
