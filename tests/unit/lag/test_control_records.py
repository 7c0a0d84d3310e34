"""Transaction markers in a group's lag. Real brokers: tests/integration/spark/test_lag.py."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest

from fake_cluster import FakeCluster
from kctl.errors import ConnectionRefused
from kctl.lag import control_records as module
from kctl.lag.control_records import Markers, control_records, fetch_markers, markers_of
from kctl.lag.log_times import UnreadLog
from kctl.model import TopicPartition
from segment_files import batch, marker

# Two records, their marker, three records, another one: offsets 10 to 16.
LOG = batch(10, 2, transactional=True) + marker(12, (7, 0)) + batch(13, 3, transactional=True) + marker(16, (7, 0))


@pytest.mark.parametrize(
    ("data", "first", "end", "offsets"),
    [
        (LOG, 10, 17, (12, 16)),
        (LOG, 11, 17, (12, 16)),  # the answer begins with the batch that holds the offset
        (LOG, 13, 17, (16,)),  # … or with one before it
        (LOG, 10, 16, (12,)),  # the last is behind the end that was read before
        (LOG, 10, 18, None),  # the answer does not reach so far
        (LOG[:-1], 10, 17, (12, 16)),  # cut off behind the header
        (LOG[:-20], 10, 17, None),
        (marker(16, (7, 0)), 16, 17, (16,)),
        (marker(16, (7, 0)), 10, 17, (10, 11, 12, 13, 14, 15, 16)),  # compaction has taken what lay before
        (marker(16, (7, 0)) + marker(17, (8, 0), commit=False), 16, 18, (16, 17)),  # markers of two producers
        (batch(10, 2) + marker(12, (7, 0)) + batch(15, 1), 12, 16, (12, 13, 14)),  # a gap behind a marker
        (batch(10, 0, last_offset_delta=4, count=0), 10, 15, (10, 11, 12, 13, 14)),  # a batch without records left
        (batch(10, 0, last_offset_delta=4, count=0), 12, 15, (12, 13, 14)),
        # Two of five records are left. Which, headers do not tell: from offset 13 on both may be unread.
        (batch(10, 2, last_offset_delta=4, count=2), 10, 15, (10, 11, 12)),
        (batch(10, 2, last_offset_delta=4, count=2), 12, 15, (12,)),
        (batch(10, 2, last_offset_delta=4, count=2), 13, 15, ()),
        (batch(10, 2, transactional=True) + marker(12, (7, 0), commit=False), 10, 13, (12,)),  # aborted: messages
        (batch(10, 9, count=2**31 - 1), 10, 19, None),  # more records than offsets: damage
        (batch(10, 2, last_offset_delta=-1), 10, 12, None),
        (batch(10, 7), 10, 17, ()),
        (batch(10, magic=1) + marker(16, (7, 0)), 10, 17, None),
        (b"", 10, 17, None),
        (b"", 10, 10, ()),
        (b"\0" * 200, 10, 17, None),
        (b"\xff" * 200, 10, 17, None),
    ],
)
def test_markers_by_headers(data: bytes, first: int, end: int, offsets: tuple[int, ...] | None) -> None:
    assert markers_of(data, first, end) == (None if offsets is None else Markers(first, end, offsets))


@pytest.mark.parametrize(
    ("offset", "end", "count"),
    [(10, 17, 2), (12, 17, 2), (13, 17, 1), (17, 17, 0), (18, 17, 0), (9, 17, None), (10, 18, None)],
)  # fmt: skip
def test_each_group_counts_from_its_own_offset(offset: int, end: int, count: int | None) -> None:
    assert control_records(Markers(10, 17, (12, 16)), offset, end) == count
    assert control_records(None, offset, end) == (0 if offset >= end else None)


def _leaders(code: int = 0) -> FakeCluster:
    """Brokers that answer Fetch with LOG, broker 2 not at all. code: an error for partition 1."""

    def fetched(_node: int, request: Any) -> Any:
        (topic,) = request.topics
        rows = [
            Answer(partition_index=row.partition, error_code=code if row.partition == 1 else 0, records=LOG)
            for row in topic.partitions
        ]
        return Answer(error_code=0, responses=[Answer(topic=topic.topic, partitions=rows)])

    fake = FakeCluster()
    fake.always("Fetch", fetched)
    fake.always("Fetch", ConnectionRefused("no"), node=2)
    return fake


def _fetched_partitions(fake: FakeCluster) -> list[list[int]]:
    """The partitions of each request to broker 1."""
    return [[p.partition for p in each.request.topics[0].partitions] for each in fake.requests if each.node == 1]


def test_what_cannot_be_asked_is_told_and_the_rest_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PARTITIONS_PER_REQUEST", 2)
    fake = _leaders(code=29)
    wanted = {TopicPartition("t", n): UnreadLog(1 if n < 4 else 2, 12, 17) for n in range(5)}
    found, failed = fetch_markers(fake.client, wanted)
    assert _fetched_partitions(fake) == [[0, 1], [2, 3]]
    assert found == {TopicPartition("t", n): Markers(12, 17, (12, 16)) for n in (0, 2, 3)}
    assert set(failed) == {TopicPartition("t", 1), TopicPartition("t", 4)}


def test_the_nearest_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PARTITIONS", 2)
    fake = _leaders()
    wanted = {TopicPartition("t", n): UnreadLog(1, 16 - n, 17) for n in (3, 0, 1)}
    assert set(fetch_markers(fake.client, wanted)[0]) == {
        TopicPartition("t", 0),
        TopicPartition("t", 1),
    }
