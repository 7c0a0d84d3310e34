"""kctl segment stats: every figure against a naive computation, on real files and on files built here."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import random
import struct
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kctl.commands.app import main
from kctl.segment import record_rows
from kctl.segment.batch import V2_HEADER, Batch, crc_is_valid
from kctl.segment.collect_statistics import StatisticsOptions, collect_statistics
from kctl.segment.compression import decompress
from kctl.segment.log_selection import select_logs
from kctl.segment.producer_shares import ProducerShares
from kctl.segment.query import all_records
from kctl.segment.source import Source
from kctl.segment.statistics import SegmentStatistics
from kctl.segment.walk import Damage, batches
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

DATA = Path(__file__).parent.parent / "data" / "segments"
HOUR = 3_600_000
NOW = BASE_TIMESTAMP + HOUR


def _stats(*paths: Path, **options: Any) -> SegmentStatistics:
    return collect_statistics(select_logs(paths), StatisticsOptions(**{"now": NOW, **options})).statistics


def _iso(text: str | None) -> int | None:
    from datetime import datetime, timedelta

    if text is None:
        return None
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment - datetime.fromisoformat("1970-01-01T00:00:00+00:00")) // timedelta(milliseconds=1)


# --- a log that is known record by record ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A batch as it is built, and what is in it."""

    segment: int
    base_offset: int
    recs: Sequence[Rec]
    codec: str
    producer: tuple[int, int, int]
    transactional: bool
    append_time: bool
    base_timestamp: int

    @property
    def data(self) -> bytes:
        return batch(
            self.base_offset, self.recs, codec=self.codec, producer=self.producer, transactional=self.transactional,
            append_time=self.append_time, base_timestamp=self.base_timestamp,
        )  # fmt: skip

    @property
    def sizes(self) -> list[int]:
        return [len(record(rec, number)) for number, rec in enumerate(self.recs)]

    @property
    def times(self) -> list[int]:
        deltas = [number if rec.timestamp is None else rec.timestamp for number, rec in enumerate(self.recs)]
        return [self.base_timestamp + (max(deltas) if self.append_time else delta) for delta in deltas]


def _random_log(seed: int, *, codecs: Sequence[str] = ("none",), segments: int = 3) -> list[Part]:
    pick = random.Random(seed)
    keys: list[bytes | None] = [None, b"", *(b"key-%d" % n for n in range(9)), b"long" * 30, b"long" * 30 + b"er"]
    parts: list[Part] = []
    offset = 0
    for number in range(segments * 5):
        plain = pick.random() < 0.4  # records that all look alike are read by another way
        recs = [
            Rec(b"key-%d" % pick.randrange(9), b"v" * 60)
            if plain
            else Rec(
                pick.choice(keys),
                pick.choice([None, b"", b"v" * pick.randrange(400)]),
                [(b"name", pick.choice([None, b"value"]))] * pick.choice([0, 0, 0, 1, 3]),
                timestamp=pick.choice([None, 0, 100, 5000, 9 * HOUR]),
            )
            for _ in range(pick.randrange(1, 30))
        ]
        parts.append(
            Part(
                number // 5,
                offset,
                recs,
                pick.choice(codecs),
                (pick.choice([-1, 7, 8]), 0, -1),
                False,
                pick.random() < 0.2,
                BASE_TIMESTAMP + pick.randrange(-HOUR, HOUR),
            )
        )
        offset += len(recs)
    return parts


def _write(folder: Path, parts: Sequence[Part]) -> Path:
    for number in sorted({part.segment for part in parts}):
        own = [part for part in parts if part.segment == number]
        write(folder, own[0].base_offset, [part.data for part in own])
    return folder


def _identity(key: bytes) -> bytes:
    return key if len(key) < 48 else key[:32] + hashlib.md5(key).digest()


def _buckets(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    found: Counter[tuple[int, int]] = Counter()
    for size in sizes:
        low = 1
        while low * 2 <= size:
            low *= 2
        found[low, 2 * low - 1] += 1
    return dict(found)


def _check_sizes(found: Any, sizes: Sequence[int]) -> None:
    assert (found.smallest_bytes, found.largest_bytes) == (min(sizes), max(sizes))
    assert found.mean_bytes == round(sum(sizes) / len(sizes), 1)
    assert {(row.from_bytes, row.to_bytes): row.count for row in found.histogram if row.count} == _buckets(sizes)


@pytest.mark.parametrize("seed", range(12))
def test_a_log_that_is_known(tmp_path: Path, seed: int) -> None:
    codecs = ("none",) if seed % 2 else ("none", "gzip", "snappy", "lz4", "zstd")
    parts = _random_log(seed, codecs=codecs)
    found = _stats(_write(tmp_path / "orders-0", parts))
    rows = [(part, rec, size, time) for part in parts
            for rec, size, time in zip(part.recs, part.sizes, part.times, strict=True)]  # fmt: skip
    times = [time for *_, time in rows]

    totals = found.totals
    assert (totals.logs, totals.segments, totals.batches, totals.records) == (1, 3, len(parts), len(rows))
    assert totals.size_bytes == sum(len(part.data) for part in parts)
    assert (_iso(totals.earliest_timestamp), _iso(totals.latest_timestamp)) == (min(times), max(times))
    assert (totals.damaged_places, totals.control_batches) == (0, 0)
    _check_sizes(found.batch_sizes, [len(part.data) for part in parts])
    _check_sizes(found.record_sizes, [size for _, _, size, _ in rows])

    codec_rows = {row.codec: row for row in found.codecs}
    assert set(codec_rows) == {part.codec for part in parts}
    for codec, row in codec_rows.items():
        own = [part for part in parts if part.codec == codec]
        plain = sum(len(replace(part, codec="none").data) for part in own)
        stored = sum(len(part.data) for part in own)
        assert (row.batches, row.records) == (len(own), sum(len(part.recs) for part in own))
        assert (row.size_bytes, row.uncompressed_bytes, row.ratio) == (stored, plain, round(plain / stored, 4))

    keys = found.keys
    assert keys is not None
    with_key = [rec.key for _, rec, *_ in rows if rec.key is not None]
    assert keys.records_with_key == len(with_key)
    assert keys.null_keys == len(rows) - len(with_key)
    assert keys.tombstones == sum(rec.key is not None and rec.value is None for _, rec, *_ in rows)
    assert keys.null_values_without_key == sum(rec.key is None and rec.value is None for _, rec, *_ in rows)
    assert keys.key_bytes == sum(map(len, with_key))
    assert keys.value_bytes == sum(len(rec.value or b"") for _, rec, *_ in rows)
    assert keys.headers == sum(len(rec.headers) for _, rec, *_ in rows)
    assert keys.records_with_headers == sum(bool(rec.headers) for _, rec, *_ in rows)
    assert (keys.distinct_keys, keys.distinct_error) == (len(set(with_key)), 0.0)
    hottest = sorted(Counter(map(_identity, with_key)).items(), key=lambda item: (-item[1], item[0]))[:10]
    shown = [(key[:32].decode(), len(key) >= 48, count) for key, count in hottest]
    assert [(row.key, row.truncated, row.records) for row in keys.hottest] == shown
    assert [row.share for row in keys.hottest] == [round(count / len(rows), 6) for _, count in hottest]
    assert keys.hottest_error == 0

    stamps = found.timestamps
    backs = [a - b for a, b in pairwise(times) if b < a]
    assert (stamps.out_of_order_records, stamps.largest_step_back_ms) == (len(backs), max(backs, default=0))
    assert stamps.future_records == sum(time > NOW for time in times)
    assert stamps.log_append_time_batches == sum(part.append_time for part in parts)
    assert stamps.create_time_batches == sum(not part.append_time for part in parts)
    assert stamps.future_segments == sum(
        max(time for part, *_, time in rows if part.segment == number) > NOW for number in range(3)
    )

    _check_compaction(found, rows)
    for share in found.producers.listed:
        wrote = [part for part in parts if part.producer[0] == (-1 if share.producer_id is None else share.producer_id)]
        assert (share.batches, share.records) == (len(wrote), sum(len(part.recs) for part in wrote))
        assert share.size_bytes == sum(len(part.data) for part in wrote)
        assert share.share == round(share.size_bytes / totals.size_bytes, 6)
    assert found.producers.producers == len({part.producer[0] for part in parts} - {-1})
    assert found.producers.others is None


def _check_compaction(found: SegmentStatistics, rows: Sequence[tuple[Part, Rec, int, int]]) -> None:
    """By going through the records as often as there are records."""
    seen = found.compaction
    assert seen is not None
    assert not seen.lower_bound
    everything = [(part, rec.key, size) for part, rec, size, _ in rows]
    closed = [row for row in everything if row[0].segment < 2]
    for some, records, size_bytes in (
        (closed, seen.superseded_records, seen.superseded_bytes),
        (everything, seen.with_active_records, seen.with_active_bytes),
    ):
        gone = [row for n, row in enumerate(some) if row[1] is not None and any(o[1] == row[1] for o in some[n + 1 :])]
        assert records == len(gone)
        if seen.bytes_exact:
            assert size_bytes == sum(size for *_, size in gone)
        else:
            share = [
                size if part.codec == "none"
                else size * (len(part.data) - V2_HEADER) // sum(part.sizes) for part, _, size in gone
            ]  # fmt: skip
            assert size_bytes == sum(share)
    assert seen.bytes_exact == all(part.codec == "none" for part, *_ in rows)
    assert seen.cleanable_segments == 2
    assert seen.cleanable_bytes == sum(row.size_bytes for row in found.segments[:2])


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_the_plain_way_tells_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    parts = _random_log(seed, codecs=("none", "gzip", "zstd"))
    folder = _write(tmp_path / "orders-0", [replace(part, append_time=False) for part in parts])
    fast = _stats(folder)
    monkeypatch.setattr(record_rows, "record_columns", lambda *_: None)
    assert _stats(folder) == fast
    monkeypatch.setattr(record_rows, "_CHUNK", 7)
    monkeypatch.setattr(record_rows, "whole_payload", lambda *_, **__: None)
    assert _stats(folder) == fast


@pytest.mark.parametrize("seed", [5, 6])
def test_batches_only_tells_what_headers_can(tmp_path: Path, seed: int) -> None:
    folder = _write(tmp_path / "orders-0", _random_log(seed, codecs=("none", "zstd")))
    full, fast = _stats(folder), _stats(folder, records=False)
    assert (fast.keys, fast.record_sizes, fast.compaction) == (None, None, None)
    assert fast.segments == full.segments
    assert (fast.batch_sizes, fast.producers, fast.transactions) == (
        full.batch_sizes,
        full.producers,
        full.transactions,
    )
    assert replace(fast.totals, earliest_timestamp=None) == replace(full.totals, earliest_timestamp=None)
    ratios = {row.codec: row.ratio for row in fast.codecs}
    assert ratios == {"none": 1.0, "zstd": None}
    assert fast.timestamps.out_of_order_records is None


# --- files of real brokers -------------------------------------------------------------------------------------------

FOLDERS = sorted({path.parent for path in DATA.rglob("*.log") if path.parent.name != "names"})


@pytest.mark.parametrize("folder", FOLDERS, ids=[str(folder.relative_to(DATA)) for folder in FOLDERS])
def test_real_files(folder: Path) -> None:
    found = _stats(folder)
    count = records = damaged = control = 0
    keys: list[bytes] = []
    times: list[int] = []
    plain: Counter[int] = Counter()
    for path in sorted(folder.glob("*.log")):
        with Source(path) as source:
            for item in batches(source):
                if isinstance(item, Damage):
                    damaged += 1
                    continue
                content = source.read(item.position, item.size)
                if not crc_is_valid(item, content):
                    damaged += 1
                    continue
                count += 1
                try:
                    if item.control:
                        control += 1
                        continue
                    for each in all_records(item, content):
                        records += 1
                        keys += [] if each.key is None else [each.key]
                        times += [] if each.timestamp == -1 else [each.timestamp]
                    if not item.legacy:
                        pieces = [content[V2_HEADER:]] if not item.codec else decompress(
                            item.codec, content[V2_HEADER:], magic=2, limit=1 << 20
                        )  # fmt: skip
                        plain[item.codec] += V2_HEADER + sum(map(len, pieces))
                except ValueError:
                    damaged += 1
    totals = found.totals
    assert (totals.batches, totals.records, totals.damaged_places) == (count, records, damaged)
    assert totals.control_batches == control
    assert found.keys is not None
    assert found.keys.distinct_keys == len(set(keys))
    assert found.keys.records_with_key == len(keys)
    if times:
        assert _iso(totals.earliest_timestamp) == min(times)
    assert found.timestamps.future_records == sum(time > NOW for time in times)
    if folder.parent.name == "v2" and damaged == 0 and control == 0:
        assert {row.codec: row.uncompressed_bytes for row in found.codecs} == {
            {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}[codec]: size for codec, size in plain.items()
        }


@pytest.mark.parametrize("name", ["v0/snappy", "v1/lz4"])
def test_old_wrappers_have_what_their_messages_would_have(name: str) -> None:
    found = _stats(DATA / name)
    overhead = 12 + (14 if name.startswith("v0") else 22)
    assert found.keys is not None
    expected = found.totals.records * overhead + found.keys.key_bytes + found.keys.value_bytes
    assert [row.uncompressed_bytes for row in found.codecs] == [expected]
    assert found.timestamps.no_timestamp_batches == (found.totals.batches if name.startswith("v0") else 0)
    assert not _stats(DATA / name, records=False).totals.records_exact


def test_real_transactions() -> None:
    found = _stats(DATA / "v2" / "txn").transactions
    entries = sum(path.stat().st_size // 34 for path in (DATA / "v2" / "txn").glob("*.txnindex"))
    assert found.index_entries == found.aborted == entries > 0
    assert found.committed > 0
    assert found.open_count == 0


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
    found = _stats(folder, transaction_timeout_ms=900_000)
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
    assert _stats(folder, transaction_timeout_ms=25 * 60_000).transactions.hanging_count == 1
    assert _stats(folder, now=NOW + HOUR).transactions.hanging_count == 3


def test_a_broken_snapshot_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    write(folder, 0, batch(0, 3), snapshot=with_bytes(producer_snapshot([(1, 0, 0, 0, 0, 0, 0, 0)]), 3, b"\xff"))
    found = collect_statistics(select_logs([folder]), StatisticsOptions(NOW))
    assert ["00000000000000000000.snapshot is not used" in remark for remark in found.remarks] == [True]
    assert found.statistics.transactions.open_count == 0


def test_aborted_records_supersede_nothing_and_go(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    aborted = batch(1, [Rec(b"k")] * 2, producer=(7, 0, 0), transactional=True)
    write(folder, 0, [batch(0, [Rec(b"k")]), aborted, marker(3, (7, 0), commit=False)],
          txnindex=transaction_index([(7, 1, 3, 4)]))  # fmt: skip
    write(folder, 4, [batch(4, [Rec(b"other")], producer=(7, 0, 2), transactional=True), marker(5, (7, 0))])
    write(folder, 6, batch(6, 1))
    found = _stats(folder).compaction
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
    found = _stats(folder)
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
    found = _stats(folder, retention_ms=HOUR)
    assert (found.logs[0].high_watermark, found.logs[0].last_stable_offset) == (35, 35)
    assert [row.deletable_now for row in found.segments] == ["retention_ms"] * 3 + [None]
    assert [row.pinned_by for row in found.segments] == [None] * 3 + ["high_watermark"]
    assert [_iso(row.deletable_at) for row in found.segments] == [NOW - 8 * HOUR + n + 10 for n in range(4)]
    assert [row.active for row in found.segments] == [False] * 3 + [True]
    (tmp_path / "log-start-offset-checkpoint").write_bytes(offset_checkpoint({("orders", 0): 10}))
    found = _stats(folder, retention_bytes=sum(sizes[2:]))
    assert [row.deletable_now for row in found.segments] == ["log_start_offset", "retention_bytes", None, None]
    assert found.logs[0].log_start_offset == 10


def test_some_segments_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    paths = [write(folder, 10 * n, batch(10 * n, [Rec(b"k")] * 10)) for n in range(3)]
    found = _stats(paths[1], paths[0], paths[1])
    assert [(row.base_offset, row.active) for row in found.segments] == [(0, False), (10, False)]
    assert (found.logs[0].segments_left_out, found.logs[0].log_end_offset) == (1, 20)
    assert found.compaction is not None
    assert found.compaction.superseded_records == 19


def test_segments_without_timestamps_are_as_old_as_their_files(tmp_path: Path) -> None:
    body = struct.pack(">bb", 0, 0) + struct.pack(">i", -1) + struct.pack(">i", 1) + b"v"
    path = write(tmp_path / "orders-0", 0, struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body)
    found = _stats(path.parent, retention_ms=HOUR).segments[0]
    assert found.timestamp_from_file
    assert found.records == 1
    assert _iso(found.largest_timestamp) == int(path.stat().st_mtime * 1000)


def test_several_logs_are_told_apart(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / "dir" / f"orders-{number}", 0, batch(0, [Rec(b"k")] * (number + 1)))
    found = _stats(tmp_path / "dir")
    assert [(row.topic, row.partition, row.records) for row in found.logs] == [("orders", n, n + 1) for n in range(3)]
    assert found.keys is not None
    assert found.compaction is not None
    assert (found.keys.distinct_keys, found.keys.hottest[0].records) == (3, 6)
    assert found.compaction.with_active_records == 0 + 1 + 2


# --- what is hostile -------------------------------------------------------------------------------------------------


def test_more_keys_than_memory(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    keys = [b"%d" % int(20_000 * (number * 0.6180339887 % 1) ** 2) for number in range(24_000)]
    write(folder, 0, [batch(n, [Rec(key) for key in keys[n : n + 500]]) for n in range(0, len(keys), 500)])
    write(folder, len(keys), batch(len(keys), 1))
    exact, rough = _stats(folder), _stats(folder, memory_bytes=240 * 600)
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
        for number in range(2000)
    ]
    write(folder, 0, [huge, *tiny])
    tracemalloc.start()
    try:
        found = _stats(folder, memory_bytes=240 * 1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6
    assert found.totals.records == 2020
    assert found.record_sizes is not None
    assert found.record_sizes.largest_bytes == len(record(Rec(b"k", b"\0" * 1_000_000), 0))
    assert found.transactions.open_count == 2000
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
    write(folder, 0, [good, with_bytes(bad, len(bad) - 3, b"!"), lying, b"\0" * 100])
    found = _stats(folder)
    assert found.totals.records == 5 + 3
    assert found.totals.damaged_places == 3
    assert found.totals.damaged_bytes == len(bad) + len(lying) + 100


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_tells_json_and_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _write(tmp_path / "orders-0", _random_log(1))
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
        (lambda folder: write(folder, 0, [batch(0, 3), b"garbage" * 9]), 1, "damage was found in 1 places"),
        (lambda folder: folder / "nowhere", 2, "is no log"),
        (lambda folder: folder / "00000000000000000000.log", 4, "does not exist"),
        (lambda folder: folder, 2, "has no log segment"),
        (lambda folder: write(folder, 0, None, index=b""), 2, "is no log"),
    ],
)
def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Any, code: int, words: str) -> None:
    path = make(tmp_path)
    if code == 2 and words == "is no log" and path.suffix == ".log":
        path = path.with_suffix(".index")
    assert main(["segment", "stats", str(path)]) == code
    assert words in capsys.readouterr().err


def test_an_empty_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "orders-0", 0, b"")
    assert main(["segment", "stats", "--retention-ms", "0", str(path.parent)]) == 0
    assert "empty, active" in capsys.readouterr().out
