"""Fetching while leaders are unavailable: waits, timeouts and warnings. Brokers that fail on demand are
stand-ins; real ones are in tests/integration/records/test_consume_more.py."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kctl.errors import ConnectionFailed, ConnectionRefused, KctlError, NotAuthorized, OperationFailed
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState
from kctl.records.consume import absence
from kctl.records.consume.fetcher import Fetcher

TP = TopicPartition("t", 0)


class _Client:
    """A cluster with or without a known leader, which cannot be read from."""

    def __init__(self, leader: int = 1, *, metadata: KctlError | None = None, topics: bool = True) -> None:
        self._leader, self._error = leader, metadata
        self.topics: Callable[[], bool] = lambda: topics
        self.looks = 0
        self.topic_id: Callable[[], str] = lambda: "id"

    def metadata(self, _topics: Any, *, timeout_s: float) -> ClusterState:
        self.looks += 1
        if self._error:
            raise self._error
        partition = PartitionState("t", 0, self._leader, 0, (1, 2), (1,))
        topic = TopicState("t", False, self.topic_id(), (partition,))
        return ClusterState("c", 1, {1: Broker(1, "h", 9092, None)}, {"t": topic} if self.topics() else {})

    def dial_known(self, brokers: list[Broker], *, timeout_s: float) -> dict[int, KctlError]:
        return {each.id: ConnectionRefused(f"broker {each.id} refused the connection") for each in brokers}


def _poll(client: _Client, seconds: float, **options: Any) -> list[str]:
    """Return the warnings of a period."""
    messages: list[str] = []
    created: Any = client
    fetcher = Fetcher(created, {TP: 0}, read_committed=False, warn=messages.append, timeout_s=0.5, **options)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        assert not list(fetcher.poll(0.02))
    fetcher.close()
    return messages


@pytest.mark.parametrize(
    ("client", "why"),
    [
        (_Client(), "partition t-0 could not be read for 0.5 s: broker 1 refused the connection"),
        (_Client(-1), "partition t-0 could not be read for 0.5 s: t-0 has no leader"),
    ],
)
def test_a_finite_read_does_not_wait_forever(client: _Client, why: str) -> None:
    with pytest.raises(OperationFailed, match=why):
        _poll(client, 60, follow=False)


def test_a_broker_that_does_not_know_the_topic_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that has just started, in a rolling restart: the topic exists and was not deleted."""
    monkeypatch.setattr(absence, "DELETED_AFTER_S", 1.0)
    client = _Client(-1)
    client.topics = lambda: client.looks > 3
    assert _poll(client, 3, follow=True) == ["t-0 has no leader; waiting for one"]
    client.topics = lambda: False
    with pytest.raises(OperationFailed, match="topic t was deleted while it was read"):
        _poll(client, 60)


def test_an_unresponsive_host_does_not_delay_other_leaders() -> None:
    """Connecting takes seconds; in the meantime others are polled, and the host is not dialed twice at once."""
    never = threading.Event()
    client = _Client()
    dialled: list[int] = []

    def dial_known(brokers: list[Broker], *, timeout_s: float) -> dict[int, KctlError]:
        dialled.append(brokers[0].id)
        never.wait(1.5)
        return {1: ConnectionFailed("broker 1 does not answer")}

    client.dial_known = dial_known  # type: ignore[method-assign]
    created: Any = client
    fetcher = Fetcher(created, {TP: 0}, read_committed=False, warn=lambda _: None, timeout_s=30)
    started = time.monotonic()
    rounds = 0
    while time.monotonic() - started < 1:
        assert not list(fetcher.poll(0.05))
        rounds += 1
        assert fetcher.searching, "it must not count as idle"
    assert rounds > 5
    assert dialled == [1]
    fetcher.close()
    assert time.monotonic() - started < 1.4, "an end does not wait for it"
    never.set()


def test_a_reader_that_follows_waits_and_warns_once() -> None:
    client = _Client(-1)
    assert _poll(client, 1.5) == ["t-0 has no leader; waiting for one"]
    assert client.looks < 20, "brokers are not flooded with questions"


def test_a_recreated_topic_is_a_different_topic() -> None:
    client = _Client(-1)
    ids = iter(["first", "first"])
    client.topic_id = lambda: next(ids, "second")
    with pytest.raises(OperationFailed, match="topic t was deleted and recreated while it was read"):
        _poll(client, 60)


def test_no_broker_responds() -> None:
    with pytest.raises(ConnectionFailed, match="nobody"):
        _poll(_Client(metadata=ConnectionFailed("nobody")), 60)
    with pytest.raises(NotAuthorized):
        _poll(_Client(metadata=NotAuthorized("no")), 60)
