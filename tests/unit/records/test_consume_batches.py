"""Decoding of Fetch responses into records: every codec, transactions, gaps, damage."""

from __future__ import annotations

import struct
import zlib

import pytest

from kctl.errors import NotSupported, OperationFailed
from kctl.model import TopicPartition
from kctl.records.consume import batches
from kctl.records.consume.batches import decode, next_offset
from kctl.records.record import Record
from kctl.segment.format import compression
from segment_files import Rec, batch, marker, with_bytes

TP = TopicPartition("t", 3)


def _read(data: bytes, position: int = 0, aborted: tuple[tuple[int, int], ...] = ()) -> list[Record]:
    result: list[Record] = []
    for chunk, following in decode(TP, data, position, aborted):
        if chunk is not None:
            result += chunk.records()
            assert following == result[-1].offset + 1
    return result


def _offsets(data: bytes, position: int = 0, aborted: tuple[tuple[int, int], ...] = ()) -> list[int]:
    return [record.offset for record in _read(data, position, aborted)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_all_fields_of_a_record(codec: str) -> None:
    recs = [
        Rec(b"k", b"v", [(b"h", b"x"), (b"n", None)]), Rec(None, None), Rec(b"", b""), Rec(b"\xff", b"y" * 1_200_000),
    ]  # fmt: skip
    result = _read(batch(7, recs, codec=codec))
    assert [(r.key, r.value) for r in result] == [(rec.key, rec.value) for rec in recs]
    assert [r.offset for r in result] == [7, 8, 9, 10]
    assert result[0].headers == (("h", b"x"), ("n", None))
    assert {(r.topic, r.partition) for r in result} == {("t", 3)}
    assert result[1].timestamp_ms == (result[0].timestamp_ms or 0) + 1


def test_decoding_starts_within_a_batch_and_ends_with_complete_ones() -> None:
    data = batch(0, 100) + batch(100, 50)
    assert _offsets(data, 42) == list(range(42, 150))
    assert _offsets(data[:-1], 42) == list(range(42, 100)), "the last batch was cut off by the broker"
    assert next_offset(data[:-1], 42) == 100
    assert next_offset(b"", 42) == 42


def test_gaps_of_compaction_advance_the_position() -> None:
    data = batch(0, [Rec(offset=1), Rec(offset=5)], last_offset_delta=9) + batch(10, [], last_offset_delta=9, count=0)
    assert _offsets(data) == [1, 5]
    assert [step.next_offset for step in decode(TP, data, 0)][-1] == next_offset(data, 0) == 20


def test_markers_are_not_records() -> None:
    data = batch(0, 2, producer=(7, 0, 0), transactional=True) + marker(2, (7, 0)) + batch(3, 1)
    assert _offsets(data) == [0, 1, 3]
    assert next_offset(data[: -len(batch(3, 1))], 0) == 3


def test_aborted_transactions_are_skipped_up_to_their_marker() -> None:
    """Two producers interleaved: 7 aborts [0, 4) and then commits, 8 commits; another transaction of 7 aborts later."""
    data = b"".join(
        [
            batch(0, 1, producer=(7, 0, 0), transactional=True),
            batch(1, 1, producer=(8, 0, 0), transactional=True),
            batch(2, 1),  # not transactional
            batch(3, 1, producer=(7, 0, 1), transactional=True),
            marker(4, (7, 0), commit=False),
            batch(5, 1, producer=(7, 0, 2), transactional=True),
            marker(6, (8, 0)),
            marker(7, (7, 0)),
            batch(8, 1, producer=(7, 0, 3), transactional=True),
            marker(9, (7, 0), commit=False),
        ]
    )
    assert _offsets(data, aborted=((7, 0), (7, 8))) == [1, 2, 5]
    assert _offsets(data, aborted=((7, 8), (7, 0))) == [1, 2, 5], "in whatever order the broker tells them"
    assert _offsets(data) == [0, 1, 2, 3, 5, 8], "read_uncommitted"
    begun_before = data[len(batch(0, 1)) :]
    assert _offsets(begun_before, 1, ((7, 0), (7, 8))) == [1, 2, 5], "it began before what was fetched"


def _legacy(offset: int, value: bytes, *, magic: int = 1) -> bytes:
    """A message of magic 0 or 1 (org.apache.kafka.common.record.LegacyRecord)."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", 1234) if magic else b"") + struct.pack(">i", -1)
    body += struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def test_messages_of_old_formats() -> None:
    data = _legacy(5, b"one", magic=0) + _legacy(6, b"two") + batch(7, 1)
    assert [(r.offset, r.value, r.timestamp_ms) for r in _read(data)][:2] == [(5, b"one", None), (6, b"two", 1234)]
    assert _offsets(data, 6) == [6, 7]
    assert next_offset(data, 5) == 8


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (with_bytes(batch(5, 3), 70, b"\x7f"), "wrong checksum"),
        (with_bytes(_legacy(5, b"abc"), 30, b"z"), "wrong checksum"),
        (batch(5, 3, payload=b"\x01\x02\x03"), "bytes"),
        (batch(5, 3, count=4), "too early"),
        (batch(5, 3, count=2), "after the last record"),
        (batch(5, 1, codec="zstd", payload=b"no zstd"), "not zstd"),
        (batch(5, 1, attributes=6), "unknown compression type 6"),
        (batch(5, [Rec(key=b"")], control=True, transactional=True, producer=(1, 0, -1)), "without a type"),
    ],
)
def test_damage_is_reported_with_its_offsets(data: bytes, why: str) -> None:
    with pytest.raises(OperationFailed, match=why) as caught:
        _read(batch(0, 5) + data)
    assert caught.value.message.startswith("partition t-3: the batch of offsets 5 to ")
    assert "--offset" in str(caught.value.hint)
    good = next(decode(TP, batch(0, 5) + data, 0)).chunk
    assert good
    assert list(good.offsets) == [0, 1, 2, 3, 4], "what came before is good"


def test_an_incomplete_batch_is_an_error_not_an_endless_loop() -> None:
    with pytest.raises(OperationFailed, match="no complete batch"):
        _read(batch(0, 5)[:-3])


def test_a_codec_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "find_spec", lambda name: None)
    with pytest.raises(NotSupported, match="the zstd library is not installed") as caught:
        _read(batch(0, 5, codec="zstd"))
    assert "kctl[codecs]" in str(caught.value.hint)


def test_a_large_batch_is_decoded_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a batch cannot be decoded as columns, at most a thousand records are in memory."""
    monkeypatch.setattr(batches, "record_columns", lambda *_: None)
    chunks = [chunk for chunk, _ in decode(TP, batch(0, 2500), 0) if chunk]
    assert [chunk.size for chunk in chunks] == [1000, 1000, 500]
    assert [offset for chunk in chunks for offset in chunk.offsets] == list(range(2500))
