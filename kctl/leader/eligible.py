"""Eligible leader replicas (KIP-966): brokers that can lead a partition without losing a committed record.

In KRaft with eligible.leader.replicas.version ≥ 1, a replica that leaves the ISR while the ISR is below
min.insync.replicas stays eligible, because it has every committed record. When its broker returns, the controller
elects it, and no record is lost. Metadata responses do not include these replicas; DescribeTopicPartitions (brokers 3.8
and later) returns them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.cluster.unchanged import Basis, ObjectFacts
from kctl.errors import KctlError, NotFound, NotSupported, OperationFailed
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_PER_PAGE = 2000  # the brokers' limit: max.request.partition.size.limit
_TOPICS_PER_REQUEST = 200


class Eligible(NamedTuple):
    """The eligible leader replicas of a partition, as broker ids.

    replicas: eligible now. last_known: the last eligible ones, whose brokers restarted without a clean shutdown.
    """

    replicas: tuple[int, ...] = ()
    last_known: tuple[int, ...] = ()


NONE_ELIGIBLE = Eligible()


def read_eligible(client: ClusterClient, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Eligible]:
    """Return the eligible leader replicas of each partition; empty if the brokers do not support them.

    Raises the error of a topic that cannot be described, because an election could then lose records.
    """
    topics = sorted({tp.topic for tp in partitions})
    eligible: dict[TopicPartition, Eligible] = {}
    for start in range(0, len(topics), _TOPICS_PER_REQUEST):
        try:
            eligible |= _read_pages(client, topics[start : start + _TOPICS_PER_REQUEST])
        except NotSupported:
            return {}  # ZooKeeper, or a release that has no eligible leader replicas
    return {tp: eligible.get(tp, NONE_ELIGIBLE) for tp in partitions}


def unchanged_eligible(client: ClusterClient, eligible: Mapping[TopicPartition, Eligible]) -> Basis:
    """Return the eligible leader replicas as a basis: if they change, so does the election."""

    def read() -> ObjectFacts:
        try:
            return _facts(read_eligible(client, list(eligible)))
        except NotFound:
            return {}

    return Basis(_facts(eligible), read)


def _facts(eligible: Mapping[TopicPartition, Eligible]) -> dict[str, dict[str, object]]:
    return {
        f"election of partition {tp}": {
            "eligible leader replicas": tuple(sorted(eligible_replicas.replicas)) or "none",
            "last known eligible leader replicas": tuple(sorted(eligible_replicas.last_known)) or "none",
        }
        for tp, eligible_replicas in eligible.items()
    }


def _read_pages(client: ClusterClient, topics: list[str]) -> dict[TopicPartition, Eligible]:
    from kafka.protocol.admin import DescribeTopicPartitionsRequest as Request

    eligible: dict[TopicPartition, Eligible] = {}
    cursor: tuple[str, int] | None = None
    while True:
        response = client.send(
            Request(
                topics=[Request.TopicRequest(name=name) for name in topics if cursor is None or name >= cursor[0]],
                response_partition_limit=_PER_PAGE,
                cursor=None if cursor is None else Request.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
            )
        )
        for topic in response.topics:
            _add_topic(topic, eligible)
        next_cursor = response.next_cursor
        if next_cursor is None:
            return eligible
        position = (next_cursor.topic_name, next_cursor.partition_index)
        if cursor is not None and position <= cursor:
            raise OperationFailed(
                "cannot read eligible leader replicas: the broker returns the same page again",
                hint="connect to another broker",
            )
        cursor = position


def _add_topic(topic: Any, eligible: dict[TopicPartition, Eligible]) -> None:
    from kctl.protocol.client import error_for

    if topic.error_code:
        error: KctlError = error_for(topic.error_code, None, subject=f"eligible leader replicas of topic {topic.name}")
        raise error
    for row in topic.partitions:
        eligible[TopicPartition(topic.name, row.partition_index)] = Eligible(
            tuple(row.eligible_leader_replicas or ()), tuple(row.last_known_elr or ())
        )
