"""What `kctl spark lag` asks of live logs beside their offsets, of real brokers and without Spark.

With Spark: test_jobs.py (the figures of Kafka's own tool) and test_scenarios.py (groups under load).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from kctl.lag.control_records import PARTITION_BYTES, Markers, fetch_markers
from kctl.lag.log_times import UnreadLog, fetch_points
from kctl.lag.rates import time_lag
from kctl.model import TopicPartition
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl_testing import TestCluster

Topic = Callable[..., str]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_brokers_tell_when_messages_were_written(cluster: TestCluster, topic: Topic) -> None:
    """Points of a log by ListOffsets with times: what is interpolated of an age is at most half of it.

    A leader that is not the one of the snapshot (here: an unknown broker) is looked up again.
    """
    name = topic(partitions=2, replication_factor=1)
    tp, other = TopicPartition(name, 0), TopicPartition(name, 1)
    written: list[int] = []
    with connect(Target(cluster.name, tuple(cluster.bootstrap.split(",")))) as client:
        producer = client.producer()
        producer.send(name, b"x", partition=1).get(30)  # so that the rest is written at once
        for _ in range(3):
            written.append(_now_ms())
            for _ in range(10):
                producer.send(name, b"x", partition=0)
            producer.flush()
            time.sleep(0.7)
        producer.close()
        leaders = {p.tp: p.leader for p in client.metadata([name]).topics[name].partitions}
        at_ms = _now_ms()
        wanted = {tp: UnreadLog(leaders[tp], 5, 30), other: UnreadLog(leaders[other], 1, 1)}
        points, failed = fetch_points(client, wanted, at_ms)
        after_move, unread = fetch_points(client, {tp: UnreadLog(4711, 5, 30)}, at_ms)
    assert (failed, unread) == ({}, {})
    assert after_move[tp] == points[tp]
    for batch, offset in enumerate((5, 15, 25)):
        age, true = time_lag(points[tp], offset).ms, at_ms - written[batch]
        assert age is not None
        assert true / 2 - 200 <= age <= true + 50


@pytest.mark.parametrize(
    ("size", "count", "known"), [(10, 3, True), (PARTITION_BYTES // 2, 3, False)], ids=["near", "too much to read"]
)
def test_headers_are_read_as_far_as_an_answer_reaches(
    cluster: TestCluster, topic: Topic, size: int, count: int, known: bool
) -> None:
    """Two partitions, because of the first a broker gives a whole batch, however large."""
    name = topic(partitions=2, replication_factor=1)
    with connect(Target(cluster.name, tuple(cluster.bootstrap.split(",")))) as client:
        producer = client.producer(linger_ms=0)
        for number in range(2 * count):
            producer.send(name, bytes(size), partition=number % 2).get(30)
        producer.close()
        partitions = client.metadata([name]).topics[name].partitions
        wanted = {p.tp: UnreadLog(p.leader, 0, count) for p in partitions}
        found, failed = fetch_markers(client, wanted)
        _, unasked = fetch_markers(client, {tp: UnreadLog(4711, 0, count) for tp in wanted})
    assert failed == {}
    assert found == ({tp: Markers(0, count, ()) for tp in wanted} if known else {})
    assert set(unasked) == set(wanted)
