"""The cluster as one value, which checks and the executor look at."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kctl.cluster.log_dirs import LogDir, fetch_log_dirs
from kctl.cluster.reassignments import Moving, ongoing_reassignments
from kctl.errors import KctlError, NotSupported
from kctl.model import Broker, PartitionState, TopicPartition, TopicState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass
class LiveState:
    """brokers: those that are up. topics: those that were asked for and exist.

    moving: every partition of the cluster under reassignment, whatever topics were asked for; replicas of such a
    partition hold both the old and the new ones. log_dirs: of the brokers asked for, all replicas in them.
    """

    brokers: dict[int, Broker]
    controller_id: int | None
    cluster_id: str | None
    topics: dict[str, TopicState]
    moving: dict[TopicPartition, Moving]
    log_dirs: dict[int, list[LogDir] | KctlError] = field(default_factory=dict)

    def partition(self, tp: TopicPartition) -> PartitionState | None:
        """None when the topic or the partition does not exist."""
        topic = self.topics.get(tp.topic)
        if topic is None:
            return None
        if tp.partition < len(topic.partitions) and topic.partitions[tp.partition].partition == tp.partition:
            return topic.partitions[tp.partition]
        return next((p for p in topic.partitions if p.partition == tp.partition), None)

    def target(self, tp: TopicPartition) -> tuple[int, ...] | None:
        """The replicas as they are, or as a reassignment under way will leave them. None: no such partition."""
        found = self.partition(tp)
        if found is None:
            return None
        moving = self.moving.get(tp)
        leaving = moving.removing if moving else ()
        return tuple(node for node in found.replicas if node not in leaving)


def read_live(
    client: ClusterClient, topics: Collection[str] | None, *, log_dirs_of: Collection[int] | None
) -> LiveState:
    """topics: None for all. log_dirs_of: brokers to ask for their log dirs, None for all that are up.

    One Metadata, one ListPartitionReassignments, one DescribeLogDirs to each broker asked for.
    Raises NotSupported for brokers before 2.4, and what ClusterClient's requests raise.
    """
    state = client.metadata(topics)
    moving = ongoing_reassignments(client)
    if moving is None:
        raise NotSupported("the brokers cannot be asked for reassignments", hint="Kafka 2.4 or newer is needed")
    asked = state.brokers.keys() if log_dirs_of is None else state.brokers.keys() & set(log_dirs_of)
    log_dirs = fetch_log_dirs(client, sorted(asked)) if asked else {}
    return LiveState(state.brokers, state.controller_id, state.cluster_id, state.topics, moving, log_dirs)
