"""The batched pass over a cluster that misbehaves: coordinators and leaders that move, groups that vanish.

A fake client, because a real broker cannot be made to answer NOT_COORDINATOR or to be of another version on demand;
the pass over real brokers is in tests/integration/lag/test_lag.py.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from types import SimpleNamespace as Answer
from typing import Any

import pytest

from fake_cluster import FakeCluster, listed_offsets, topic_of
from kctl.cluster.groups import coordinators, describe
from kctl.errors import (
    AuthenticationFailed,
    ConnectionRefused,
    ConnectionTimedOut,
    NotAuthorized,
    NotFound,
)
from kctl.lag import collect as module
from kctl.lag.collect import collect
from kctl.model import TopicPartition

NOT_COORDINATOR, LOADING, NOT_LEADER, UNKNOWN_TOPIC = 16, 14, 6, 3
T0, T1, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)


def cluster(offsets: Mapping[str, Mapping[TopicPartition, int]]) -> FakeCluster:
    """Two brokers; topic t with two partitions led by 1 and 2, each from offset 2 to 10; groups live on broker 1."""
    fake = FakeCluster([topic_of("t", 1, 2)], offsets=offsets)
    fake.logs = {T0: (2, 10), T1: (2, 10)}
    return fake


def _run(fake: FakeCluster, groups: Collection[str] | None = None, **options: Any) -> Any:
    return collect(fake.client, groups, **options)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(describe, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(module, "LEADER_PAUSES_S", (0.0, 0.0))


def test_one_request_to_each_broker_whatever_the_number_of_groups() -> None:
    counts = []
    for number in (1, 300):
        fake = cluster({f"g{i}": {T0: 1, T1: 10} for i in range(number)})
        report = _run(fake)
        assert len(report.rows) == 2 * number
        assert report.complete
        counts.append(fake.sent)
    assert counts[0] == counts[1]
    assert counts[1] == {"ListGroups": 2, "OffsetFetch": 1, "Metadata": 2, "ListOffsets": 4}


def test_groups_that_are_named_are_looked_up_notlisted_offsets() -> None:
    fake = cluster({f"g{i}": {T0: 1} for i in range(50)})
    _run(fake, [f"g{i}" for i in range(40)])
    assert fake.sent == {"FindCoordinator": 1, "DescribeGroups": 1, "OffsetFetch": 1, "Metadata": 1, "ListOffsets": 2}


def test_a_deleted_topic_is_a_row_without_offsets() -> None:
    report = _run(cluster({"g": {T0: 1, GONE: 5}}))
    by_topic = {row.topic: row for row in report.rows}
    assert by_topic["gone"][4:9] == (5, None, None, None, None)
    assert by_topic["t"][4:9] == (1, 2, 10, 8, 1)
    assert report.deleted == [GONE]
    assert report.complete, "a topic that was deleted is no failure"


def test_a_coordinator_that_moves_is_looked_up_again() -> None:
    fake = cluster({"g": {T0: 1}})

    def moved(_node: int, request: Any) -> Any:
        fake.coordinator = 2
        return Answer(
            groups=[Answer(group_id=g.group_id, error_code=NOT_COORDINATOR, topics=[]) for g in request.groups]
        )

    fake.script("OffsetFetch", moved)
    report = _run(fake)
    assert [row.lag for row in report.rows] == [8]
    assert fake.sent["FindCoordinator"] == 1
    assert fake.sent["OffsetFetch"] == 2


def test_a_coordinator_that_does_not_answer_is_told() -> None:
    fake = cluster({"g": {T0: 1}})
    fake.script("OffsetFetch", *[lambda *_: ConnectionRefused("broker 1 refused")] * 3)
    report = _run(fake)
    assert report.rows == []
    assert report.failed == {"g": "broker 1 refused"}
    assert not report.complete


def test_a_login_that_fails_is_not_tried_again() -> None:
    fake = cluster({"g": {T0: 1}})
    fake.script("OffsetFetch", *[lambda *_: AuthenticationFailed("wrong password")] * 3)
    assert _run(fake).failed == {"g": "wrong password"}
    assert fake.sent["OffsetFetch"] == 1


def test_tries_share_the_time_limit() -> None:
    """A coordinator that is paused costs the whole limit each time."""
    fake = cluster({"g": {T0: 1}})
    fake.timeout_s = 0.02

    def silent(*_: Any) -> Any:
        time.sleep(0.03)
        return ConnectionTimedOut("broker 1 did not answer")

    fake.script("OffsetFetch", *[silent] * 3)
    assert _run(fake).failed == {"g": "broker 1 did not answer"}
    assert fake.sent["OffsetFetch"] == 1


def test_nobody_left_to_ask_for_coordinators_is_the_answer_about_each_group() -> None:
    """After a change the table of what was done is still shown."""
    fake = cluster({"g": {T0: 1}})

    def gone(*_: Any) -> Any:
        raise ConnectionRefused("nobody is there")

    fake.script("FindCoordinator", *[gone] * 3)
    found = describe.describe_groups(fake.client, ["g"])
    assert (found.groups, found.failed_groups["g"].message) == ({}, "nobody is there")
    assert fake.sent["FindCoordinator"] == 1


def test_a_coordinator_that_loads_is_told_to_who_may_not_describe_the_offsets_topic() -> None:
    fake = cluster({"a": {T0: 1}, "b": {T0: 1}})
    fake.hidden = {"__consumer_offsets"}
    fake.codes["DescribeGroups"] = {"b": LOADING}
    found = describe.describe_groups(fake.client, ["a", "b"])
    assert list(found.groups) == ["a"]
    assert "coordinator of group b is not available" in found.failed_groups["b"].message


def test_without_an_offsets_topic_what_is_refused_stays_refused() -> None:
    fake = cluster({"a": {T0: 1}, "b": {T0: 1}})
    fake.always(
        "FindCoordinator",
        lambda _node, request: Answer(
            coordinators=[
                Answer(key=name, error_code=code, error_message=None, node_id=-1)
                for name, code in (("a", 30), ("b", 15))
                if name in request.coordinator_keys
            ]
        ),
    )
    failed = describe.describe_groups(fake.client, ["a", "b"]).failed_groups
    assert (type(failed["a"]), type(failed["b"])) == (NotAuthorized, NotFound)


def test_a_broker_that_cannot_be_listed_is_told() -> None:
    fake = cluster({"g": {T0: 1}})
    fake.script("ListGroups", lambda *_: None, lambda *_: ConnectionRefused("broker 2 refused"))
    report = _run(fake)
    assert len(report.rows) == 1
    assert report.failed == {"broker 2": "broker 2 refused"}


def test_a_broker_that_loads_its_groups_is_asked_again() -> None:
    fake = cluster({"g": {T0: 1}})
    fake.script("ListGroups", lambda *_: Answer(error_code=LOADING, groups=[]))
    assert len(_run(fake).rows) == 1
    assert fake.sent["ListGroups"] == 3


def test_a_leader_that_moves_is_looked_up_again() -> None:
    fake = cluster({"g": {T0: 1}})

    def moved(_node: int, request: Any) -> Any:
        fake.lead(T0, 2)
        return listed_offsets(request, lambda *_: (NOT_LEADER, -1))

    fake.script("ListOffsets", moved)
    report = _run(fake)
    assert report.rows[0].lag == 8
    assert report.complete


def test_a_topic_that_may_not_be_described_is_told_beside_the_others() -> None:
    """A member's assignment names topics whatever the user's rights on them are."""
    fake = cluster({"a": {T0: 5, T1: 5, GONE: 3}})
    fake.hidden = {"gone"}
    report = _run(fake)
    assert [(row.topic, row.partition, row.lag) for row in report.rows] == [("gone", 0, None), ("t", 0, 5), ("t", 1, 5)]
    assert report.unread == {GONE: "topic 'gone': not authorized to describe it"}
    assert report.deleted == []
    assert fake.sent["Metadata"] == 2, "for the brokers, for the topics: what is refused is not asked again"


def test_a_partition_without_a_leader_is_null_and_told() -> None:
    fake = cluster({"g": {T0: 1, T1: 1}})
    fake.lead(T1, -1)
    report = _run(fake)
    assert [row.lag for row in report.rows] == [8, None]
    assert report.unread == {T1: "no leader"}


def test_a_partition_deleted_between_metadata_and_offsets_is_told() -> None:
    fake = cluster({"g": {T0: 1}})
    fake.script("ListOffsets", *[lambda _n, r: listed_offsets(r, lambda *_: (UNKNOWN_TOPIC, -1))] * 6)
    report = _run(fake)
    assert report.rows[0].lag is None
    assert list(report.unread) == [T0]


def test_unknown_groups_are_refused_together() -> None:
    with pytest.raises(NotFound, match="'x', 'y' do not exist"):
        _run(cluster({"g": {T0: 1}}), ["g", "x", "y"])


def test_a_group_that_describe_calls_dead_but_the_list_has() -> None:
    """KIP-848 groups on 4.x: DescribeGroups does not know their kind."""
    fake = cluster({"g": {T0: 1}})
    fake.script(
        "DescribeGroups",
        lambda _n, r: Answer(
            groups=[
                Answer(error_code=69, error_message="x", group_id=g, group_state="Dead", protocol_type="",
                       protocol_data="", members=[])
                for g in r.groups
            ]
        ),
    )  # fmt: skip
    report = _run(fake, ["g"])
    assert [(row.group, row.state, row.lag) for row in report.rows] == [("g", "Empty", 8)]


def test_old_brokers_are_asked_group_by_group() -> None:
    fake = cluster({"g": {T0: 1}, "h": {T1: 10}})
    fake.old = True
    assert [(row.group, row.lag) for row in _run(fake, ["g", "h"]).rows] == [("g", 8), ("h", 0)]
    assert fake.sent["FindCoordinator"] == 3
    assert fake.sent["OffsetFetch"] == 3


def test_only_the_topics_and_states_asked_for() -> None:
    fake = cluster({"g": {T0: 1, GONE: 5}, "h": {T0: 1}})
    fake.states["h"] = "Stable"
    assert {row.topic for row in _run(fake, topics=["gone"]).rows} == {"gone"}
    assert {row.group for row in _run(fake, states={"stable"}).rows} == {"h"}


def test_a_commit_beyond_the_end_is_looked_at_twice() -> None:
    """A new leader's high watermark may be behind what was committed for a moment."""
    fake = cluster({"g": {T0: 15, T1: 10}})
    report = _run(fake)
    assert [(row.lag, row.ahead) for row in report.rows] == [(0, 5), (0, 0)]
    healed = cluster({"g": {T0: 9}})
    healed.script("ListOffsets", lambda _n, request: listed_offsets(request, lambda *_: (0, 4)), lambda *_: None)
    assert [(row.log_end_offset, row.lag, row.ahead) for row in _run(healed).rows] == [(10, 1, 0)]
    assert healed.sent["ListOffsets"] == 4
