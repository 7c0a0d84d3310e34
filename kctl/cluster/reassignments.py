"""Which partitions are being moved right now (KIP-455, brokers ≥ 2.4)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from kctl.errors import KctlError, NotSupported, OperationFailed
from kctl.model import ClusterState, TopicPartition
from kctl.protocol.partition_requests import numbers_by_topic

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


_LIMIT_S = 10.0  # a controller that does not answer costs no more, where its answer is not all


class Moving(NamedTuple):
    """Brokers that a partition is gaining and losing."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]


def reassignments_if_told(client: ClusterClient, state: ClusterState) -> dict[TopicPartition, Moving] | KctlError:
    """All partitions under reassignment, or why nobody could tell: for those who know all else without it."""
    if state.controller_id is None:
        return OperationFailed("the cluster has no controller")
    try:
        found = ongoing_reassignments(client, timeout_s=min(client.timeout_s, _LIMIT_S))
    except KctlError as exc:
        return exc
    return NotSupported("brokers before 2.4 do not tell") if found is None else found


def ongoing_reassignments(
    client: ClusterClient, partitions: Collection[TopicPartition] | None = None, *, timeout_s: float | None = None
) -> dict[TopicPartition, Moving] | None:
    """All partitions under reassignment, or those among `partitions`, as the controller has them.

    None when it cannot tell (too old).
    """
    from kafka.protocol.admin import ListPartitionReassignmentsRequest

    from kctl.protocol.client import error_for

    topic_class = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    asked = None
    if partitions is not None:
        by_topic = numbers_by_topic(sorted(partitions))
        asked = [topic_class(name=topic, partition_indexes=numbers) for topic, numbers in by_topic.items()]
    try:
        response = client.send_to_controller(ListPartitionReassignmentsRequest(topics=asked), timeout_s=timeout_s)
    except NotSupported:
        return None
    if response.error_code:
        raise error_for(response.error_code, response.error_message, subject="reassignments")
    return {
        TopicPartition(topic.name, p.partition_index): Moving(tuple(p.adding_replicas), tuple(p.removing_replicas))
        for topic in response.topics
        for p in topic.partitions
    }
