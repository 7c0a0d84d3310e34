"""Batches to be sent, read back by the segment reader; requests and responses."""

from __future__ import annotations

import struct

import pytest

from kctl.protocol.wire import WireError
from kctl.records.produce.batch import MAX_RECORDS, ClosedBatch, OpenBatch, compressor, max_record_size, smallest_batch
from kctl.records.produce.outgoing import Outgoing
from kctl.records.produce.partition_queue import PartitionQueue
from kctl.records.produce.wire import Answer, decode, encode, version_for
from kctl.segment.format.batch import V2_HEADER, Batch, crc_is_valid, parse_v2
from kctl.segment.format.compression import decompress
from kctl.segment.format.record import StoredRecord, records_of

RECORDS = [
    Outgoing(None, b"first", (), 1000),
    Outgoing(b"", b"", (), 1005),
    Outgoing(b"key", None, ((b"h", b"1"), (b"h", None)), 900),
    Outgoing(b"\xff", b"x" * 300, ((("ü" * 40).encode(), b"v" * 200),), 2**40),
]


def _read(closed: ClosedBatch, *, producer: tuple[int, int] = (-1, -1)) -> tuple[Batch, list[StoredRecord]]:
    data = b"".join(closed.encode(*producer))
    batch = parse_v2(data, 0, 0)
    assert batch.size == len(data)
    assert crc_is_valid(batch, memoryview(data))
    payload = memoryview(data)[V2_HEADER:]
    pieces = decompress(batch.codec, payload, magic=2, limit=1 << 20) if batch.codec else iter([payload])
    return batch, list(records_of(batch, pieces, limit=1 << 20))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_read_back(codec: str) -> None:
    filling = OpenBatch(4, 1 << 20)
    for number, record in enumerate(RECORDS):
        assert filling.add(record, 10 + number)
    closed = filling.close(codec, compressor(codec))
    closed.sequence = 77
    batch, result = _read(closed, producer=(5000, 3))
    assert (batch.codec_name, batch.record_count, batch.last_offset_delta) == (codec, 4, 3)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5000, 3, 77)
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 2**40)
    assert [(r.key, r.value, r.headers, r.timestamp) for r in result] == [
        (r.key, r.value, r.headers, r.timestamp_ms) for r in RECORDS
    ]
    saved = [(10 + n, record._replace(partition=4)) for n, record in enumerate(RECORDS)]
    assert list(closed.records()) == saved, "what is kept for the report"


@pytest.mark.parametrize("size", [0, 1, 30, 100, 127, 128, 5000, 9000])
def test_adding_values_in_bulk_equals_adding_them_one_by_one(size: int) -> None:
    values = [bytes([n % 256]) * max(0, size - n % 3) for n in range(300)]
    count: list[tuple[int, bytes | None]] = []
    at = 0
    while at < len(values):
        bulk = OpenBatch(0, 50_000)
        behind = bulk.add_values(values, at, len(values), at)
        closed = bulk.close("none", None)
        assert closed.size == bulk.size == len(b"".join(closed.encode(-1, -1))) <= 50_000
        one = OpenBatch(0, 1 << 20)
        for number in range(at, behind):
            one.add(Outgoing(None, values[number]), number)
        assert [r.value for _, r in closed.records()] == [r.value for _, r in one.close("none", None).records()]
        assert bulk.content_bytes == one.content_bytes
        count += [(number, record.value) for number, record in closed.records()]
        at = behind
    assert count == list(enumerate(values))


def test_bulk_after_records_with_keys() -> None:
    batch = OpenBatch(0, 1 << 20)
    batch.add(Outgoing(b"k", b"1", (), 5), 1)
    assert batch.add_values([b"2", b"3"], 0, 2, 2) == 2
    assert [(n, r.key, r.value) for n, r in batch.close("none", None).records()] == [
        (1, b"k", b"1"), (2, None, b"2"), (3, None, b"3"),
    ]  # fmt: skip


def test_a_batch_is_full() -> None:
    batch = OpenBatch(0, 200)
    assert batch.add(Outgoing(None, b"x" * 1000), 1), "the first record always fits"
    assert not batch.add(Outgoing(None, b""), 2)
    assert batch.full
    many = OpenBatch(0, 1 << 30)
    assert many.add_values([b""] * (MAX_RECORDS + 1), 0, MAX_RECORDS + 1, 1) == MAX_RECORDS
    assert many.full


@pytest.mark.parametrize("record", RECORDS)
def test_sizes(record: Outgoing) -> None:
    batch = OpenBatch(0, 10)
    batch.add(record, 1)
    assert smallest_batch(record) <= batch.size <= V2_HEADER + max_record_size(record)
    assert smallest_batch(record._replace(timestamp_ms=None)) <= batch.size


def test_request_and_response() -> None:
    pieces = encode(8, 3, "t", -1, 1500, [(2, b"HEAD", b"records")])
    data = b"".join(pieces)
    assert struct.unpack(">i", data[:4])[0] == len(data) - 4
    assert data[4:] == (
        b"\0\0\0\x08\0\0\0\x03\0\x04kctl" b"\xff\xff\xff\xff\0\0\x05\xdc" b"\0\0\0\x01\0\x01t" b"\0\0\0\x01"
        b"\0\0\0\x02\0\0\0\x0bHEADrecords"
    )  # fmt: skip
    partition = struct.pack(">ihqqq", 2, 87, -1, -1, -1)
    v8 = b"\0\0\0\x01\0\x01t\0\0\0\x01" + partition + b"\0\0\0\x01\0\0\0\0\0\x03why" + b"\xff\xff" + b"\0\0\0\0"
    assert decode(v8, 8) == ([Answer(2, 87, "why", -1)], 0)
    v3 = b"\0\0\0\x01\0\x01t\0\0\0\x01" + partition[:-8] + b"\0\0\0\0"
    assert decode(v3[:-4] + b"\0\0\x07\xd0", 3) == ([Answer(2, 87, None, -1)], 2000)
    with pytest.raises(WireError):
        decode(v8[:30], 8)


@pytest.mark.parametrize(
    ("versions", "codec", "expected"),
    [((0, 11), "none", 8), ((3, 12), "none", 8), ((0, 2), "none", None), ((0, 5), "gzip", 5), ((0, 6), "zstd", None),
     ((0, 7), "zstd", 7), ((9, 12), "none", None), (None, "none", None)],
)  # fmt: skip
def test_versions(versions: tuple[int, int] | None, codec: str, expected: int | None) -> None:
    assert version_for(versions, codec) == expected


def _closed(name: int, count: int = 1) -> ClosedBatch:
    batch = OpenBatch(0, 1000)
    for _ in range(count):
        batch.add(Outgoing(None, b"x"), name)
    return batch.close("none", None)


def test_a_retried_batch_goes_first_and_keeps_its_sequence() -> None:
    queue = PartitionQueue(0, leader=1)
    first, second, third = (_closed(n, count=n) for n in (1, 2, 3))
    queue.waiting.extend([first, second, third])
    assert [queue.send_next(1, idempotent=True) for _ in range(2)] == [first, second]
    assert (first.sequence, second.sequence) == (0, 1)
    queue.in_flight.remove(second)
    queue.retries.append(second)
    assert not queue.may_send(5), "the first has no answer yet"
    queue.in_flight.remove(first)
    queue.retries.append(first)
    assert queue.may_send(5)
    assert [queue.send_next(1, idempotent=True) for _ in range(3)] == [first, second, third]
    assert [batch.sequence for batch in (first, second, third)] == [0, 1, 3]


def test_nothing_is_sent_to_a_new_leader_before_the_old_one_has_responded() -> None:
    queue = PartitionQueue(0, leader=1)
    queue.waiting.extend([_closed(1), _closed(2)])
    queue.send_next(1, idempotent=True)
    queue.leader = 2
    assert not queue.may_send(5)
    queue.leader = 1
    assert queue.may_send(5)
    assert not queue.may_send(1)


def test_batches_that_were_never_sent_are_dropped() -> None:
    queue = PartitionQueue(0, leader=1)
    batches, unsent = _closed(1), _closed(2)
    queue.waiting.extend([batches, unsent])
    queue.retries.append(queue.send_next(1, idempotent=False))
    queue.in_flight.clear()
    assert queue.may_send(1)
    assert list(queue.drop_unsent()) == [unsent]
    assert list(queue.waiting) == [batches]
