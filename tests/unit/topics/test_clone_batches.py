"""Fetched batches of a source as batches for a target: which are passed on, which are decoded."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.errors import OperationFailed
from kctl.model import TopicPartition
from kctl.records.consume.batches import decode
from kctl.records.produce.batch import compressor
from kctl.topics.clone import batches
from kctl.topics.clone.batches import BatchFormat, CopiedBatch, copied_batches
from segment_files import BASE_TIMESTAMP, CODECS, Rec, batch, marker, with_bytes

TP = TopicPartition("t", 3)
KINDS = [
    Rec(b"k", b"v", [(b"h", b"1"), (b"h", None), (b"\xff\xfe", b"")]), Rec(None, None), Rec(b"", b""),
    Rec(b"\xff", b"y" * 300),
]  # fmt: skip
Row = tuple[int, "bytes | None", "bytes | None", object]


def _target(codec: str = "none", max_bytes: int = 1 << 20) -> BatchFormat:
    return BatchFormat(codec, compressor(codec), max_bytes)


def _copy(
    data: bytes, *, position: int = 0, end: int = 1 << 60, aborted: tuple[tuple[int, int], ...] = (),
    target: BatchFormat | None = None,
) -> list[CopiedBatch]:  # fmt: skip
    return list(copied_batches(TP, data, position, end, aborted, target or _target()))


def _rows(data: bytes, aborted: tuple[tuple[int, int], ...] = ()) -> list[Row]:
    rows: list[Row] = []
    for chunk, _ in decode(TP, data, 0, aborted):
        if chunk is not None:
            rows += [
                (chunk.timestamps[i], chunk.keys[i], chunk.values[i], chunk.headers_of(i)) for i in range(chunk.size)
            ]
    return rows


def _written(copied: list[CopiedBatch]) -> list[Row]:
    """What the target's log holds, where the broker has given the offsets."""
    data, offset = b"", 0
    for each, _ in copied:
        header, records = each.encode(5000, 0)
        data += struct.pack(">q", offset) + header[8:] + records
        offset += each.count
    return _rows(data)


@pytest.mark.parametrize("target", CODECS)
@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_to_every_codec(codec: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passed on or decoded: the same records, in batches of the requested codec."""
    data = batch(0, KINDS * 30, codec=codec) + batch(120, KINDS, codec=codec)
    for least in (0, 1 << 30):
        monkeypatch.setattr(batches, "_MIN_PASSED_BYTES", least)
        copied = _copy(data, target=_target(target))
        assert _written(copied) == _rows(data)
        assert {each.encode(1, 0)[0][22] & 7 for each, _ in copied} == {CODECS[target]}
        assert [following for _, following in copied] == ([120, 124] if least == 0 else [124])


@pytest.mark.parametrize(
    ("data", "passed"),
    [
        (batch(0, 500), True),
        (batch(0, 500, producer=(7, 1, 40)), True),
        (batch(0, 500, producer=(7, 1, 40), transactional=True), True),
        (batch(0, 20), False),  # small
        (batch(0, 500, append_time=True), False),  # the broker's time is that of all records
        (batch(0, 500, attributes=0x40), False),  # base timestamp is a delete horizon
        (batch(0, 500, last_offset_delta=510), False),  # the last records were compacted
        (batch(0, [Rec(offset=n * 2) for n in range(500)]), False),
    ],
)  # fmt: skip
def test_which_batches_are_passed_on(data: bytes, passed: bool) -> None:
    calls = _copy(data)
    assert _written(calls) == _rows(data)
    header, records = calls[0].batch.encode(5000, 0)
    assert (records == data[61:] and len(calls) == 1 and header[27:43] == data[27:43]) == passed or not passed
    assert struct.unpack_from(">h", header, 21)[0] == 0, "neither transactional nor of the broker's time"
    assert struct.unpack_from(">q", header, 43)[0] == 5000


def test_timestamps_of_the_broker_are_those_of_the_records() -> None:
    data = batch(0, 300, append_time=True, max_timestamp=BASE_TIMESTAMP + 9_999)
    assert {row[0] for row in _written(_copy(data))} == {BASE_TIMESTAMP + 9_999}


def test_only_the_range_is_copied() -> None:
    data = batch(0, 500) + batch(500, 500) + batch(1000, 500)
    copied = _copy(data, position=100, end=1200)
    assert _written(copied) == _rows(data)[100:1200]
    assert copied[-1].next_offset == 1200
    assert _copy(data, position=100, end=100) == []


def test_markers_and_aborted_transactions_stay_behind() -> None:
    data = b"".join(
        [
            batch(0, 300, producer=(7, 0, 0), transactional=True), marker(300, (7, 0), commit=False),
            batch(301, 300, producer=(8, 0, 0), transactional=True), marker(601, (8, 0)), batch(602, 3),
        ]
    )  # fmt: skip
    copied = _copy(data, aborted=((7, 0),))
    assert _written(copied) == _rows(data, ((7, 0),))
    assert [(each.count, following) for each, following in copied] == [(300, 601), (3, 605)]


def test_a_batch_that_the_target_would_refuse_is_divided() -> None:
    """Compressed it fitted; also one that was written when the limit was larger."""
    for data in (batch(0, 3000, codec="zstd"), batch(0, 3000)):
        copied = _copy(data, target=_target(max_bytes=10_000))
        assert max(each.wire_bytes for each, _ in copied) <= 10_000
        assert _written(copied) == _rows(data)
        assert sum(each.count for each, _ in copied) == copied[-1].next_offset == 3000


def test_small_batches_are_joined() -> None:
    data = b"".join(batch(n * 2, 2) for n in range(1000))
    assert len(_copy(data)) == 1
    assert _written(_copy(data)) == _rows(data)


def test_a_damaged_batch_ends_the_copy() -> None:
    data = batch(0, 500) + with_bytes(batch(500, 500), 100, b"\xff")
    result = copied_batches(TP, data, 0, 1 << 60, (), _target())
    assert next(result).next_offset == 500
    with pytest.raises(OperationFailed, match="wrong checksum"):
        next(result)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 60), st.sampled_from(list(CODECS)), st.booleans()), max_size=8
    ),
    st.sampled_from(list(CODECS)),
    st.integers(500, 20_000),
    st.integers(0, 4000),
)
def test_any_log(parts: list[tuple[int, int, str, bool]], codec: str, max_bytes: int, least: int) -> None:
    """Gaps, codecs and broker timestamps in any order: the same records, and each next offset is behind its batch."""
    data, offset = b"", 0
    for gap, count, kind, append_time in parts:
        data += batch(offset + gap, (KINDS * 15)[:count], codec=kind, append_time=append_time)
        offset += gap + count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "_MIN_PASSED_BYTES", least)
        copied = _copy(data, target=_target(codec, max_bytes))
    assert _written(copied) == _rows(data)
    if copied:
        assert copied[-1].next_offset == offset
    for number, (_, following) in enumerate(copied):
        assert _written(copied[number + 1 :]) == _written(_copy(data, position=following)), "to resume there"
