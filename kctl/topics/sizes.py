"""Sizes of topics on disk, from DescribeLogDirs: all replicas, or the leaders' only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.cluster.log_dirs import fetch_log_dirs
from kctl.errors import KctlError
from kctl.model import ClusterState, TopicPartition, TopicState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class ReplicaSizes:
    """The size of replicas.

    known_bytes: reported by brokers, including replicas being moved. missing: assigned replicas that no broker
    reported. leader_bytes: of the leaders' replicas; None if one is missing.
    """

    known_bytes: int
    missing: int
    leader_bytes: int | None

    @property
    def bytes(self) -> int | None:
        """Return the size of all replicas; None if one is missing."""
        return None if self.missing else self.known_bytes

    def __add__(self, other: ReplicaSizes) -> ReplicaSizes:
        complete = None not in (self.leader_bytes, other.leader_bytes)
        leaders = (self.leader_bytes or 0) + (other.leader_bytes or 0) if complete else None
        return ReplicaSizes(self.known_bytes + other.known_bytes, self.missing + other.missing, leaders)


ZERO = ReplicaSizes(0, 0, 0)


class TopicSizes:
    """Sizes by partition and by topic. failures: why some are unknown, one line each."""

    def __init__(self, by_partition: dict[TopicPartition, ReplicaSizes], failures: list[str]) -> None:
        self.by_partition = by_partition
        self.failures = failures

    def topic(self, topic: TopicState) -> ReplicaSizes:
        """Return the sum over the partitions."""
        return sum((self.by_partition[p.tp] for p in topic.partitions), ZERO)


def fetch_sizes(client: ClusterClient, state: ClusterState, topics: Iterable[TopicState]) -> TopicSizes:
    """Return the sizes of `topics`, by one DescribeLogDirs request to each broker. state: has the topics."""
    chosen = list(topics)
    if not chosen:
        return TopicSizes({}, [])
    partitions = {t.name: [p.partition for p in t.partitions] for t in chosen}
    failures: list[str] = []
    sizes: dict[TopicPartition, dict[int, int]] = {}
    for node, response in fetch_log_dirs(client, state.brokers, topics=partitions).items():
        if isinstance(response, KctlError):
            failures.append(f"sizes of broker {node}: {response.message}")
            continue
        for log_dir in response:
            if log_dir.error:
                failures.append(f"sizes of broker {node}: {log_dir.error}")
            for replica in log_dir.replicas:
                by_broker = sizes.setdefault(TopicPartition(replica.topic, replica.partition), {})
                by_broker[node] = by_broker.get(node, 0) + replica.size_bytes
    down = {node for t in chosen for p in t.partitions for node in p.replicas} - state.brokers.keys()
    failures += [f"sizes of broker {node}: the broker is down" for node in sorted(down)]
    return TopicSizes(
        {p.tp: size_of(sizes.get(p.tp, {}), p.replicas, p.leader) for t in chosen for p in t.partitions}, failures
    )


def size_of(by_broker: dict[int, int], replicas: Iterable[int], leader: int) -> ReplicaSizes:
    """Return the size of one partition. by_broker: the size that each broker reports."""
    missing = sum(node not in by_broker for node in replicas)
    return ReplicaSizes(sum(by_broker.values()), missing, by_broker.get(leader))
