"""What is asked for when a topic is made: its words, and the CreateTopics request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kctl.base.grouping import chunks
from kctl.errors import UsageError

_RECORDS_PER_REQUEST = 5_000  # a KRaft controller refuses more than 10,000 (KAFKA-17870, KAFKA-14996)
_TOPICS_PER_REQUEST = 250  # a controller with ZooKeeper takes them one after the other
_UNSAID_PARTITIONS = 50  # of topics that leave their number to the brokers
BROKER_DEFAULT = -1  # the protocol's word for «as the broker is configured» (KIP-464)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """What is asked for. partitions, replication_factor: None is the brokers' default.

    assignment: replicas (broker ids, the preferred leader first) of each partition, instead of both numbers.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignment: tuple[tuple[int, ...], ...] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


def parse_assignment(text: str) -> tuple[tuple[int, ...], ...]:
    """«1:2,2:3» → partition 0 on brokers 1 and 2, partition 1 on 2 and 3, as kafka-topics has it.

    Raises UsageError for anything else, for a broker twice in a partition, and for unequal replica counts.
    """
    partitions: list[tuple[int, ...]] = []
    for number, part in enumerate(text.split(",")):
        ids = [item.strip() for item in part.split(":")]
        if not all(item.isascii() and item.isdigit() for item in ids):
            raise UsageError(
                f"{text!r} is not a replica assignment", hint="write brokers as 1:2,2:3 (partitions by commas)"
            )
        replicas = tuple(int(item) for item in ids)
        if len(set(replicas)) < len(replicas):
            raise UsageError(f"partition {number} has a broker twice in {part!r}")
        if max(replicas) > 2**31 - 1:
            raise UsageError(f"{part!r} is not a list of broker ids")
        partitions.append(replicas)
    if len({len(replicas) for replicas in partitions}) > 1:
        raise UsageError(f"{text!r} gives partitions different numbers of replicas")
    return tuple(partitions)


def request_chunks(topics: Sequence[NewTopic]) -> list[Sequence[NewTopic]]:
    """Topics in their order, as many together as a controller takes in one CreateTopics."""
    return chunks(topics, _records, limit=_RECORDS_PER_REQUEST, most=_TOPICS_PER_REQUEST)


def _records(topic: NewTopic) -> int:
    """About how many records of a KRaft controller make a topic."""
    partitions = len(topic.assignment) if topic.assignment else topic.partitions or _UNSAID_PARTITIONS
    return 1 + partitions + len(topic.configs)


def create_request(topics: Sequence[NewTopic], *, timeout_s: float, validate_only: bool) -> object:
    """A CreateTopics request; validate_only asks the controller whether it would, and changes nothing."""
    from kafka.protocol.admin import CreateTopicsRequest

    topic_class = CreateTopicsRequest.CreatableTopic
    assignment_class = topic_class.CreatableReplicaAssignment
    config_class = topic_class.CreatableTopicConfig
    # A default in a request is understood from 2.4 on; with both numbers given, or an assignment, any version does.
    needs_defaults = any(not t.assignment and None in (t.partitions, t.replication_factor) for t in topics)
    return CreateTopicsRequest(
        topics=[
            topic_class(
                name=topic.name,
                num_partitions=BROKER_DEFAULT if topic.assignment else topic.partitions or BROKER_DEFAULT,
                replication_factor=(BROKER_DEFAULT if topic.assignment else topic.replication_factor or BROKER_DEFAULT),
                assignments=[
                    assignment_class(partition_index=number, broker_ids=list(replicas))
                    for number, replicas in enumerate(topic.assignment or ())
                ],
                configs=[config_class(name=key, value=value) for key, value in topic.configs.items()],
            )
            for topic in topics
        ],
        timeout_ms=int(timeout_s * 1000),
        validate_only=validate_only,
        min_version=4 if needs_defaults else 1,
    )
