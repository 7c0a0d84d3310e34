"""Clusters to plan for: as files of `kctl cluster export`, and as what brokers answer about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from kctl.reassign.planner.cluster import PlanCluster
from reassign_clusters import cluster_of, striped

SIZE_BYTES = 1_000_000_000
METADATA_VERSION, LOG_DIRS_VERSION = 12, 4


def even(brokers: int, partitions: int, factor: int, *, empty: int = 0) -> PlanCluster:
    """Ten racks, even replicas and leaders, 500 partitions a topic; the last `empty` brokers hold nothing."""
    return striped(brokers, partitions, factor, 10, empty=empty, topics=partitions // 500)


def skewed_leaders(brokers: int, partitions: int) -> PlanCluster:
    """Even replicas; one partition of fifty is led by its replica of the lowest id."""
    cluster = even(brokers, partitions, 3)
    pick = Random(1)
    for p, row in enumerate(cluster.replicas):
        if pick.random() < 0.02:
            low = min(row)
            cluster.replicas[p] = (low, *(b for b in row if b != low))
    return cluster


def uneven_racks(partitions: int) -> PlanCluster:
    """Racks of 10, 20, 30 and 40 brokers; each partition in three of them, anywhere there."""
    racks = [name for name, size in zip("abcd", (10, 20, 30, 40), strict=True) for _ in range(size)]
    members = {name: [b for b, rack in enumerate(racks) if rack == name] for name in "abcd"}
    pick = Random(1)
    rows = [[pick.choice(members[name]) for name in pick.sample("abcd", 3)] for _ in range(partitions)]
    return cluster_of(racks, rows)


def write_export(cluster: PlanCluster, path: Path) -> None:
    """The cluster as `kctl cluster export` writes it, without configs and log dirs."""
    brokers = [{"id": b.id, "host": f"broker-{b.id}", "port": 9092, "rack": b.rack} for b in cluster.brokers]
    topics = [
        {
            "name": name,
            "partitions": [
                {"partition": n, "leader": row[0], "replicas": row, "isr": row, "adding": [], "removing": [],
                 "size_bytes": SIZE_BYTES}
                for n, row in rows
            ],
        }
        for name, rows in _by_topic(cluster)
    ]  # fmt: skip
    path.write_text(json.dumps({"cluster_id": "bench", "controller": 0, "brokers": brokers, "topics": topics}))


def _by_topic(cluster: PlanCluster) -> Iterator[tuple[str, list[tuple[int, tuple[int, ...]]]]]:
    rows: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in cluster.topics]
    for p, row in enumerate(cluster.replicas):
        rows[cluster.topic_of[p]].append((cluster.number[p], row))
    return zip(cluster.topics, rows, strict=True)


def write_answers(cluster: PlanCluster, folder: Path) -> None:
    """Metadata as one answer, and DescribeLogDirs of each broker: the bytes that come over the network."""
    from kafka.protocol.admin import DescribeLogDirsResponse
    from kafka.protocol.metadata import MetadataResponse

    topic, broker = MetadataResponse.MetadataResponseTopic, MetadataResponse.MetadataResponseBroker
    partition = topic.MetadataResponsePartition
    metadata = MetadataResponse(
        throttle_time_ms=0,
        brokers=[broker(node_id=b.id, host=f"broker-{b.id}", port=9092, rack=b.rack) for b in cluster.brokers],
        cluster_id="bench",
        controller_id=0,
        topics=[
            topic(
                error_code=0, name=name, is_internal=False,
                partitions=[
                    partition(error_code=0, partition_index=n, leader_id=row[0], leader_epoch=0,
                              replica_nodes=list(row), isr_nodes=list(row), offline_replicas=[])
                    for n, row in rows
                ],
            )
            for name, rows in _by_topic(cluster)
        ],
    )  # fmt: skip
    (folder / "metadata").write_bytes(bytes(metadata.encode(version=METADATA_VERSION)))
    held: dict[int, dict[str, list[int]]] = {b.id: {} for b in cluster.brokers}
    for name, rows in _by_topic(cluster):
        for n, row in rows:
            for node in row:
                held[node].setdefault(name, []).append(n)
    log_dir = DescribeLogDirsResponse.DescribeLogDirsResult
    of_topic = log_dir.DescribeLogDirsTopic
    for node, topics in held.items():
        replicas = [
            of_topic(
                name=name,
                partitions=[
                    of_topic.DescribeLogDirsPartition(
                        partition_index=n, partition_size=SIZE_BYTES, offset_lag=0, is_future_key=False
                    )
                    for n in numbers
                ],
            )
            for name, numbers in topics.items()
        ]
        found = log_dir(error_code=0, log_dir="/data", topics=replicas, total_bytes=1 << 44, usable_bytes=1 << 43)
        answer = DescribeLogDirsResponse(throttle_time_ms=0, error_code=0, results=[found])
        (folder / f"log-dirs-{node}").write_bytes(bytes(answer.encode(version=LOG_DIRS_VERSION)))
