"""Points of a log by its timestamps, asked of leaders that a fake stands for: a log of days cannot be had in a test.

Real brokers' answers are in the integration tests (tests/integration/spark/test_lag.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace as Answer
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.errors import ConnectionRefused
from kctl.lag.log_times import Wanted, fetch_points
from kctl.lag.rates import time_lag
from kctl.model import TopicPartition
from kctl.protocol.client import ClusterClient

NOW = 1_790_000_000_000
DAY_MS = 86_400_000


class _Leaders:
    """Logs by their records' timestamps, all in order; `down`: a broker that does not answer; codes: errors."""

    def __init__(self, logs: Mapping[TopicPartition, list[int]], *, first: int = 0, down: int | None = None) -> None:
        self.logs, self.first, self.down = logs, first, down
        self.codes: dict[TopicPartition, int] = {}
        self.asked: Counter[TopicPartition] = Counter()

    def send_each(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        return {
            node: ConnectionRefused("broker 2 refuses") if node == self.down else self._answer(request)
            for node, request in requests.items()
        }

    def _answer(self, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            rows = [self._row(TopicPartition(topic.name, p.partition_index), p.timestamp) for p in topic.partitions]
            topics.append(Answer(name=topic.name, partitions=rows))
        return Answer(topics=topics)

    def _row(self, tp: TopicPartition, timestamp: int) -> Any:
        self.asked[tp] += 1
        times = self.logs[tp]
        place = bisect_left(times, timestamp)
        offset, at = (self.first + place, times[place]) if place < len(times) else (-1, -1)
        return Answer(partition_index=tp.partition, error_code=self.codes.get(tp, 0), offset=offset, timestamp=at)


def _points(leaders: _Leaders, wanted: Mapping[TopicPartition, Wanted]) -> Any:
    return fetch_points(cast(ClusterClient, leaders), wanted, NOW)


TP = TopicPartition("t", 0)


@given(
    st.lists(st.integers(0, 30 * DAY_MS) | st.integers(0, 60_000), min_size=1, max_size=60),
    st.integers(0, 59),
    st.integers(0, 1000),
)
def test_a_time_lag_is_at_most_twice_or_half_of_what_it_is(ages: list[int], behind: int, first: int) -> None:
    times = sorted(NOW - age for age in ages)
    place = behind % len(times)
    found, failed = _points(_Leaders({TP: times}, first=first), {TP: Wanted(1, first + place, first + len(times))})
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
    found, _ = _points(_Leaders({TP: times}), {TP: Wanted(1, 40, 100)})
    assert time_lag(found[TP], 40).ms == pytest.approx(7 * DAY_MS, rel=0.25)
    found, _ = _points(_Leaders({TP: times}), {TP: Wanted(1, 0, 100)})
    assert time_lag(found[TP], 0).ms == 7 * DAY_MS


def test_no_more_is_asked_than_is_of_interest() -> None:
    old = TopicPartition("t", 1)
    leaders = _Leaders({TP: [NOW - 3000, NOW - 500], old: [NOW - 40 * DAY_MS, NOW]})
    _points(leaders, {TP: Wanted(1, 1, 2), old: Wanted(1, 0, 2)})
    assert leaders.asked == {TP: 1, old: 23}


def test_older_than_all_that_is_asked_for() -> None:
    found, failed = _points(_Leaders({TP: [0, NOW]}), {TP: Wanted(1, 0, 3)})
    assert not failed
    lag = time_lag(found[TP], 0)
    assert lag.ms is None
    assert lag.at_least_ms is not None
    assert lag.at_least_ms > 48 * DAY_MS


def test_the_future_is_now() -> None:
    found, _ = _points(_Leaders({TP: [NOW - 5000, NOW + DAY_MS]}), {TP: Wanted(1, 0, 2)})
    assert time_lag(found[TP], 1).ms == 0
    assert time_lag(found[TP], 0).ms == 5000


def test_what_cannot_be_asked() -> None:
    other, third = TopicPartition("t", 1), TopicPartition("u", 0)
    leaders = _Leaders({TP: [NOW], other: [NOW], third: [NOW]}, down=2)
    leaders.codes[third] = 6
    found, failed = _points(leaders, {TP: Wanted(1, 0, 1), other: Wanted(2, 0, 1), third: Wanted(1, 0, 1)})
    assert set(found) == {TP}
    assert set(failed) == {other, third}
    assert failed[other].message == "broker 2 refuses"


def test_nothing_is_asked_for_nothing() -> None:
    assert _points(_Leaders({}), {}) == ({}, {})
