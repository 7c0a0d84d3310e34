"""What a planner is given: clusters from files and from Metadata, and goals that do not fit them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kctl.errors import InvalidFile, KctlError, NotFound, Refused, UsageError
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState
from kctl.reassign.planner.cluster import NONE, from_export, from_state
from kctl.reassign.planner.goals import BalanceGoal, Goals, resolve
from reassign_clusters import cluster_of

EVEN = frozenset({BalanceGoal.REPLICAS})


def export() -> dict[str, Any]:
    return {
        "cluster_id": "c",
        "brokers": [
            {"id": 20, "host": "h", "port": 1, "rack": "b", "log_dirs": [{"path": "/a", "usable_bytes": 70}, {}]},
            {"id": 10, "host": "h", "port": 1, "rack": "a"},
            {"id": 30},
        ],
        "topics": [
            {"name": "z", "partitions": [{"partition": 0, "leader": 10, "replicas": [10, 30], "size_bytes": 5}]},
            {
                "name": "a",
                "partitions": [
                    {"partition": 1, "leader": None, "replicas": [20, 10], "adding": [10], "removing": []},
                    {"partition": 0, "leader": 20, "replicas": [20, 40]},
                ],
            },
        ],
    }


def test_an_export_becomes_columns() -> None:
    cluster = from_export(export())
    assert [(b.id, b.rack, b.alive, b.usable_bytes) for b in cluster.brokers] == [
        (10, "a", True, None),
        (20, "b", True, (70,)),
        (30, None, False, None),
        (40, None, False, None),
    ]
    assert [str(cluster.tp(p)) for p in range(3)] == ["a-0", "a-1", "z-0"]
    assert [cluster.ids(row) for row in cluster.replicas] == [[20, 40], [20, 10], [10, 30]]
    assert list(cluster.leader) == [1, NONE, 0]
    assert list(cluster.size_bytes) == [-1, -1, 5]
    assert cluster.moving == {1}
    only = cluster.select(lambda name: name == "a")
    assert (list(only.topics), len(only), set(only.moving)) == (["a"], 2, {1})


def test_brokers_of_a_hand_written_file_need_no_host() -> None:
    cluster = from_export({"brokers": [{"id": 1}, {"id": 2, "alive": False}], "topics": []})
    assert [broker.alive for broker in cluster.brokers] == [True, False]


def test_a_metadata_answer_gives_the_same() -> None:
    partition = PartitionState("t", 0, 2, 5, (2, 3), (2,))
    state = ClusterState(
        "c", 2, {2: Broker(2, "h", 1, "r"), 1: Broker(1, "h", 1)}, {"t": TopicState("t", False, None, (partition,))}
    )
    tp = TopicPartition("t", 0)
    cluster = from_state(state, size_bytes={tp: 9}, usable_bytes={2: (4, 5)}, moving=[tp])
    assert [(b.id, b.rack, b.alive, b.usable_bytes) for b in cluster.brokers] == [
        (1, None, True, None),
        (2, "r", True, (4, 5)),
        (3, None, False, None),
    ]
    assert ([*map(list, cluster.replicas)], list(cluster.size_bytes), set(cluster.moving)) == ([[1, 2]], [9], {0})


def put(path: tuple[Any, ...], value: object) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        owner: Any = document
        for key in path[:-1]:
            owner = owner[key]
        owner[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("brokers",), None, "no list of brokers"),
        (("topics",), {}, "no list of topics"),
        (("topics", 0), "t", "no list of topics"),
        (("brokers", 0, "id"), "1", "id of a broker is '1'"),
        (("brokers", 0, "id"), True, "id of a broker is True"),
        (("brokers", 0, "id"), 10, "two brokers have the same id"),
        (("brokers", 0, "rack"), 3, "rack of broker 20 is 3"),
        (("topics", 0, "name"), "", "a topic's name is ''"),
        (("topics", 0, "name"), "a", "a topic is listed twice"),
        (("topics", 0, "partitions"), 1, "topic z has no list of partitions"),
        (("topics", 1, "partitions", 0, "partition"), 0, "a partition of topic a is listed twice"),
        (("topics", 0, "partitions", 0, "partition"), -1, "partition of topic z is -1"),
        (("topics", 0, "partitions", 0, "replicas"), [], "replicas of partition 0 of topic z are"),
        (("topics", 0, "partitions", 0, "replicas"), [1, "2"], "replicas of partition 0 of topic z are"),
        (("topics", 0, "partitions", 0, "replicas"), [1, 1], "two replicas on one broker"),
        (("topics", 0, "partitions", 0, "size_bytes"), -3, "size_bytes of z-0 is -3"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(path: tuple[Any, ...], value: object, message: str) -> None:
    document = export()
    put(path, value)(document)
    with pytest.raises(InvalidFile, match=message):
        from_export(document)


def test_a_file_that_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidFile, match="not a JSON object"):
        from_export([])


@pytest.mark.parametrize(
    ("goals", "error", "message"),
    [
        (Goals(), UsageError, "no goal"),
        (Goals(remove_brokers=frozenset({9})), NotFound, "broker 9 is not in the cluster"),
        (Goals(add_brokers=frozenset({8, 9})), NotFound, "brokers 8, 9 are not in the cluster"),
        (Goals(add_brokers=frozenset({3})), Refused, "broker 3 is down"),
        (Goals(remove_brokers=frozenset({1}), add_brokers=frozenset({1})), UsageError, "both removed"),
        (Goals(exclude_brokers=frozenset({1}), brokers=frozenset({1})), UsageError, "both excluded"),
        (Goals(replication_factor=0), UsageError, "less than 1"),
        (Goals(replication_factor=4), Refused, "t-0 needs 4 brokers, but only 3 can receive"),
        (Goals(remove_brokers=frozenset({0, 1})), Refused, "needs 2 brokers, but only 1 can receive"),
        (Goals(remove_brokers=frozenset({0, 1, 2})), Refused, "no broker can receive a replica"),
        (Goals(balance=EVEN, tolerance=1.5), UsageError, "tolerance"),
        (Goals(balance=EVEN, max_moves=-1), UsageError, "--max-moves -1"),
        (Goals(leaders_only=True, fix_racks=True), UsageError, "moves no data"),
        (Goals(fix_racks=True), Refused, "broker 2 is without a rack"),
    ],
)
def test_goals_that_do_not_fit_are_refused(goals: Goals, error: type[KctlError], message: str) -> None:
    cluster = cluster_of(["a", "b", None, "c"], [[0, 1], [1, 2]], dead=[3])
    with pytest.raises(error, match=message):
        resolve(goals, cluster)


def test_who_receives() -> None:
    cluster = cluster_of(["a"] * 6, [[0, 1], [1, 2]], dead=[5])
    cases = [
        (Goals(balance=EVEN), (0, 1, 2, 3, 4), set()),
        (Goals(remove_brokers=frozenset({1})), (0, 2, 3, 4), {1}),
        (Goals(add_brokers=frozenset({3})), (0, 1, 2, 3), set()),
        (Goals(brokers=frozenset({2, 3, 4})), (2, 3, 4), {0, 1, 5}),
        (Goals(balance=EVEN, exclude_brokers=frozenset({0})), (1, 2, 3, 4), set()),
    ]
    for goals, hosts, leaving in cases:
        roles = resolve(goals, cluster)
        assert (roles.hosts, set(roles.leaving)) == (hosts, leaving)
