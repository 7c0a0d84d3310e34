"""Fetching when leaders are away: what is waited for, for how long, and what is said. Brokers that fail on demand are
stand-ins; real ones are in tests/integration/test_consume_more.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from kctl.errors import ConnectionFailed, ConnectionRefused, KctlError, NotAuthorized, OperationFailed
from kctl.model import ClusterState, PartitionState, TopicPartition, TopicState
from kctl.records.fetcher import Fetcher

TP = TopicPartition("t", 0)


class _Client:
    """A cluster that knows a leader, or none, and cannot be read from."""

    def __init__(self, leader: int = 1, *, metadata: KctlError | None = None, topics: bool = True) -> None:
        self._leader, self._error, self._topics = leader, metadata, topics
        self.looks = 0
        self.topic_id: Callable[[], str] = lambda: "id"

    def metadata(self, _topics: Any) -> ClusterState:
        self.looks += 1
        if self._error:
            raise self._error
        partition = PartitionState("t", 0, self._leader, 0, (1, 2), (1,))
        topic = TopicState("t", False, self.topic_id(), (partition,))
        return ClusterState("c", 1, {}, {"t": topic} if self._topics else {})

    def dial(self, nodes: list[int]) -> dict[int, KctlError]:
        return {node: ConnectionRefused(f"broker {node} refused the connection") for node in nodes}


def _poll(client: _Client, seconds: float, **options: Any) -> list[str]:
    """What is told in so much time."""
    told: list[str] = []
    made: Any = client
    fetcher = Fetcher(made, {TP: 0}, read_committed=False, tell=told.append, timeout_s=0.5, **options)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        assert not list(fetcher.poll(0.02))
    fetcher.close()
    return told


@pytest.mark.parametrize(
    ("client", "why"),
    [
        (_Client(), "partition t-0 could not be read for 0.5 s: broker 1 refused the connection"),
        (_Client(-1), "partition t-0 could not be read for 0.5 s: t-0 has no leader"),
        (_Client(topics=False), "topic t was deleted while it was read"),
    ],
)
def test_a_reading_that_ends_does_not_wait_for_ever(client: _Client, why: str) -> None:
    with pytest.raises(OperationFailed, match=why):
        _poll(client, 60, follow=False)


def test_a_follower_waits_and_says_so_once() -> None:
    client = _Client(-1)
    assert _poll(client, 1.5) == ["t-0 has no leader; waiting for one"]
    assert client.looks < 20, "brokers are not flooded with questions"


def test_a_topic_that_was_made_anew_is_another_one() -> None:
    client = _Client(-1)
    ids = iter(["first", "first"])
    client.topic_id = lambda: next(ids, "second")
    with pytest.raises(OperationFailed, match="topic t was deleted and made anew while it was read"):
        _poll(client, 60)


def test_when_no_broker_answers_at_all() -> None:
    with pytest.raises(ConnectionFailed, match="nobody"):
        _poll(_Client(metadata=ConnectionFailed("nobody")), 60)
    with pytest.raises(NotAuthorized):
        _poll(_Client(metadata=NotAuthorized("no")), 60)
