"""The state of the cluster as one value, for checks and for runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kctl.cluster.log_dirs import LogDir, fetch_log_dirs
from kctl.cluster.reassignments import Moving, ongoing_reassignments
from kctl.errors import KctlError, NotSupported, Reason
from kctl.model import Broker, PartitionState, TopicPartition, TopicState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass
class LiveState:
    """The state of the cluster. brokers: live brokers. topics: the requested topics that exist.

    moving: all partitions under reassignment; their replicas are the old and the new ones. log_dirs: of the requested
    brokers, with all their replicas.
    """

    brokers: dict[int, Broker]
    controller_id: int | None
    cluster_id: str | None
    topics: dict[str, TopicState]
    moving: dict[TopicPartition, Moving]
    log_dirs: dict[int, list[LogDir] | KctlError] = field(default_factory=dict)

    def partition(self, tp: TopicPartition) -> PartitionState | None:
        """Return a partition, None if the topic or the partition does not exist."""
        topic = self.topics.get(tp.topic)
        if topic is None:
            return None
        if tp.partition < len(topic.partitions) and topic.partitions[tp.partition].partition == tp.partition:
            return topic.partitions[tp.partition]
        return next((p for p in topic.partitions if p.partition == tp.partition), None)

    def target(self, tp: TopicPartition) -> tuple[int, ...] | None:
        """Return the replicas after the reassignment in progress, if any. None: no such partition."""
        partition = self.partition(tp)
        if partition is None:
            return None
        moving = self.moving.get(tp)
        leaving = moving.removing if moving else ()
        return tuple(node for node in partition.replicas if node not in leaving)


def read_live(
    client: ClusterClient, topics: Collection[str] | None, *, log_dirs_of: Collection[int] | None
) -> LiveState:
    """Read the cluster. topics: None for all. log_dirs_of: brokers whose log dirs to read, None for all.

    Sends one Metadata, one ListPartitionReassignments, and one DescribeLogDirs per broker. Raises NotSupported for
    brokers before 2.4, and the errors of ClusterClient's requests.
    """
    state = client.metadata(topics)
    moving = ongoing_reassignments(client)
    if moving is None:
        raise NotSupported(
            "the brokers do not support reassignments",
            hint="upgrade to Kafka 2.4 or later",
            reason=Reason.VERSION_UNSUPPORTED,
        )
    nodes = state.brokers.keys() if log_dirs_of is None else state.brokers.keys() & set(log_dirs_of)
    log_dirs = fetch_log_dirs(client, sorted(nodes)) if nodes else {}
    return LiveState(state.brokers, state.controller_id, state.cluster_id, state.topics, moving, log_dirs)
