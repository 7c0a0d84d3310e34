"""A pass over a cluster that is not complete: what is not read is said.

A fake client, because a broker cannot be made to vanish or to hide a topic on demand within a pass; the pass over real
brokers, one of them down, is in tests/integration/spark/test_snapshot.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace as Answer
from typing import Any, cast

import pytest

from kctl.cluster import log_offsets
from kctl.errors import ConnectionRefused, ConnectionTimedOut, NotAuthorized
from kctl.history.snapshots import collect as collecting
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import CONFIGS_EVERY_MS, AnotherCluster, Collector, Pass
from kctl.history.snapshots.layout import HOUR_MS
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState
from kctl.protocol.client import ClusterClient
from kctl.protocol.codes import ErrorCode
from kctl.protocol.error_meanings import error_for
from kctl.protocol.silence import Silence
from snapshot_stores import HOUR


class FakeCluster:
    """Brokers 1 and 2 (3 is gone); topics t (two partitions) and, hidden from this user, h; group g on broker 1."""

    def __init__(self) -> None:
        self.timeout_s = 30.0
        self.asked: list[str] = []
        self.cluster_id = "c"
        self.starts = {("t", 0): 5, ("t", 1): 0}
        self.retention = "1000"
        self.down: set[int] = set()
        self.hidden = {"h"}
        self.policy = "delete"
        self.leaders = {0: 1, 1: 2}
        self.moving: dict[int, int] = {}  # new leaders, from the first request for timestamps on

    def asking_silent_brokers_once(self) -> AbstractContextManager[None]:
        return nullcontext()

    def metadata(self, topics: Collection[str] | None = None, *, keep_errors: bool = False) -> ClusterState:
        self.asked.append("Metadata")
        if topics is not None and self.hidden & set(topics):
            raise NotAuthorized("topic h: not authorized")
        partitions = tuple(PartitionState("t", n, self.leaders[n], 7, (n + 1, 3), (n + 1,)) for n in (0, 1))
        known = {"t": TopicState("t", False, "id", partitions)} if topics is None or "t" in topics else {}
        return ClusterState(self.cluster_id, 1, {n: Broker(n, "h", 9092) for n in (1, 2)}, known)

    def send(self, request: Any, **_: object) -> Any:
        return self._answer(1, request)

    def send_each(self, requests: Mapping[int, Any], **_: object) -> dict[int, Any]:
        return {
            node: ConnectionRefused(f"broker {node} is down") if node in self.down else self._answer(node, request)
            for node, request in requests.items()
        }

    def _answer(self, node: int, request: Any) -> Any:
        name = type(request).__name__.removesuffix("Request")
        self.asked.append(name)
        return getattr(self, f"_{name}")(node, request)

    def _ListGroups(self, node: int, _request: Any) -> Any:  # noqa: N802 - named as the API
        row = Answer(group_id="g", group_state="Empty", protocol_type="consumer", group_type="classic")
        return Answer(error_code=0, groups=[row] if node == 1 else [])

    def _OffsetFetch(self, _node: int, _request: Any) -> Any:  # noqa: N802
        topics = [
            Answer(name=name, partitions=[Answer(partition_index=n, committed_offset=8, error_code=0)])
            for name, n in (("t", 0), ("h", 0), ("gone", 0), ("t", 9))
        ]
        return Answer(groups=[Answer(group_id="g", error_code=0, topics=topics)])

    def _ListOffsets(self, node: int, request: Any) -> Any:  # noqa: N802
        if any(p.timestamp == 0 for topic in request.topics for p in topic.partitions):
            self.leaders |= self.moving
        topics = []
        for topic in request.topics:
            rows = []
            for p in topic.partitions:
                start = self.starts[topic.name, p.partition_index]
                kind = ("first" if p.timestamp == 0 else p.timestamp, request.isolation_level)
                self.asked.append(f"{'stable' if kind == (-1, 1) else kind[0]}:{p.partition_index}")
                offset = {("first", 0): start, (-1, 1): 19, (-1, 0): 20, (-2, 0): start}[kind]
                rows.append(
                    Answer(
                        partition_index=p.partition_index,
                        error_code=0 if self.leaders[p.partition_index] == node else ErrorCode.NOT_LEADER_OR_FOLLOWER,
                        offset=offset,
                        timestamp=100 + start,
                    )
                )
            topics.append(Answer(name=topic.name, partitions=rows))
        return Answer(topics=topics)

    def _DescribeLogDirs(self, node: int, _request: Any) -> Any:  # noqa: N802
        topic = Answer(
            name="t",
            partitions=[Answer(partition_index=node - 1, partition_size=64, offset_lag=0, is_future_key=False)],
        )
        row = Answer(error_code=0, log_dir="/d", total_bytes=100, usable_bytes=40, is_cordoned=False, topics=[topic])
        return Answer(error_code=0, results=[row])

    def _DescribeConfigs(self, _node: int, request: Any) -> Any:  # noqa: N802
        values = {"cleanup.policy": self.policy, "retention.ms": self.retention, "min.cleanable.dirty.ratio": "0.5"}
        configs = [Answer(name=name, value=values.get(name)) for name in request.resources[0].configuration_keys]
        rows = [Answer(resource_name=r.resource_name, error_code=0, configs=configs) for r in request.resources]
        return Answer(results=rows)


@pytest.fixture
def fake() -> FakeCluster:
    return FakeCluster()


def look(collector: Collector, fake: FakeCluster, at_ms: int = HOUR.start_ms) -> Pass:
    fake.asked.clear()
    return collector.take_pass(cast("ClusterClient", fake), at_ms)


def test_a_pass(fake: FakeCluster) -> None:
    found = look(Collector("c"), fake)
    assert sorted(found.rows[schema.COMMITS], key=repr) == [
        ("g", "gone", 0, 8, None, None, None, None, True),
        ("g", "h", 0, 8, None, None, None, None, False),
        ("g", "t", 0, 8, 5, 20, 7, "id", False),
        ("g", "t", 9, 8, None, None, None, "id", True),
    ]
    assert found.rows[schema.LOGS] == [("t", 0, "id", 1, 7, 5, 20, 19, 105), ("t", 1, "id", 2, 7, 0, 20, 19, 100)]
    assert found.rows[schema.GROUPS] == [("g", "Empty", "classic", "consumer", None, 1)]
    assert found.rows[schema.LOG_DIRS] == [(1, "/d", 100, 40, None), (2, "/d", 100, 40, None)]
    assert found.rows[schema.REPLICAS] == [(1, "/d", "t", 0, 64, 0, False), (2, "/d", "t", 1, 64, 0, False)]
    assert found.rows[schema.CONFIGS] == [("t", "delete", 1000, None, None, None, None, None, None, 0.5)]
    assert found.failures == ["broker 3 is down: 2 replicas of it were not read", "topic h: not authorized"]


def test_a_leader_that_moves_during_the_pass_is_looked_up_again(
    fake: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_offsets, "LEADER_PAUSES_S", (0.0, 0.0))
    still = look(Collector("c"), fake)
    fake.moving = {1: 1}
    moved = look(Collector("c"), fake)
    assert moved.failures == still.failures
    assert moved.rows[schema.LOGS] == still.rows[schema.LOGS]


def test_what_is_written_while_it_asks_is_no_open_transaction(fake: FakeCluster) -> None:
    """The last stable offset is asked for after the log end: what is written in between lies before it."""
    look(Collector("c"), fake)
    of_ends = [text for text in fake.asked if text in {"-1:0", "stable:0"}]
    assert of_ends == ["-1:0", "stable:0"]


def test_a_broker_that_does_not_answer_is_said_for_each_thing_it_knows(fake: FakeCluster, no_pauses: None) -> None:
    fake.down = {2}
    found = look(Collector("c"), fake)
    assert not found.complete
    for text in ("groups of broker 2", "partition t-1: broker 2 is down", "log dirs of broker 2"):
        assert any(line.startswith(text) for line in found.failures), (text, found.failures)
    assert ("t", 1, "id", 2, 7, None, None, None, None) in found.rows[schema.LOGS]
    assert [row[0] for row in found.rows[schema.LOG_DIRS]] == [1]


def test_leaders_that_do_not_know_their_offsets_for_long(fake: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new leader soon does; where it does not, somebody has to look at its replicas."""
    tp = TopicPartition("t", 1)
    unread = {tp: error_for(78, None, subject=f"partition {tp}")}
    monkeypatch.setattr(collecting, "read_log_offsets", lambda *_, **__: ({}, set(), unread))
    collector = Collector("c")
    told = [look(collector, fake, HOUR.start_ms + at).failures[-2:] for at in (0, 30_000, 60_000)]
    text = "partition t-1: the new leader's offsets are not available yet (OFFSET_NOT_AVAILABLE)"
    assert [any(line == text for line in lines) for lines in told] == [True, True, False]
    assert any(line.startswith(text) and "min.insync.replicas" in line for line in told[2])
    unread.clear()
    look(collector, fake, HOUR.start_ms + 90_000)
    unread[tp] = error_for(78, None, subject=f"partition {tp}")
    assert text in look(collector, fake, HOUR.start_ms + 120_000).failures


def test_many_failures_are_cut(fake: FakeCluster) -> None:
    found = Pass()
    for number in range(1000):
        found.failed(f"{number} " + "x" * 1000)
    assert len(found.failures) == 51
    assert max(map(len, found.failures)) == 300


def test_another_cluster(fake: FakeCluster) -> None:
    with pytest.raises(AnotherCluster):
        look(Collector("other"), fake)


def test_what_need_not_be_asked_again_is_not(fake: FakeCluster) -> None:
    collector = Collector("c")
    look(collector, fake)
    again = look(collector, fake, HOUR.start_ms + 1)
    assert "DescribeConfigs" not in fake.asked
    assert not [each for each in fake.asked if each.startswith("first")]
    assert [row[-1] for row in again.rows[schema.LOGS]] == [105, 100]
    fake.starts["t", 1] = 6  # retention has moved the start
    moved = look(collector, fake, HOUR.start_ms + 2)
    assert [each for each in fake.asked if each.startswith("first")] == ["first:1"]
    assert [row[-1] for row in moved.rows[schema.LOGS]] == [105, 106]


def test_a_compacted_topics_first_record_is_asked_each_time(fake: FakeCluster) -> None:
    """The cleaner takes records away and leaves the log's start where it is."""
    fake.policy = "compact"
    collector = Collector("c")
    look(collector, fake)
    look(collector, fake, HOUR.start_ms + 1)
    assert [each for each in fake.asked if each.startswith("first")] == ["first:0", "first:1"]


def test_configs_are_stored_when_they_change_and_each_hour(fake: FakeCluster) -> None:
    collector = Collector("c")
    look(collector, fake)
    fake.retention = "2000"
    soon = look(collector, fake, HOUR.start_ms + CONFIGS_EVERY_MS - 1)
    assert schema.CONFIGS not in soon.rows
    changed = look(collector, fake, HOUR.start_ms + CONFIGS_EVERY_MS)
    assert [row[2] for row in changed.rows[schema.CONFIGS]] == [2000]
    same = look(collector, fake, HOUR.start_ms + 2 * CONFIGS_EVERY_MS)
    assert not same.rows[schema.CONFIGS]
    hour = look(collector, fake, HOUR.start_ms + HOUR_MS)
    assert [row[2] for row in hour.rows[schema.CONFIGS]] == [2000]


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    from kctl.cluster.groups import coordinators, describe
    from kctl.lag import collect

    for module in (coordinators, describe, collect):
        monkeypatch.setattr(module.time, "sleep", lambda seconds: None)


class _Sluggish:
    """Stands for kctl.protocol.brokers.Brokers: broker 2 lets each request time out."""

    def __init__(self) -> None:
        self.asked: list[list[int | None]] = []

    def ask(self, requests: Mapping[int | None, Any], *_: object, **_options: object) -> dict[int | None, Any]:
        self.asked.append(list(requests))
        return {node: ConnectionTimedOut(f"broker {node}: no answer") if node == 2 else "yes" for node in requests}


def test_a_silent_broker_is_waited_for_once() -> None:
    client = ClusterClient.__new__(ClusterClient)
    brokers = _Sluggish()
    client.timeout_s, client._brokers, client._silence = 1.0, cast("Any", brokers), Silence()
    client._outer_deadline = None
    with client.asking_silent_brokers_once():
        for _ in range(3):
            answers = client.send_each({1: "?", 2: "?"})
            assert answers[1] == "yes"
            assert isinstance(answers[2], ConnectionTimedOut)
        with pytest.raises(ConnectionTimedOut, match="broker 2"):
            client.send("?", node_id=2)
        assert client.send("?") == "yes"
    assert brokers.asked == [[1, 2], [1], [1], [None]]
    client.send_each({2: "?"})
    assert brokers.asked[-1] == [2]
