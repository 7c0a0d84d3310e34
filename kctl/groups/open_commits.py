"""Offsets committed in a transaction that is still open.

They take effect when the transaction is committed, and replace whatever was committed meanwhile. Brokers report them as
UNSTABLE_OFFSET_COMMIT to requests for stable offsets (OffsetFetch with require_stable, KIP-447, Kafka 2.5), and for
partitions without another commit only if the request names the partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kctl.cluster.groups.coordinators import ByCoordinator, ask_coordinators, failure, send_in_chunks, send_one_by_one
from kctl.errors import KctlError, NotSupported
from kctl.model import TopicPartition
from kctl.protocol.codes import ErrorCode
from kctl.protocol.partition_requests import numbers_by_topic

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


Partitions = Mapping[str, Collection[TopicPartition]]


def open_commits(
    client: ClusterClient, partitions: Partitions, *, coordinators: Mapping[str, int] | None = None
) -> dict[str, set[TopicPartition]]:
    """Return the partitions of each group with an offset in an open transaction; none from brokers before 2.5.

    coordinators: known coordinators. Raises the error of a group that could not be read.
    """
    try:
        answers = ask_coordinators(client, partitions, partial(_ask, client, partitions), coordinators=coordinators)
    except NotSupported:
        return {group: set() for group in partitions}
    unstable: dict[str, set[TopicPartition]] = {}
    for group, answer in answers.items():
        if isinstance(answer, KctlError):
            raise answer
        unstable[group] = answer
    return unstable


def _ask(
    client: ClusterClient, partitions: Partitions, by_node: ByCoordinator
) -> dict[str, set[TopicPartition] | KctlError]:
    try:
        return send_in_chunks(client, by_node, partial(_batched_request, partitions), _parse_batched)
    except NotSupported:  # before 3.0
        return send_one_by_one(client, by_node, partial(_request, partitions), _parse)


def _batched_request(partitions: Partitions, groups: Sequence[str]) -> object:
    from kafka.protocol.consumer import OffsetFetchRequest

    group_class = OffsetFetchRequest.OffsetFetchRequestGroup
    topic_class = group_class.OffsetFetchRequestTopics
    return OffsetFetchRequest(
        groups=[
            group_class(
                group_id=group,
                topics=[
                    topic_class(name=name, partition_indexes=numbers)
                    for name, numbers in numbers_by_topic(partitions[group]).items()
                ],
            )
            for group in groups
        ],
        require_stable=True,
        min_version=8,
        max_version=9,  # 10 identifies topics by id
    )


def _request(partitions: Partitions, group: str) -> object:
    from kafka.protocol.consumer import OffsetFetchRequest

    topic_class = OffsetFetchRequest.OffsetFetchRequestTopic
    topics = [
        topic_class(name=name, partition_indexes=numbers)
        for name, numbers in numbers_by_topic(partitions[group]).items()
    ]
    return OffsetFetchRequest(group_id=group, topics=topics, require_stable=True, min_version=7, max_version=7)


def _parse_batched(response: Any) -> dict[str, set[TopicPartition] | KctlError]:
    return {group.group_id: _parse(group, group.group_id) for group in response.groups}


def _parse(answer: Any, group: str) -> set[TopicPartition] | KctlError:
    return failure(answer.error_code, None, group) if answer.error_code else _unstable(answer.topics)


def _unstable(topics: Iterable[Any]) -> set[TopicPartition]:
    """Return the unstable partitions.

    Other errors of partitions (hidden topics) are reported when reading or committing.
    """
    return {
        TopicPartition(topic.name, row.partition_index)
        for topic in topics
        for row in topic.partitions
        if row.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    }
