"""kctl segment stats: every figure against a naive computation, on real files and on files built here."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kctl.segment.dump.query import all_records
from kctl.segment.format.batch import V2_HEADER, crc_is_valid
from kctl.segment.format.compression import decompress
from kctl.segment.log.source import Source
from kctl.segment.log.walk import Damage, batches, is_preallocated
from kctl.segment.stats import record_rows
from kctl.segment.stats.statistics import SegmentStatistics
from segment_files import (
    BASE_TIMESTAMP,
    Rec,
    batch,
    record,
    write,
)
from segment_statistics import HOUR, NOW, milliseconds, stats_of

DATA = Path(__file__).parents[2] / "data" / "segments"

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
    found = stats_of(_write(tmp_path / "orders-0", parts))
    rows = [(part, rec, size, time) for part in parts
            for rec, size, time in zip(part.recs, part.sizes, part.times, strict=True)]  # fmt: skip
    times = [time for *_, time in rows]

    totals = found.totals
    assert (totals.logs, totals.segments, totals.batches, totals.records) == (1, 3, len(parts), len(rows))
    assert totals.size_bytes == sum(len(part.data) for part in parts)
    assert (milliseconds(totals.earliest_timestamp), milliseconds(totals.latest_timestamp)) == (min(times), max(times))
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
    fast = stats_of(folder)
    monkeypatch.setattr(record_rows, "record_columns", lambda *_: None)
    assert stats_of(folder) == fast
    monkeypatch.setattr(record_rows, "_CHUNK", 7)
    monkeypatch.setattr(record_rows, "whole_payload", lambda *_, **__: None)
    assert stats_of(folder) == fast


@pytest.mark.parametrize("seed", [5, 6])
def test_batches_only_tells_what_headers_can(tmp_path: Path, seed: int) -> None:
    folder = _write(tmp_path / "orders-0", _random_log(seed, codecs=("none", "zstd")))
    full, fast = stats_of(folder), stats_of(folder, records=False)
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
    found = stats_of(folder)
    count = records = damaged = control = 0
    keys: list[bytes] = []
    times: list[int] = []
    plain: Counter[int] = Counter()
    for path in sorted(folder.glob("*.log")):
        with Source(path) as source:
            for item in batches(source):
                if isinstance(item, Damage):
                    damaged += not is_preallocated(source, item)
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
        assert milliseconds(totals.earliest_timestamp) == min(times)
    assert found.timestamps.future_records == sum(time > NOW for time in times)
    if folder.parent.name == "v2" and damaged == 0 and control == 0:
        assert {row.codec: row.uncompressed_bytes for row in found.codecs} == {
            {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}[codec]: size for codec, size in plain.items()
        }


@pytest.mark.parametrize("name", ["v0/snappy", "v1/lz4"])
def test_old_wrappers_have_what_their_messages_would_have(name: str) -> None:
    found = stats_of(DATA / name)
    overhead = 12 + (14 if name.startswith("v0") else 22)
    assert found.keys is not None
    expected = found.totals.records * overhead + found.keys.key_bytes + found.keys.value_bytes
    assert [row.uncompressed_bytes for row in found.codecs] == [expected]
    assert found.timestamps.no_timestamp_batches == (found.totals.batches if name.startswith("v0") else 0)
    assert not stats_of(DATA / name, records=False).totals.records_exact


def test_real_transactions() -> None:
    found = stats_of(DATA / "v2" / "txn").transactions
    entries = sum(path.stat().st_size // 34 for path in (DATA / "v2" / "txn").glob("*.txnindex"))
    assert found.index_entries == found.aborted == entries > 0
    assert found.committed > 0
    assert found.open_count == 0
