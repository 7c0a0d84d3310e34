"""kctl segment stats: transactions, compaction and retention in folders, hostile files, and the command itself."""

from __future__ import annotations

import csv
import gzip
import io
import json
import struct
import tracemalloc
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kctl.commands.app import main
from kctl.segment.format.batch import Batch
from kctl.segment.log.log_selection import select_logs
from kctl.segment.stats.collect_statistics import StatisticsOptions, collect_statistics
from kctl.segment.stats.producer_shares import ProducerShares
from segment_files import (
    BASE_TIMESTAMP,
    Rec,
    batch,
    marker,
    offset_checkpoint,
    producer_snapshot,
    record,
    transaction_index,
    with_bytes,
    write,
)
from segment_statistics import HOUR, NOW, milliseconds, stats_of

# --- transactions ----------------------------------------------------------------------------------------------------


def _transactional(offset: int, producer: int, count: int = 2, at: int = BASE_TIMESTAMP) -> bytes:
    return batch(offset, count, producer=(producer, 3, 0), transactional=True, base_timestamp=at)


def test_open_and_hanging_transactions(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    begun = NOW - 20 * 60_000
    log = [
        _transactional(100, 1, at=begun),
        _transactional(102, 2, at=NOW - 60_000),
        marker(104, (9, 0)),  # of a transaction that nobody knows
        _transactional(105, 1, at=NOW - 1000),
        _transactional(107, 5),
        marker(109, (5, 3), commit=False),
    ]
    entry = (4, 2, 10, 90, 1, NOW - 30 * 60_000, 0, 80)
    write(folder, 100, log, snapshot=producer_snapshot([entry, (6, 0, 1, 95, 0, NOW, 0, -1)]))
    found = stats_of(folder, transaction_timeout_ms=900_000)
    seen = found.transactions
    assert [(row.producer_id, row.producer_epoch, row.first_offset, row.records) for row in seen.open] == [
        (4, 2, 80, 0), (1, 3, 100, 4), (2, 3, 102, 2),
    ]  # fmt: skip
    assert [row.age_ms for row in seen.open] == [30 * 60_000, 20 * 60_000, 60_000]
    assert [row.hanging for row in seen.open] == [True, True, False]
    assert [row.before_log for row in seen.open] == [True, False, False]
    assert (seen.open_count, seen.open_exact, seen.hanging_count) == (3, True, 2)
    assert (seen.committed, seen.aborted, seen.other_markers) == (0, 1, 1)
    assert found.logs[0].last_stable_offset == 80
    assert stats_of(folder, transaction_timeout_ms=25 * 60_000).transactions.hanging_count == 1
    assert stats_of(folder, now=NOW + HOUR).transactions.hanging_count == 3


def test_a_broken_snapshot_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    write(folder, 0, batch(0, 3), snapshot=with_bytes(producer_snapshot([(1, 0, 0, 0, 0, 0, 0, 0)]), 3, b"\xff"))
    found = collect_statistics(select_logs([folder]), StatisticsOptions(NOW))
    assert ["00000000000000000000.snapshot was ignored" in remark for remark in found.remarks] == [True]
    assert found.statistics.transactions.open_count == 0


def test_aborted_records_supersede_nothing_and_go(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    aborted = batch(1, [Rec(b"k")] * 2, producer=(7, 0, 0), transactional=True)
    write(folder, 0, [batch(0, [Rec(b"k")]), aborted, marker(3, (7, 0), commit=False)],
          txnindex=transaction_index([(7, 1, 3, 4)]))  # fmt: skip
    write(folder, 4, [batch(4, [Rec(b"other")], producer=(7, 0, 2), transactional=True), marker(5, (7, 0))])
    write(folder, 6, batch(6, 1))
    found = stats_of(folder).compaction
    assert found is not None
    assert (found.superseded_records, found.cleanable_segments) == (0, 2)
    assert (found.aborted_records, found.aborted_bytes) == (2, len(aborted))


def test_compaction_ends_before_the_last_stable_offset(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    same = [Rec(b"k")] * 10
    write(folder, 0, batch(0, same))
    write(folder, 10, [batch(10, same[:5]), batch(15, same[:5], producer=(7, 0, 0), transactional=True)])
    write(folder, 20, batch(20, same))
    write(folder, 30, batch(30, same))
    found = stats_of(folder)
    assert found.compaction is not None
    assert found.logs[0].last_stable_offset == 15
    assert (found.compaction.cleanable_segments, found.compaction.superseded_records) == (1, 9)
    assert found.compaction.with_active_records == 39


# --- retention in real folders ---------------------------------------------------------------------------------------


def test_what_the_log_dir_knows_counts(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    sizes = [
        write(folder, 10 * n, batch(10 * n, 10, base_timestamp=NOW - 9 * HOUR + n)).stat().st_size for n in range(4)
    ]
    (tmp_path / "replication-offset-checkpoint").write_bytes(offset_checkpoint({("orders", 0): 35, ("orders", 1): 7}))
    found = stats_of(folder, retention_ms=HOUR)
    assert (found.logs[0].high_watermark, found.logs[0].last_stable_offset) == (35, 35)
    assert [row.deletable_now for row in found.segments] == ["retention_ms"] * 3 + [None]
    assert [row.pinned_by for row in found.segments] == [None] * 3 + ["high_watermark"]
    assert [milliseconds(row.deletable_at) for row in found.segments] == [NOW - 8 * HOUR + n + 10 for n in range(4)]
    assert [row.active for row in found.segments] == [False] * 3 + [True]
    (tmp_path / "log-start-offset-checkpoint").write_bytes(offset_checkpoint({("orders", 0): 10}))
    found = stats_of(folder, retention_bytes=sum(sizes[2:]))
    assert [row.deletable_now for row in found.segments] == ["log_start_offset", "retention_bytes", None, None]
    assert found.logs[0].log_start_offset == 10


def test_some_segments_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    paths = [write(folder, 10 * n, batch(10 * n, [Rec(b"k")] * 10)) for n in range(3)]
    found = stats_of(paths[1], paths[0], paths[1])
    assert [(row.base_offset, row.active) for row in found.segments] == [(0, False), (10, False)]
    assert (found.logs[0].segments_left_out, found.logs[0].log_end_offset) == (1, 20)
    assert found.compaction is not None
    assert found.compaction.superseded_records == 19


def test_segments_without_timestamps_are_as_old_as_their_files(tmp_path: Path) -> None:
    body = struct.pack(">bb", 0, 0) + struct.pack(">i", -1) + struct.pack(">i", 1) + b"v"
    path = write(tmp_path / "orders-0", 0, struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body)
    found = stats_of(path.parent, retention_ms=HOUR).segments[0]
    assert found.timestamp_from_file
    assert found.records == 1
    assert milliseconds(found.largest_timestamp) == int(path.stat().st_mtime * 1000)


def test_several_logs_are_told_apart(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / "dir" / f"orders-{number}", 0, batch(0, [Rec(b"k")] * (number + 1)))
    found = stats_of(tmp_path / "dir")
    assert [(row.topic, row.partition, row.records) for row in found.logs] == [("orders", n, n + 1) for n in range(3)]
    assert found.keys is not None
    assert found.compaction is not None
    assert (found.keys.distinct_keys, found.keys.hottest[0].records) == (3, 6)
    assert found.compaction.with_active_records == 0 + 1 + 2


# --- what is hostile -------------------------------------------------------------------------------------------------


def test_more_keys_than_memory(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    keys = [b"%d" % int(20_000 * (number * 0.6180339887 % 1) ** 2) for number in range(14_000)]
    write(folder, 0, [batch(n, [Rec(key) for key in keys[n : n + 500]]) for n in range(0, len(keys), 500)])
    write(folder, len(keys), batch(len(keys), 1))
    exact, rough = stats_of(folder), stats_of(folder, memory_bytes=240 * 600)
    assert exact.compaction is not None
    assert rough.compaction is not None
    assert exact.compaction.superseded_records == len(keys) - len(set(keys))
    assert (exact.compaction.lower_bound, rough.compaction.lower_bound) == (False, True)
    assert 0 < rough.compaction.superseded_records < exact.compaction.superseded_records
    assert rough.keys is not None
    assert rough.keys.distinct_keys == len({*keys, b"k"})  # few enough for the sketch


def test_memory_is_bounded(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    bomb = b"".join(record(Rec(b"k", b"\0" * 1_000_000), number) for number in range(20))
    huge = batch(0, [Rec(None, None)] * 20, payload=gzip.compress(bomb, mtime=0), attributes=1)
    tiny = [
        batch(100 + number, [Rec(b"%d" % number * 30, b"")], producer=(number, 0, 0), transactional=True)
        for number in range(800)
    ]
    write(folder, 0, [huge, *tiny])
    tracemalloc.start()
    try:
        found = stats_of(folder, memory_bytes=240 * 1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6
    assert found.totals.records == 820
    assert found.record_sizes is not None
    assert found.record_sizes.largest_bytes == len(record(Rec(b"k", b"\0" * 1_000_000), 0))
    assert found.transactions.open_count == 800
    assert len(found.transactions.open) == 500


def test_many_producers_are_told_together() -> None:
    shares = ProducerShares(capacity=50)
    wrote: Counter[int] = Counter()
    for number in range(3000):
        producer = number % 7 if number % 2 else 1000 + number
        made = _header(producer, size=100 + number % 13)
        shares.add(made, 2)
        wrote[producer] += made.size
    count, exact = shares.count()
    listed, others = shares.top(7)
    assert not exact
    assert count == len(wrote)  # few enough for the sketch
    assert {share.producer_id for share in listed} == set(range(7))
    assert all(
        share.size_bytes <= wrote[share.producer_id] <= share.size_bytes + shares.error_bytes for share in listed
    )
    assert others is not None
    assert sum(share.size_bytes for share in (*listed, others)) == sum(wrote.values())
    assert sum(share.records for share in (*listed, others)) == 6000


def _header(producer: int, *, size: int) -> Batch:
    return Batch(0, size, 2, 0, 0, 0, 0, 1, 0, 0, producer, 0, 0, 2)


def test_damage_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    good, bad = batch(0, 5), batch(5, 5)
    lying = batch(10, 3, count=2**31 - 1)
    write(folder, 0, [good, with_bytes(bad, len(bad) - 3, b"!"), lying, b"\0" * 99, b"!"])
    found = stats_of(folder)
    assert found.totals.records == 5 + 3
    assert found.totals.damaged_places == 3
    assert found.totals.damaged_bytes == len(bad) + len(lying) + 100


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_tells_json_and_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "orders-0"
    for base in (0, 10, 20):
        write(folder, base, batch(base, 10))
    options = ["--at", str(NOW), "--retention-ms", "1h", "--retention-bytes", "1kB"]
    assert main(["segment", "stats", "-o", "json", *options, str(folder)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [
        "at", "retention_ms", "retention_bytes", "totals", "logs", "codecs", "batch_sizes", "record_sizes", "keys",
        "compaction", "timestamps", "producers", "transactions", "segments",
    ]  # fmt: skip
    assert (found["at"], found["retention_ms"], found["retention_bytes"]) == ("2023-11-14T23:13:20.000Z", HOUR, 1000)
    assert main(["segment", "stats", "-o", "csv", *options, str(folder)]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [int(row["base_offset"]) for row in rows] == [row["base_offset"] for row in found["segments"]]
    assert [int(row["records"]) for row in rows] == [row["records"] for row in found["segments"]]


@pytest.mark.parametrize(("text", "ms"), [("3600000", HOUR), ("1h", HOUR), ("-1", None)])
def test_limits_as_kafka_and_people_write_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, ms: int | None
) -> None:
    path = write(tmp_path, 0, batch(0, 1))
    assert main(["segment", "stats", "-o", "json", "--retention-ms", text, "--retention-bytes", "-1", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["retention_ms"], found["retention_bytes"]) == (ms, None)


def test_tables_have_all_sections_and_no_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "orders-0"
    evil = [Rec(b"\x1b[2J"), Rec(b"\xff\xfe"), Rec(b"", None), Rec(None)]
    hanging = batch(4, 2, producer=(7, 0, 0), transactional=True, base_timestamp=NOW - HOUR)
    future = batch(6, 1, base_timestamp=NOW + HOUR)
    write(folder, 0, [batch(0, evil), hanging, future])
    assert main(["segment", "stats", "--at", str(NOW), "--retention-ms", "1d", str(folder)]) == 0
    out, err = capsys.readouterr()
    titles = (
        "Totals", "Logs", "Compression", "Batches by", "Records by", "Keys,", "Hottest", "Producers", "Timestamps",
        "What compaction", "Transactions", "Open transactions", "Segments of",
    )  # fmt: skip
    assert [title for title in titles if f"\n{title}" not in f"\n{out}"] == []
    assert "\\x1b[2J" in out
    assert "base64://4=" in out
    assert "\x1b" not in out
    assert "future timestamp" in out
    assert "####" in out
    assert "warning: hanging transactions: 1" in err
    assert "timestamps in the future" in err


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (lambda folder: write(folder, 0, [batch(0, 3), b"garbage" * 9]), 1, "damage in 1 place,"),
        (lambda folder: folder / "nowhere", 4, "does not exist"),
        (lambda folder: folder / "00000000000000000000.log", 4, "does not exist"),
        (lambda folder: folder, 2, "has no log segment"),
        (lambda folder: write(folder, 0, None, index=b""), 2, "is not a log"),
    ],
)
def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Any, code: int, words: str) -> None:
    path = make(tmp_path)
    if code == 2 and words == "is not a log" and path.suffix == ".log":
        path = path.with_suffix(".index")
    assert main(["segment", "stats", str(path)]) == code
    assert words in capsys.readouterr().err


def test_an_empty_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "orders-0", 0, b"")
    assert main(["segment", "stats", "--retention-ms", "0", str(path.parent)]) == 0
    assert "empty, active" in capsys.readouterr().out


def test_tables_skip_empty_partitions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "orders-0", 0, batch(0, [Rec()]))
    for number in range(1, 4):
        write(tmp_path / f"orders-{number}", 0, b"")
    assert main(["segment", "stats", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert "orders-0" in captured.out
    assert "orders-1" not in captured.out
    assert "3 empty partitions skipped" in captured.err
    assert main(["segment", "stats", str(tmp_path), "-o", "wide"]) == 0
    assert "orders-1" in capsys.readouterr().out
    assert main(["segment", "stats", str(tmp_path), "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["logs"]) == 4
