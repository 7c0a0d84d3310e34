"""The request for a new topic: its parameters, and the CreateTopics request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kctl.base.grouping import chunks
from kctl.errors import UsageError

_RECORDS_PER_REQUEST = 5_000  # a KRaft controller rejects more than 10,000 (KAFKA-17870, KAFKA-14996)
_TOPICS_PER_REQUEST = 250  # a controller with ZooKeeper processes them one by one
_ASSUMED_PARTITIONS = 50  # assumed for topics without a number of partitions
BROKER_DEFAULT = -1  # the protocol's value for the broker's configured default (KIP-464)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. partitions, replication_factor: None for the broker's default.

    assignment: replicas (broker ids, preferred leader first) of each partition, instead of both numbers.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignment: tuple[tuple[int, ...], ...] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


def parse_assignment(text: str) -> tuple[tuple[int, ...], ...]:
    """Parse "1:2,2:3": partition 0 on brokers 1 and 2, partition 1 on 2 and 3, like kafka-topics.

    Raises UsageError for anything else, for a duplicate broker in a partition, and for unequal replica counts.
    """
    partitions: list[tuple[int, ...]] = []
    for number, part in enumerate(text.split(",")):
        ids = [item.strip() for item in part.split(":")]
        if not all(item.isascii() and item.isdigit() for item in ids):
            raise UsageError(
                f"{text!r} is not a replica assignment",
                hint="write brokers as 1:2,2:3 (one list per partition, separated by commas)",
            )
        replicas = tuple(int(item) for item in ids)
        if len(set(replicas)) < len(replicas):
            raise UsageError(f"partition {number} has a duplicate broker in {part!r}")
        if max(replicas) > 2**31 - 1:
            raise UsageError(f"{part!r} is not a list of broker ids")
        partitions.append(replicas)
    if len({len(replicas) for replicas in partitions}) > 1:
        raise UsageError(f"{text!r}: all partitions must have the same number of replicas")
    return tuple(partitions)


def request_chunks(topics: Sequence[NewTopic]) -> list[Sequence[NewTopic]]:
    """Return the topics in chunks that a controller accepts in one CreateTopics request."""
    return chunks(topics, _records, limit=_RECORDS_PER_REQUEST, max_rows=_TOPICS_PER_REQUEST)


def _records(topic: NewTopic) -> int:
    """Estimate the number of KRaft metadata records that a topic needs."""
    partitions = len(topic.assignment) if topic.assignment else topic.partitions or _ASSUMED_PARTITIONS
    return 1 + partitions + len(topic.configs)


def create_request(topics: Sequence[NewTopic], *, timeout_s: float, validate_only: bool) -> object:
    """Return a CreateTopics request. validate_only: the controller only validates."""
    from kafka.protocol.admin import CreateTopicsRequest

    topic_class = CreateTopicsRequest.CreatableTopic
    assignment_class = topic_class.CreatableReplicaAssignment
    config_class = topic_class.CreatableTopicConfig
    # Defaults in a request require 2.4; with both numbers or an assignment, any version works.
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
