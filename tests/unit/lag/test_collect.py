"""The batched pass over a cluster that misbehaves: coordinators and leaders that move, groups that vanish.

A fake client, because a real broker cannot be made to answer NOT_COORDINATOR or to be of another version on demand;
the pass over real brokers is in tests/integration/lag/test_lag.py.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace as Answer
from typing import Any, cast

import pytest

from kctl.cluster.groups import coordinators, describe
from kctl.errors import (
    AuthenticationFailed,
    ConnectionRefused,
    ConnectionTimedOut,
    KctlError,
    NotAuthorized,
    NotFound,
    NotSupported,
)
from kctl.lag import collect as module
from kctl.lag.collect import collect
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState
from kctl.protocol.client import ClusterClient

NOT_COORDINATOR, LOADING, NOT_LEADER, UNKNOWN_TOPIC = 16, 14, 6, 3
Reply = Callable[[int, Any], Any]


class FakeCluster:
    """Two brokers; topic t with two partitions led by 1 and 2; groups live on broker 1 unless `moved`."""

    def __init__(self, committed: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        self.committed = committed
        self.sent: Counter[str] = Counter()
        self.leaders = {TopicPartition("t", 0): 1, TopicPartition("t", 1): 2}
        self.replies: dict[str, list[Reply]] = {}  # scripted answers, used up one by one; then the normal ones
        self.coordinator = 1
        self.old = False
        self.timeout_s = 30.0
        self.states: dict[str, str] = {}
        self.hidden: set[str] = set()  # topics that may not be described

    def metadata(self, topics: Collection[str] | None = None, *, keep_errors: bool = False) -> ClusterState:
        self.sent["Metadata"] += 1
        partitions = tuple(
            PartitionState(tp.topic, tp.partition, leader, 0, (1, 2), (1, 2)) for tp, leader in self.leaders.items()
        )
        known = {"t": TopicState("t", False, None, partitions)} if topics is None or "t" in topics else {}
        failed: dict[str, KctlError] = {
            name: NotAuthorized(f"topic {name!r}: not authorized to describe it")
            for name in self.hidden.intersection(topics or ())
        }
        for error in () if keep_errors else failed.values():
            raise error
        return ClusterState("id", 1, {n: Broker(n, "h", 9092) for n in (1, 2)}, known, failed)

    def send(self, request: Any, **_: object) -> Any:
        return self._answer(1, request)

    def send_each(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        return {node: self._answer(node, request) for node, request in requests.items()}

    def _answer(self, node: int, request: Any) -> Any:
        name = type(request).__name__.removesuffix("Request")
        self.sent[name] += 1
        scripted = self.replies.get(name)
        answer = scripted.pop(0)(node, request) if scripted else None
        return answer if answer is not None else getattr(self, f"_{name}")(node, request)

    def _ListGroups(self, node: int, _request: Any) -> Any:  # noqa: N802 - named as the API
        rows = [
            Answer(group_id=g, group_state=self.states.get(g, "Empty"), protocol_type="consumer", group_type="classic")
            for g in self.committed
        ]
        return Answer(error_code=0, groups=rows if node == self.coordinator else [])

    def _FindCoordinator(self, _node: int, request: Any) -> Any:  # noqa: N802
        if self.old and request._min_version == 4:
            raise NotSupported("too old")
        if self.old:
            return Answer(error_code=0, error_message=None, node_id=self.coordinator)
        rows = [
            Answer(key=key, error_code=0, error_message=None, node_id=self.coordinator)
            for key in request.coordinator_keys
        ]
        return Answer(coordinators=rows)

    def _DescribeGroups(self, _node: int, request: Any) -> Any:  # noqa: N802
        rows = [
            Answer(
                error_code=0, error_message=None, group_id=g, protocol_type="consumer", protocol_data="", members=[],
                group_state=self.states.get(g, "Empty" if g in self.committed else "Dead"),
            )
            for g in request.groups
        ]  # fmt: skip
        return Answer(groups=rows)

    def _OffsetFetch(self, _node: int, request: Any) -> Any:  # noqa: N802
        if self.old:
            if request._min_version == 8:
                return NotSupported("too old")
            return Answer(error_code=0, topics=_topics(self.committed[request.group_id]))
        rows = [
            Answer(group_id=g.group_id, error_code=0, topics=_topics(self.committed[g.group_id]))
            for g in request.groups
        ]
        return Answer(groups=rows)

    def _ListOffsets(self, node: int, request: Any) -> Any:  # noqa: N802
        return _listed(request, lambda tp, spec: (0, 10 if spec == -1 else 2) if self.leaders[tp] == node else (6, -1))


def _topics(committed: Mapping[TopicPartition, int]) -> list[Any]:
    return [
        Answer(name=tp.topic, partitions=[Answer(partition_index=tp.partition, error_code=0, committed_offset=offset)])
        for tp, offset in committed.items()
    ]


def _listed(request: Any, offset: Callable[[TopicPartition, int], tuple[int, int]]) -> Any:
    topics = []
    for topic in request.topics:
        rows = []
        for p in topic.partitions:
            error, value = offset(TopicPartition(topic.name, p.partition_index), p.timestamp)
            rows.append(Answer(partition_index=p.partition_index, error_code=error, offset=value))
        topics.append(Answer(name=topic.name, partitions=rows))
    return Answer(topics=topics)


def _run(fake: FakeCluster, groups: Collection[str] | None = None, **options: Any) -> Any:
    return collect(cast(ClusterClient, fake), groups, **options)


T0, T1, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(describe, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(module, "LEADER_PAUSES_S", (0.0, 0.0))


def test_one_request_to_each_broker_whatever_the_number_of_groups() -> None:
    counts = []
    for number in (1, 300):
        fake = FakeCluster({f"g{i}": {T0: 1, T1: 10} for i in range(number)})
        report = _run(fake)
        assert len(report.rows) == 2 * number
        assert report.complete
        counts.append(fake.sent)
    assert counts[0] == counts[1]
    assert counts[1] == {"ListGroups": 2, "OffsetFetch": 1, "Metadata": 2, "ListOffsets": 4}


def test_groups_that_are_named_are_looked_up_not_listed() -> None:
    fake = FakeCluster({f"g{i}": {T0: 1} for i in range(50)})
    _run(fake, [f"g{i}" for i in range(40)])
    assert fake.sent == {"FindCoordinator": 1, "DescribeGroups": 1, "OffsetFetch": 1, "Metadata": 1, "ListOffsets": 2}


def test_a_deleted_topic_is_a_row_without_offsets() -> None:
    report = _run(FakeCluster({"g": {T0: 1, GONE: 5}}))
    by_topic = {row.topic: row for row in report.rows}
    assert by_topic["gone"][4:9] == (5, None, None, None, None)
    assert by_topic["t"][4:9] == (1, 2, 10, 8, 1)
    assert report.deleted == [GONE]
    assert report.complete, "a topic that was deleted is no failure"


def test_a_coordinator_that_moves_is_looked_up_again() -> None:
    fake = FakeCluster({"g": {T0: 1}})

    def moved(_node: int, request: Any) -> Any:
        fake.coordinator = 2
        return Answer(
            groups=[Answer(group_id=g.group_id, error_code=NOT_COORDINATOR, topics=[]) for g in request.groups]
        )

    fake.replies["OffsetFetch"] = [moved]
    report = _run(fake)
    assert [row.lag for row in report.rows] == [8]
    assert fake.sent["FindCoordinator"] == 1
    assert fake.sent["OffsetFetch"] == 2


def test_a_coordinator_that_does_not_answer_is_told() -> None:
    fake = FakeCluster({"g": {T0: 1}})
    fake.replies["OffsetFetch"] = [lambda *_: ConnectionRefused("broker 1 refused")] * 3
    report = _run(fake)
    assert report.rows == []
    assert report.failed == {"g": "broker 1 refused"}
    assert not report.complete


def test_a_login_that_fails_is_not_tried_again() -> None:
    fake = FakeCluster({"g": {T0: 1}})
    fake.replies["OffsetFetch"] = [lambda *_: AuthenticationFailed("wrong password")] * 3
    assert _run(fake).failed == {"g": "wrong password"}
    assert fake.sent["OffsetFetch"] == 1


def test_tries_share_the_time_limit() -> None:
    """A coordinator that is paused costs the whole limit each time."""
    fake = FakeCluster({"g": {T0: 1}})
    fake.timeout_s = 0.02

    def silent(*_: Any) -> Any:
        time.sleep(0.03)
        return ConnectionTimedOut("broker 1 did not answer")

    fake.replies["OffsetFetch"] = [silent] * 3
    assert _run(fake).failed == {"g": "broker 1 did not answer"}
    assert fake.sent["OffsetFetch"] == 1


def test_nobody_left_to_ask_for_coordinators_is_the_answer_about_each_group() -> None:
    """After a change the table of what was done is still shown."""
    fake = FakeCluster({"g": {T0: 1}})

    def gone(*_: Any) -> Any:
        raise ConnectionRefused("nobody is there")

    fake.replies["FindCoordinator"] = [gone] * 3
    found = describe.describe_groups(cast(ClusterClient, fake), ["g"])
    assert (found.groups, found.failed_groups["g"].message) == ({}, "nobody is there")
    assert fake.sent["FindCoordinator"] == 1


def _described(group: str, code: int) -> Reply:
    def reply(_node: int, request: Any) -> Any:
        rows = [
            Answer(
                group_id=name, error_code=code if name == group else 0, error_message=None, group_state="Empty",
                protocol_type="consumer", protocol_data="", members=[],
            )
            for name in request.groups
        ]  # fmt: skip
        return Answer(groups=rows)

    return reply


def test_a_coordinator_that_loads_is_told_to_who_may_not_describe_the_offsets_topic() -> None:
    fake = FakeCluster({"a": {T0: 1}, "b": {T0: 1}})
    fake.hidden = {"__consumer_offsets"}
    fake.replies["DescribeGroups"] = [_described("b", LOADING)] * 3
    found = describe.describe_groups(cast(ClusterClient, fake), ["a", "b"])
    assert list(found.groups) == ["a"]
    assert "coordinator of group b is not available" in found.failed_groups["b"].message


def test_without_an_offsets_topic_what_is_refused_stays_refused() -> None:
    fake = FakeCluster({"a": {T0: 1}, "b": {T0: 1}})
    fake.replies["FindCoordinator"] = [
        lambda _node, request: Answer(
            coordinators=[
                Answer(key=name, error_code=code, error_message=None, node_id=-1)
                for name, code in (("a", 30), ("b", 15))
                if name in request.coordinator_keys
            ]
        )
    ] * 3
    failed = describe.describe_groups(cast(ClusterClient, fake), ["a", "b"]).failed_groups
    assert (type(failed["a"]), type(failed["b"])) == (NotAuthorized, NotFound)


def test_a_broker_that_cannot_be_listed_is_told() -> None:
    fake = FakeCluster({"g": {T0: 1}})
    fake.replies["ListGroups"] = [lambda *_: None, lambda *_: ConnectionRefused("broker 2 refused")]
    report = _run(fake)
    assert len(report.rows) == 1
    assert report.failed == {"broker 2": "broker 2 refused"}


def test_a_broker_that_loads_its_groups_is_asked_again() -> None:
    fake = FakeCluster({"g": {T0: 1}})
    fake.replies["ListGroups"] = [lambda *_: Answer(error_code=LOADING, groups=[])]
    assert len(_run(fake).rows) == 1
    assert fake.sent["ListGroups"] == 3


def test_a_leader_that_moves_is_looked_up_again() -> None:
    fake = FakeCluster({"g": {T0: 1}})

    def moved(_node: int, request: Any) -> Any:
        fake.leaders[T0] = 2
        return _listed(request, lambda *_: (NOT_LEADER, -1))

    fake.replies["ListOffsets"] = [moved]
    report = _run(fake)
    assert report.rows[0].lag == 8
    assert report.complete


def test_a_topic_that_may_not_be_described_is_told_beside_the_others() -> None:
    """A member's assignment names topics whatever the user's rights on them are."""
    fake = FakeCluster({"a": {T0: 5, T1: 5, GONE: 3}})
    fake.hidden = {"gone"}
    report = _run(fake)
    assert [(row.topic, row.partition, row.lag) for row in report.rows] == [("gone", 0, None), ("t", 0, 5), ("t", 1, 5)]
    assert report.unread == {GONE: "topic 'gone': not authorized to describe it"}
    assert report.deleted == []
    assert fake.sent["Metadata"] == 2, "for the brokers, for the topics: what is refused is not asked again"


def test_a_partition_without_a_leader_is_null_and_told() -> None:
    fake = FakeCluster({"g": {T0: 1, T1: 1}})
    fake.leaders[T1] = -1
    report = _run(fake)
    assert [row.lag for row in report.rows] == [8, None]
    assert report.unread == {T1: "no leader"}


def test_a_partition_deleted_between_metadata_and_offsets_is_told() -> None:
    fake = FakeCluster({"g": {T0: 1}})
    fake.replies["ListOffsets"] = [lambda _n, r: _listed(r, lambda *_: (UNKNOWN_TOPIC, -1))] * 6
    report = _run(fake)
    assert report.rows[0].lag is None
    assert list(report.unread) == [T0]


def test_unknown_groups_are_refused_together() -> None:
    with pytest.raises(NotFound, match="'x', 'y' do not exist"):
        _run(FakeCluster({"g": {T0: 1}}), ["g", "x", "y"])


def test_a_group_that_describe_calls_dead_but_the_list_has() -> None:
    """KIP-848 groups on 4.x: DescribeGroups does not know their kind."""
    fake = FakeCluster({"g": {T0: 1}})
    fake.replies["DescribeGroups"] = [
        lambda _n, r: Answer(
            groups=[
                Answer(error_code=69, error_message="x", group_id=g, group_state="Dead", protocol_type="",
                       protocol_data="", members=[])
                for g in r.groups
            ]
        )
    ]  # fmt: skip
    report = _run(fake, ["g"])
    assert [(row.group, row.state, row.lag) for row in report.rows] == [("g", "Empty", 8)]


def test_old_brokers_are_asked_group_by_group() -> None:
    fake = FakeCluster({"g": {T0: 1}, "h": {T1: 10}})
    fake.old = True
    assert [(row.group, row.lag) for row in _run(fake, ["g", "h"]).rows] == [("g", 8), ("h", 0)]
    assert fake.sent["FindCoordinator"] == 3
    assert fake.sent["OffsetFetch"] == 3


def test_only_the_topics_and_states_asked_for() -> None:
    fake = FakeCluster({"g": {T0: 1, GONE: 5}, "h": {T0: 1}})
    fake.states["h"] = "Stable"
    assert {row.topic for row in _run(fake, topics=["gone"]).rows} == {"gone"}
    assert {row.group for row in _run(fake, states={"stable"}).rows} == {"h"}


def test_a_commit_beyond_the_end_is_looked_at_twice() -> None:
    """A new leader's high watermark may be behind what was committed for a moment."""
    fake = FakeCluster({"g": {T0: 15, T1: 10}})
    report = _run(fake)
    assert [(row.lag, row.ahead) for row in report.rows] == [(0, 5), (0, 0)]
    healed = FakeCluster({"g": {T0: 9}})
    healed.replies["ListOffsets"] = [lambda _n, request: _listed(request, lambda *_: (0, 4)), lambda *_: None]
    assert [(row.log_end_offset, row.lag, row.ahead) for row in _run(healed).rows] == [(10, 1, 0)]
    assert healed.sent["ListOffsets"] == 4
