"""The document that planners read: its keys, what is absent when unknown, and its size."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace as Answer
from typing import Any

import pytest

from fake_cluster import FakeCluster
from kctl.cluster.export import assemble, export_cluster
from kctl.cluster.log_dirs import LogDir, LogDirReplica
from kctl.cluster.reassignments import Moving
from kctl.cluster.topic_configs import ConfigEntry, ConfigSource
from kctl.errors import ConnectionRefused, KctlError, NotAuthorized
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState
from kctl.protocol.quorum import Quorum

STATE = ClusterState(
    "c1", 2,
    {1: Broker(1, "h1", 9092, "r1"), 2: Broker(2, "h2", 9092)},
    {"t": TopicState("t", False, None, (PartitionState("t", 0, 1, 5, (1, 2, 3), (1, 2), (3,)),
                                        PartitionState("t", 1, -1, 5, (3,), (3,), (3,))))},
)  # fmt: skip
DIRS: dict[int, list[LogDir] | KctlError] = {
    1: [LogDir("/d1", 100, 40, [LogDirReplica("t", 0, 7, 0, False)]), LogDir("/d2", None, None, [], "offline")],
    2: ConnectionRefused("broker 2 refused"),
}
CONFIGS: dict[str, list[ConfigEntry] | KctlError] = {
    "t": [
        ConfigEntry("min.insync.replicas", "2", ConfigSource.STATIC_BROKER),
        ConfigEntry("retention.ms", "1000", ConfigSource.TOPIC),
    ]
}


def test_the_document() -> None:
    moving = {TopicPartition("t", 0): Moving((4,), (1,))}
    assert assemble(STATE, DIRS, CONFIGS, moving) == {
        "cluster_id": "c1",
        "controller": 2,
        "brokers": [
            {
                "id": 1, "host": "h1", "port": 9092, "rack": "r1",
                "log_dirs": [
                    {
                        "path": "/d1", "total_bytes": 100, "usable_bytes": 40,
                        "replicas": [
                            {"topic": "t", "partition": 0, "size_bytes": 7, "offset_lag": 0, "future": False}
                        ],
                    },
                    {"path": "/d2"},
                ],
            },
            {"id": 2, "host": "h2", "port": 9092, "rack": None},
            {"id": 3},
        ],
        "topics": [
            {
                "name": "t",
                "configs": {"retention.ms": "1000"},
                "partitions": [
                    {
                        "partition": 0, "leader": 1, "replicas": [1, 2, 3], "isr": [1, 2],
                        "adding": [4], "removing": [1], "size_bytes": 7,
                    },
                    {"partition": 1, "leader": None, "replicas": [3], "isr": [3], "adding": [], "removing": []},
                ],
            }
        ],
    }  # fmt: skip


def test_what_is_not_known_is_absent() -> None:
    document = assemble(STATE, {}, {"t": NotAuthorized("no")}, None)
    assert all("log_dirs" not in broker for broker in document["brokers"])
    (topic,) = document["topics"]
    assert "configs" not in topic
    assert not {"adding", "removing", "size_bytes"} & topic["partitions"][0].keys()


def test_a_size_is_the_leaders_and_copies_under_way_do_not_count() -> None:
    dirs: dict[int, list[LogDir] | KctlError] = {
        1: [LogDir("/a", 1, 1, [LogDirReplica("t", 0, 7, 0, False)])],
        2: [LogDir("/a", 1, 1, [LogDirReplica("t", 0, 9, 0, False), LogDirReplica("t", 1, 5, 3, True)])],
    }
    first, second = assemble(STATE, dirs, {}, None)["topics"][0]["partitions"]
    assert first["size_bytes"] == 7
    assert "size_bytes" not in second


def _big_cluster(topics: int = 2000) -> FakeCluster:
    """50 partitions of each topic on 20 brokers: no test machine holds 100,000."""

    def partition(topic: str, number: int) -> PartitionState:
        replicas = tuple((number + i) % 20 for i in range(3))
        return PartitionState(topic, number, replicas[0], 0, replicas, replicas)

    def log_dirs(node: int, _request: object) -> Any:
        rows = [
            Answer(name=t.name, partitions=[
                Answer(partition_index=p.partition, partition_size=1, offset_lag=0, is_future_key=False)
                for p in t.partitions if node in p.replicas
            ])
            for t in fake.topics.values()
        ]  # fmt: skip
        row = Answer(error_code=0, log_dir="/d", topics=rows, total_bytes=9, usable_bytes=5, is_cordoned=False)
        return Answer(error_code=0, results=[row])

    def configs(_node: int, request: Any) -> Any:
        return Answer(
            results=[Answer(error_code=0, resource_name=r.resource_name, configs=[]) for r in request.resources]
        )

    names = [f"t{number}" for number in range(topics)]
    fake = FakeCluster(
        (TopicState(name, False, None, tuple(partition(name, number) for number in range(50))) for name in names),
        brokers={node: Broker(node, f"h{node}", 9092, f"r{node % 3}") for node in range(20)},
        controller=0,
    )
    fake.always("ListPartitionReassignments", Answer(error_code=0, topics=[]))
    fake.always("DescribeLogDirs", log_dirs)
    fake.always("DescribeConfigs", configs)
    return fake


def test_few_requests_at_100_000_partitions() -> None:
    fake = _big_cluster()
    started = time.process_time()
    document, lacks = export_cluster(fake.client)
    assert lacks == []
    assert fake.sent == {
        "Metadata": 1, "ListPartitionReassignments": 1, "DescribeLogDirs": 20, "DescribeConfigs": 4,
    }  # fmt: skip
    assert sum(len(topic["partitions"]) for topic in document["topics"]) == 100_000
    assert all(p["size_bytes"] == 1 for topic in document["topics"] for p in topic["partitions"])
    assert len(json.dumps(document)) < 60_000_000
    assert time.process_time() - started < 30, "assembling is linear"


@pytest.mark.parametrize(
    ("quorum", "controller", "lacks"),
    [
        (None, 0, []),  # ZooKeeper: Metadata's is the one
        (Quorum(101, 1, 0, (), (), ()), 101, []),
        (Quorum(None, 1, 0, (), (), ()), None, ["no active controller: the metadata quorum has no leader"]),
        (NotAuthorized("no"), None, ["the controller is unknown: no"]),
    ],
)
def test_the_controller_is_the_quorums(
    monkeypatch: pytest.MonkeyPatch, quorum: Quorum | KctlError | None, controller: int | None, lacks: list[str]
) -> None:
    def told(_client: object) -> Quorum | None:
        if isinstance(quorum, KctlError):
            raise quorum
        return quorum

    monkeypatch.setattr("kctl.protocol.active_controller.describe_quorum", told)
    fake = _big_cluster(topics=0)
    document, said = export_cluster(fake.client)
    assert (document["controller"], said) == (controller, lacks)
