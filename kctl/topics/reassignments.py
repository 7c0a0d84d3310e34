"""Which partitions are being moved right now (KIP-455, brokers ≥ 2.4)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from kctl.errors import NotSupported
from kctl.model import TopicPartition
from kctl.partition_requests import numbers_by_topic

if TYPE_CHECKING:
    from kctl.client import ClusterClient


class Moving(NamedTuple):
    """Brokers that a partition is gaining and losing."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]


def ongoing_reassignments(
    client: ClusterClient, partitions: Collection[TopicPartition] | None = None
) -> dict[TopicPartition, Moving] | None:
    """All partitions under reassignment, or those among `partitions`, as the controller has them.

    None when it cannot tell (too old).
    """
    from kafka.protocol.admin import ListPartitionReassignmentsRequest

    from kctl.client import error_for

    topic_class = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    asked = None
    if partitions is not None:
        by_topic = numbers_by_topic(sorted(partitions))
        asked = [topic_class(name=topic, partition_indexes=numbers) for topic, numbers in by_topic.items()]
    try:
        response = client.send_to_controller(ListPartitionReassignmentsRequest(topics=asked))
    except NotSupported:
        return None
    if response.error_code:
        raise error_for(response.error_code, response.error_message, subject="reassignments")
    return {
        TopicPartition(topic.name, p.partition_index): Moving(tuple(p.adding_replicas), tuple(p.removing_replicas))
        for topic in response.topics
        for p in topic.partitions
    }
