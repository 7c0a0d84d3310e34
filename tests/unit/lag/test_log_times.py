"""Points of a log by its timestamps, asked of leaders that a fake stands for: a log of days cannot be had in a test.

Real brokers' answers are in the integration tests (tests/integration/spark/test_lag.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace as Answer
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_cluster import FakeCluster, topic_of
from kctl.cluster import log_offsets
from kctl.errors import ConnectionRefused
from kctl.lag.log_times import UnreadLog, fetch_points
from kctl.lag.rates import time_lag
from kctl.model import TopicPartition
from kctl.protocol.codes import ErrorCode

NOW = 1_790_000_000_000
DAY_MS = 86_400_000
Codes: TypeAlias = Mapping[TopicPartition, int]


def _leaders(logs: Mapping[TopicPartition, list[int]], *, first: int = 0, codes: Codes | None = None) -> FakeCluster:
    """Logs by their records' timestamps, all in order, from offset `first` on. codes: errors."""

    fake = FakeCluster()

    def code(node: int, tp: TopicPartition) -> int:
        if tp.topic in fake.topics and fake.topics[tp.topic].partitions[tp.partition].leader != node:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return (codes or {}).get(tp, 0)

    def row(node: int, p: Any, tp: TopicPartition) -> Any:
        times = logs[tp]
        place = bisect_left(times, p.timestamp)
        offset, at = (first + place, times[place]) if place < len(times) else (-1, -1)
        return Answer(partition_index=tp.partition, error_code=code(node, tp), offset=offset, timestamp=at)

    def listed(node: int, request: Any) -> Any:
        topics = [
            Answer(
                name=t.name, partitions=[row(node, p, TopicPartition(t.name, p.partition_index)) for p in t.partitions]
            )
            for t in request.topics
        ]
        return Answer(topics=topics)

    fake.always("ListOffsets", listed)
    return fake


def _points(fake: FakeCluster, wanted: Mapping[TopicPartition, UnreadLog]) -> Any:
    return fetch_points(fake.client, wanted, NOW)


TP = TopicPartition("t", 0)


@given(
    st.lists(st.integers(0, 30 * DAY_MS) | st.integers(0, 60_000), min_size=1, max_size=60),
    st.integers(0, 59),
    st.integers(0, 1000),
)
def test_a_time_lag_is_at_most_twice_or_half_of_what_it_is(ages: list[int], behind: int, first: int) -> None:
    times = sorted(NOW - age for age in ages)
    place = behind % len(times)
    found, failed = _points(_leaders({TP: times}, first=first), {TP: UnreadLog(1, first + place, first + len(times))})
    assert not failed
    points = found[TP]
    assert list(points) == sorted(points)
    assert points[-1] == (NOW, first + len(times))
    age = time_lag(points, first + place).ms
    assert age is not None
    true = NOW - times[place]
    assert true / 2 - 1000 <= age <= true * 2 + 1000
    for offset, at in enumerate(times[place:], first + place):  # the later ones too
        later = time_lag(points, offset).ms
        assert later is not None
        assert (NOW - at) / 2 - 1000 <= later <= (NOW - at) * 2 + 1000


def test_a_log_that_was_written_at_once() -> None:
    times = [NOW - 7 * DAY_MS] * 100
    found, _ = _points(_leaders({TP: times}), {TP: UnreadLog(1, 40, 100)})
    assert time_lag(found[TP], 40).ms == pytest.approx(7 * DAY_MS, rel=0.25)
    found, _ = _points(_leaders({TP: times}), {TP: UnreadLog(1, 0, 100)})
    assert time_lag(found[TP], 0).ms == 7 * DAY_MS


def test_no_more_is_asked_than_is_of_interest() -> None:
    old = TopicPartition("t", 1)
    leaders = _leaders({TP: [NOW - 3000, NOW - 500], old: [NOW - 40 * DAY_MS, NOW]})
    _points(leaders, {TP: UnreadLog(1, 1, 2), old: UnreadLog(1, 0, 2)})
    topics = [topic for each in leaders.requests for topic in each.request.topics]
    partitions = Counter(TopicPartition(t.name, p.partition_index) for t in topics for p in t.partitions)
    assert partitions == {TP: 1, old: 23}


def test_older_than_all_that_is_asked_for() -> None:
    found, failed = _points(_leaders({TP: [0, NOW]}), {TP: UnreadLog(1, 0, 3)})
    assert not failed
    lag = time_lag(found[TP], 0)
    assert lag.ms is None
    assert lag.at_least_ms is not None
    assert lag.at_least_ms > 48 * DAY_MS


def test_the_future_is_now() -> None:
    found, _ = _points(_leaders({TP: [NOW - 5000, NOW + DAY_MS]}), {TP: UnreadLog(1, 0, 2)})
    assert time_lag(found[TP], 1).ms == 0
    assert time_lag(found[TP], 0).ms == 5000


def test_what_cannot_be_asked() -> None:
    other, third = TopicPartition("t", 1), TopicPartition("u", 0)
    leaders = _leaders({TP: [NOW], other: [NOW], third: [NOW]}, codes={third: 6})
    leaders.always("ListOffsets", ConnectionRefused("broker 2 refuses"), node=2)
    found, failed = _points(leaders, {TP: UnreadLog(1, 0, 1), other: UnreadLog(2, 0, 1), third: UnreadLog(1, 0, 1)})
    assert set(found) == {TP}
    assert set(failed) == {other, third}
    assert failed[other].message == "broker 2 refuses"


@pytest.mark.parametrize("reads_before", [0, 3])
def test_a_leader_that_moves_after_the_snapshot_is_looked_up_again(
    monkeypatch: pytest.MonkeyPatch, reads_before: int
) -> None:
    monkeypatch.setattr(log_offsets, "LEADER_PAUSES_S", (0.0, 0.0))
    stays, moves = TopicPartition("t", 0), TopicPartition("t", 1)
    times = [NOW - 2 * DAY_MS, NOW - DAY_MS]
    fake = _leaders({stays: times, moves: times})
    fake.topics["t"] = topic_of("t", 1, 1)
    fake.script("ListOffsets", *[None] * reads_before, lambda *_: fake.lead(moves, 2), node=1)
    points, failed = _points(fake, {stays: UnreadLog(1, 0, 2), moves: UnreadLog(1, 0, 2)})
    assert not failed
    assert points[moves] == points[stays]
    assert fake.sent["Metadata"] == 1, "further reads go to the new leader"


def test_nothing_is_asked_for_nothing() -> None:
    assert _points(_leaders({}), {}) == ({}, {})
