"""Describe topics: partitions and configs, optionally with sizes and offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from kctl.cluster.eligible import NONE_ELIGIBLE, eligible_if_known
from kctl.cluster.reassignments import Moving, reassignments_if_known
from kctl.cluster.topic_configs import ConfigEntry, ConfigSource, fetch_topic_configs, min_isr_in
from kctl.cluster.topics import choose, hidden, not_seen
from kctl.errors import KctlError
from kctl.health.partitions import at_min_isr, under_min_isr, under_replicated
from kctl.model import ClusterState, PartitionState, TopicPartition, TopicState
from kctl.topics.offsets import LogSpan, log_spans
from kctl.topics.sizes import TopicSizes, fetch_sizes

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_AT_REST = Moving((), ())


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition. leader: None if there is none.

    under_replicated: fewer replicas in sync than assigned, not counting replicas that a reassignment adds.
    under_min_isr: fewer in sync than min.insync.replicas (or than replicas, if fewer): acks=all is rejected.
    at_min_isr: exactly as many. None if the config is unreadable. adding_replicas, removing_replicas: of a
    reassignment; None: unknown. size_bytes: all replicas; leader_size_bytes: one; None if not requested or unknown.
    offsets: None if not requested or unknown. eligible, last_known_eligible: see kctl.cluster.eligible (KIP-966); None
    if the cluster does not support eligible leader replicas, or if they are unknown.
    """

    partition: int
    leader: int | None
    preferred_leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] | None
    removing_replicas: tuple[int, ...] | None
    under_replicated: bool
    under_min_isr: bool | None
    at_min_isr: bool | None
    offline: bool
    size_bytes: int | None = None
    leader_size_bytes: int | None = None
    offsets: LogSpan | None = None
    eligible: tuple[int, ...] | None = None
    last_known_eligible: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic. config_entries: configs that differ from Kafka's defaults. configs_error: why they are unreadable."""

    topic: str
    topic_id: str | None
    internal: bool
    partition_count: int
    replication_factor: int
    config_entries: tuple[ConfigEntry, ...]
    configs_error: str | None
    partitions: tuple[PartitionDescription, ...]

    @property
    def overrides(self) -> tuple[ConfigEntry, ...]:
        """Return the configs that are set on the topic itself."""
        return tuple(entry for entry in self.config_entries if entry.source is ConfigSource.TOPIC)


class PartitionProblem(Enum):
    """A problem of a partition, named like the filters of kafka-topics.

    Like in kafka-topics, UNDER_MIN_ISR includes partitions without a leader: they reject acks=all as well.
    """

    UNDER_REPLICATED = "under-replicated"
    UNAVAILABLE = "unavailable"
    UNDER_MIN_ISR = "under-min-isr"
    AT_MIN_ISR = "at-min-isr"


NEEDS_CONFIGS = frozenset({PartitionProblem.UNDER_MIN_ISR, PartitionProblem.AT_MIN_ISR})


def has_problem(partition: PartitionDescription, problem: PartitionProblem) -> bool:
    """Return True if the partition certainly has the problem."""
    if problem is PartitionProblem.UNDER_REPLICATED:
        return partition.under_replicated
    if problem is PartitionProblem.UNAVAILABLE:
        return partition.offline
    if problem is PartitionProblem.AT_MIN_ISR:
        return bool(partition.at_min_isr)
    return partition.offline or bool(partition.under_min_isr)


def with_problems(topic: TopicDescription, problems: Collection[PartitionProblem]) -> TopicDescription:
    """Return the topic with only the partitions that have any of `problems`."""
    matching = tuple(p for p in topic.partitions if any(has_problem(p, problem) for problem in problems))
    return replace(topic, partitions=matching)


@dataclass(frozen=True, slots=True)
class DescribeRequest:
    """The topics and partitions to describe; all topics if names and match are empty.

    problems: only partitions that have one of them. with_overrides: only topics with configs of their own. size,
    offsets: read these as well. internal: include internal topics; a filter by problems always includes them, like
    kafka-topics, because groups and transactions depend on them.
    """

    names: Sequence[str] = ()
    match: Sequence[str] = ()
    problems: Sequence[PartitionProblem] = ()
    with_overrides: bool = False
    size: bool = False
    offsets: bool = False
    internal: bool = False


@dataclass(frozen=True, slots=True)
class DescribedTopics:
    """The described topics. doubts: unknown facts. failures: unknown facts that were requested."""

    topics: list[TopicDescription]
    doubts: list[str]
    failures: list[str]


def describe_topics(client: ClusterClient, request: DescribeRequest) -> DescribedTopics:
    """Describe topics as `kctl topic describe` does. Raises NotFound for unknown names."""
    internal = request.internal or bool(request.problems)
    state, chosen = choose(client, request.names, request.match, internal=internal)
    topics = describe_chosen(client, state, chosen)
    unknown = [topic.configs_error for topic in topics if topic.configs_error]
    by_configs = request.with_overrides or not NEEDS_CONFIGS.isdisjoint(request.problems)
    filtered = request.with_overrides or bool(request.problems)
    doubts, failures = not_seen(client, request.names, chosen, filtered=filtered)
    (failures if by_configs else doubts).extend(unknown)
    if request.with_overrides:
        topics = [topic for topic in topics if topic.overrides]
    if request.problems:
        topics = [topic for topic in (with_problems(topic, request.problems) for topic in topics) if topic.partitions]
    topics = _measured(client, state, topics, failures, size=request.size, offsets=request.offsets)
    topics = _with_eligible(client, topics, doubts)
    if any(p.adding_replicas is None for topic in topics for p in topic.partitions):
        doubts.append("unknown whether partitions are being reassigned: the controller did not report it")
    return DescribedTopics(topics, doubts, failures)


def _measured(
    client: ClusterClient,
    state: ClusterState,
    topics: list[TopicDescription],
    failures: list[str],
    *,
    size: bool,
    offsets: bool,
) -> list[TopicDescription]:
    """Return the topics with sizes and offsets. The reasons for unknown ones are appended to `failures`."""
    states = [state.topics[topic.topic] for topic in topics]
    if size and states:
        sizes = fetch_sizes(client, state, states)
        failures += sizes.failures
        topics = [with_sizes(topic, sizes) for topic in topics]
    if offsets and states:
        spans, lacking = log_spans(client, state, states)
        failures += lacking
        topics = [with_offsets(topic, spans) for topic in topics]
    return topics


def _with_eligible(client: ClusterClient, topics: list[TopicDescription], doubts: list[str]) -> list[TopicDescription]:
    """Return the topics with their eligible leader replicas. Why these are unknown is appended to `doubts`."""
    if not topics:
        return topics
    # With all replicas in sync, there are no others that could be eligible.
    known = eligible_if_known(
        client,
        [
            TopicPartition(topic.topic, p.partition)
            for topic in topics
            for p in topic.partitions
            if p.offline or len(p.isr) < len(p.replicas)
        ],
    )
    if known is None:
        return topics
    if isinstance(known, KctlError):
        doubts.append(known.message)
        return topics

    def completed(topic: str, partition: PartitionDescription) -> PartitionDescription:
        eligible = known.get(TopicPartition(topic, partition.partition), NONE_ELIGIBLE)
        return replace(partition, eligible=eligible.replicas, last_known_eligible=eligible.last_known)

    return [replace(each, partitions=tuple(completed(each.topic, p) for p in each.partitions)) for each in topics]


def describe_chosen(client: ClusterClient, state: ClusterState, chosen: Sequence[TopicState]) -> list[TopicDescription]:
    """Describe topics in the given order. state: has the topics."""
    if not chosen:
        return []
    configs = fetch_topic_configs(client, [topic.name for topic in chosen], state.brokers)
    moving = reassignments_if_known(client, state)
    known_moving = None if isinstance(moving, KctlError) else moving
    return [describe(topic, configs[topic.name], known_moving) for topic in chosen]


def with_sizes(topic: TopicDescription, sizes: TopicSizes) -> TopicDescription:
    """Return the topic with the sizes of its partitions."""

    def sized(partition: PartitionDescription) -> PartitionDescription:
        size = sizes.by_partition[TopicPartition(topic.topic, partition.partition)]
        return replace(partition, size_bytes=size.bytes, leader_size_bytes=size.leader_bytes)

    return replace(topic, partitions=tuple(map(sized, topic.partitions)))


def with_offsets(topic: TopicDescription, spans: Mapping[TopicPartition, LogSpan]) -> TopicDescription:
    """Return the topic with the offsets of its partitions."""
    partitions = (replace(p, offsets=spans.get(TopicPartition(topic.topic, p.partition))) for p in topic.partitions)
    return replace(topic, partitions=tuple(partitions))


def describe(
    topic: TopicState, configs: list[ConfigEntry] | KctlError, moving: Mapping[TopicPartition, Moving] | None
) -> TopicDescription:
    """Combine Metadata, DescribeConfigs and ListPartitionReassignments (None: unknown) of one topic."""
    readable = not isinstance(configs, KctlError)
    entries = () if isinstance(configs, KctlError) else tuple(configs)
    min_isr = min_isr_in(entries) if readable else None
    return TopicDescription(
        topic=topic.name,
        topic_id=topic.topic_id,
        internal=hidden(topic),
        partition_count=len(topic.partitions),
        replication_factor=topic.replication_factor,
        config_entries=entries,
        configs_error=configs.message if isinstance(configs, KctlError) else None,
        partitions=tuple(
            _partition(p, None if moving is None else moving.get(p.tp, _AT_REST), min_isr) for p in topic.partitions
        ),
    )


def _partition(state: PartitionState, moving: Moving | None, min_isr: int | None) -> PartitionDescription:
    return PartitionDescription(
        partition=state.partition,
        leader=None if state.offline else state.leader,
        preferred_leader=state.preferred_leader,
        replicas=state.replicas,
        isr=state.isr,
        offline_replicas=state.offline_replicas,
        adding_replicas=None if moving is None else moving.adding,
        removing_replicas=None if moving is None else moving.removing,
        under_replicated=under_replicated(state, () if moving is None else moving.adding),
        under_min_isr=None if min_isr is None else under_min_isr(state, min_isr),
        at_min_isr=None if min_isr is None else at_min_isr(state, min_isr),
        offline=state.offline,
    )
