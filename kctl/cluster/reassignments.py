"""Partitions under reassignment (KIP-455, Kafka 2.4)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from kctl.errors import KctlError, NotSupported, OperationFailed, Reason
from kctl.model import ClusterState, TopicPartition
from kctl.protocol.partition_requests import numbers_by_topic

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


_LIMIT_S = 10.0  # limit where the rest of the result is useful without the controller's response


class Moving(NamedTuple):
    """The brokers that a partition is gaining and losing."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]


def reassignments_if_known(client: ClusterClient, state: ClusterState) -> dict[TopicPartition, Moving] | KctlError:
    """Return all partitions under reassignment, or why they are unknown: for callers that do not depend on them."""
    if state.controller_id is None:
        return OperationFailed("the cluster has no controller")
    try:
        moving = ongoing_reassignments(client, timeout_s=min(client.timeout_s, _LIMIT_S))
    except KctlError as exc:
        return exc
    if moving is None:
        return NotSupported("brokers before 2.4 do not report reassignments", reason=Reason.VERSION_UNSUPPORTED)
    return moving


def ongoing_reassignments(
    client: ClusterClient, partitions: Collection[TopicPartition] | None = None, *, timeout_s: float | None = None
) -> dict[TopicPartition, Moving] | None:
    """Return all partitions under reassignment, or those among `partitions`, from the controller.

    None if the controller is too old to report them.
    """
    from kafka.protocol.admin import ListPartitionReassignmentsRequest

    from kctl.protocol.client import error_for

    topic_class = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    requested = None
    if partitions is not None:
        by_topic = numbers_by_topic(sorted(partitions))
        requested = [topic_class(name=topic, partition_indexes=numbers) for topic, numbers in by_topic.items()]
    try:
        response = client.send_to_controller(ListPartitionReassignmentsRequest(topics=requested), timeout_s=timeout_s)
    except NotSupported:
        return None
    if response.error_code:
        raise error_for(response.error_code, response.error_message, subject="reassignments")
    return {
        TopicPartition(topic.name, p.partition_index): Moving(tuple(p.adding_replicas), tuple(p.removing_replicas))
        for topic in response.topics
        for p in topic.partitions
    }
