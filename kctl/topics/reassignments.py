"""Which partitions are being moved right now (KIP-455, brokers ≥ 2.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kctl.errors import NotSupported
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.client import ClusterClient


class Moving(NamedTuple):
    """Brokers that a partition is gaining and losing."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]


def ongoing_reassignments(client: ClusterClient) -> dict[TopicPartition, Moving] | None:
    """All partitions under reassignment, as the controller has them; None when it cannot tell (too old)."""
    from kafka.protocol.admin import ListPartitionReassignmentsRequest

    from kctl.client import error_for

    try:
        response = client.send_to_controller(ListPartitionReassignmentsRequest(topics=None))
    except NotSupported:
        return None
    if response.error_code:
        raise error_for(response.error_code, response.error_message, subject="reassignments")
    return {
        TopicPartition(topic.name, p.partition_index): Moving(tuple(p.adding_replicas), tuple(p.removing_replicas))
        for topic in response.topics
        for p in topic.partitions
    }
