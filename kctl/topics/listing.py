"""List topics: partitions, health, and optionally sizes and numbers of messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.cluster.topics import choose, hidden, not_seen
from kctl.health.collect import adding_replicas
from kctl.health.model import Adding
from kctl.health.partitions import adding_of, adding_unknown, under_replicated
from kctl.model import ClusterState, TopicState
from kctl.topics.describe import NEEDS_CONFIGS, PartitionProblem, describe_chosen, with_problems

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in a list. replication_factor: the largest if partitions differ.

    size_bytes: all replicas; leader_size_bytes: one per partition. messages: log end − log start offsets, more than
    exist after compaction and with transactions. None: not requested, or partly unknown.
    """

    topic: str
    partition_count: int
    replication_factor: int
    internal: bool
    under_replicated_partitions: int
    offline_partitions: int
    size_bytes: int | None = None
    leader_size_bytes: int | None = None
    messages: int | None = None


@dataclass(frozen=True, slots=True)
class ListRequest:
    """The topics to list. match: empty for all. problems: only topics with a partition that has any of them.

    size, count: read sizes and numbers of messages. internal: include internal topics; any `problems` include them as
    well.
    """

    match: Sequence[str] = ()
    problems: Sequence[PartitionProblem] = ()
    size: bool = False
    count: bool = False
    internal: bool = False


@dataclass(frozen=True, slots=True)
class ListedTopics:
    """The listed topics. doubts: why topics may be missing. failures: requested facts that are unknown."""

    topics: list[TopicSummary]
    doubts: list[str]
    failures: list[str]


def list_topics(client: ClusterClient, request: ListRequest) -> ListedTopics:
    """List topics as `kctl topic list` does."""
    filtered = bool(request.problems)
    state, chosen = choose(client, match=request.match, internal=request.internal or filtered)
    doubts, failures = not_seen(client, (), chosen, filtered=filtered)
    topics, unsure = summarize(client, state, chosen)
    doubts += unsure
    if request.problems:
        topics, lacking = filter_problems(client, state, topics, request.problems)
        failures += lacking
    if request.size:
        topics, lacking = with_sizes(client, state, topics)
        failures += lacking
    if request.count:
        topics, lacking = with_messages(client, state, topics)
        failures += lacking
    return ListedTopics(topics, doubts, failures)


def summarize(
    client: ClusterClient, state: ClusterState, topics: Collection[TopicState]
) -> tuple[list[TopicSummary], list[str]]:
    """Return one row per topic, and doubts about them. Sends one more request if not all replicas are in sync."""
    suspect = any(p.under_replicated for topic in topics for p in topic.partitions)
    adding = adding_replicas(client, state) if suspect else {}
    unknown = adding_unknown(adding)
    return summaries(topics, adding), [unknown] if unknown else []


def summaries(topics: Iterable[TopicState], adding: Adding) -> list[TopicSummary]:
    """Return one row per topic, in order. adding: replicas that reassignments add. Pure."""
    return [
        TopicSummary(
            topic=topic.name,
            partition_count=len(topic.partitions),
            replication_factor=topic.replication_factor,
            internal=hidden(topic),
            under_replicated_partitions=sum(under_replicated(p, adding_of(p, adding)) for p in topic.partitions),
            offline_partitions=sum(p.offline for p in topic.partitions),
        )
        for topic in topics
    ]


def filter_problems(
    client: ClusterClient, state: ClusterState, rows: Sequence[TopicSummary], problems: Collection[PartitionProblem]
) -> tuple[list[TopicSummary], list[str]]:
    """Return the rows with a partition that has any of `problems`, and why this is unknown for others.

    Configs are only requested if needed.
    """
    by_configs = NEEDS_CONFIGS.intersection(problems)
    described = describe_chosen(client, state, [state.topics[row.topic] for row in rows]) if by_configs else []
    names = {topic.topic for topic in described if with_problems(topic, by_configs).partitions}
    matching = [
        row
        for row in rows
        if row.topic in names
        or (row.under_replicated_partitions and PartitionProblem.UNDER_REPLICATED in problems)
        or (row.offline_partitions and PartitionProblem.UNAVAILABLE in problems)
    ]
    return matching, [topic.configs_error for topic in described if topic.configs_error]


def with_sizes(
    client: ClusterClient, state: ClusterState, rows: Sequence[TopicSummary]
) -> tuple[list[TopicSummary], list[str]]:
    """Return the rows with sizes on disk, and why some are unknown."""
    from kctl.topics.sizes import fetch_sizes

    sizes = fetch_sizes(client, state, [state.topics[row.topic] for row in rows])
    sized = []
    for row in rows:
        size = sizes.topic(state.topics[row.topic])
        sized.append(replace(row, size_bytes=size.bytes, leader_size_bytes=size.leader_bytes))
    return sized, sizes.failures


def with_messages(
    client: ClusterClient, state: ClusterState, rows: Sequence[TopicSummary]
) -> tuple[list[TopicSummary], list[str]]:
    """Return the rows with numbers of messages, and why some are unknown."""
    from kctl.cluster.log_offsets import read_log_offsets
    from kctl.topics.offsets import failure_lines

    partitions = [p.tp for row in rows for p in state.topics[row.topic].partitions]
    logs, _, failed = read_log_offsets(client, partitions, state=state)
    counted_rows = []
    for row in rows:
        spans = [logs.get(p.tp) for p in state.topics[row.topic].partitions]
        counts = [span.end - span.start for span in spans if span is not None]
        counted_rows.append(replace(row, messages=sum(counts) if len(counts) == len(spans) else None))
    return counted_rows, failure_lines(failed)
