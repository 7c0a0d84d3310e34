"""Eligible leader replicas (KIP-966): brokers that can lead a partition without losing a committed record.

In KRaft with eligible.leader.replicas.version ≥ 1, a replica that leaves the ISR while the ISR is below
min.insync.replicas stays eligible, because it has every committed record. When its broker returns, the controller
elects it, and no record is lost. Metadata responses do not include these replicas; DescribeTopicPartitions (brokers 3.8
and later, KRaft) returns them, a page at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.cluster.unchanged import Basis, ObjectFacts
from kctl.errors import KctlError, NotFound, NotSupported, OperationFailed
from kctl.model import TopicPartition
from kctl.protocol.codes import ApiKey

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_PER_PAGE = 2000  # the brokers' limit: max.request.partition.size.limit
_TOPICS_PER_REQUEST = 200


class Eligible(NamedTuple):
    """The eligible leader replicas of a partition, as broker ids.

    replicas: eligible now. last_known: the last leader of a partition without one. A broker that restarts without a
    clean shutdown is no longer eligible. If no replica is in sync or eligible, the controller elects the last known
    leader when its broker is up (PartitionChangeBuilder.canElectLastKnownLeader).
    """

    replicas: tuple[int, ...] = ()
    last_known: tuple[int, ...] = ()


NONE_ELIGIBLE = Eligible()


def read_eligible(client: ClusterClient, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Eligible]:
    """Return the eligible leader replicas of each partition; empty if the brokers do not support them.

    Raises the error of a topic that cannot be described, because an election could then lose records.
    """
    last: dict[str, int] = {}
    for tp in partitions:
        last[tp.topic] = max(tp.partition, last.get(tp.topic, 0))
    topics = sorted(last)
    eligible: dict[TopicPartition, Eligible] = {}
    for start in range(0, len(topics), _TOPICS_PER_REQUEST):
        try:
            eligible |= _read_pages(client, {name: last[name] for name in topics[start : start + _TOPICS_PER_REQUEST]})
        except NotSupported:
            return {}  # ZooKeeper, or a release without eligible leader replicas
    return {tp: eligible.get(tp, NONE_ELIGIBLE) for tp in partitions}


def eligible_if_known(
    client: ClusterClient, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Eligible] | KctlError | None:
    """Return the eligible leader replicas as `read_eligible` does, or the error if they are unknown.

    None: the cluster does not support them (ZooKeeper, or Kafka before 3.8); this costs no request.
    """
    if client.api_version(ApiKey.DESCRIBE_TOPIC_PARTITIONS) is None:
        return None
    if not partitions:
        return {}
    try:
        return read_eligible(client, partitions) or None
    except KctlError as exc:
        return exc.reworded(f"eligible leader replicas are unknown: {exc.message}")


def unchanged_eligible(client: ClusterClient, eligible: Mapping[TopicPartition, Eligible]) -> Basis:
    """Return the eligible leader replicas as the basis of an election, to compare them again before it."""

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


def _read_pages(client: ClusterClient, last: Mapping[str, int]) -> dict[TopicPartition, Eligible]:
    """Read the topics page by page. last: topic → the last partition that is needed.

    A cursor beyond the needed partitions of a topic moves to the next topic. Together with the check that each page
    starts later than the one before, this bounds the number of pages by the number of partitions.
    """
    from kafka.protocol.admin import DescribeTopicPartitionsRequest as Request

    topics = sorted(last)
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
        following = _next_page(topics, last, response.next_cursor)
        if following is None:
            return eligible
        if following[1] < 0 or (cursor is not None and following <= cursor):
            raise OperationFailed(
                "cannot read eligible leader replicas: the broker returns the same page again",
                hint="connect to another broker",
            )
        cursor = following


def _next_page(topics: Sequence[str], last: Mapping[str, int], cursor: Any) -> tuple[str, int] | None:
    """Return where the next page that is needed starts; None: all needed partitions were read."""
    if cursor is None:
        return None
    if cursor.partition_index <= last.get(cursor.topic_name, -1):
        return cursor.topic_name, cursor.partition_index
    return next(((name, 0) for name in topics if name > cursor.topic_name), None)


def _add_topic(topic: Any, eligible: dict[TopicPartition, Eligible]) -> None:
    from kctl.protocol.client import error_for

    if topic.error_code:
        error: KctlError = error_for(topic.error_code, None, subject=f"eligible leader replicas of topic {topic.name}")
        raise error
    for row in topic.partitions:
        eligible[TopicPartition(topic.name, row.partition_index)] = Eligible(
            tuple(row.eligible_leader_replicas or ()), tuple(row.last_known_elr or ())
        )
