"""The topology of a streams group (KIP-1071), and the tasks of its members.

A task is a sub-topology and a partition number: it reads that partition of each source topic of the sub-topology, if
the topic has it. The field names are the JSON keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kctl.model import TopicPartition


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that brokers create for a topology.

    partition_count, replication_factor: None if the topology leaves them open.
    """

    topic: str
    partition_count: int | None
    replication_factor: int | None
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A sub-topology.

    source_topics: with patterns resolved. repartition_source_topics: written by other sub-topologies.
    """

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """A topology. subtopologies: None while source topics are missing or their partitions do not match."""

    epoch: int
    subtopologies: tuple[Subtopology, ...] | None


@dataclass(frozen=True, slots=True)
class SubtopologyTasks:
    """A member's tasks of one sub-topology."""

    subtopology_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tasks:
    """A member's tasks. standby: it keeps a copy of the state. warmup: it builds a copy before it takes over."""

    active: tuple[SubtopologyTasks, ...]
    standby: tuple[SubtopologyTasks, ...]
    warmup: tuple[SubtopologyTasks, ...]


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """The additional fields of a streams group member.

    process_id: the process that runs the member; it may run several. user_endpoint: "host:port" for interactive
    queries. target_tasks: the target assignment.
    """

    topology_epoch: int
    process_id: str
    user_endpoint: str | None
    client_tags: Mapping[str, str]
    tasks: Tasks
    target_tasks: Tasks


def sources(topology: Topology | None, member: StreamsMember) -> tuple[TopicPartition, ...]:
    """Return the partitions that a member's active tasks read; some may not exist if partition counts differ."""
    source_topics = {
        each.subtopology_id: (*each.source_topics, *(internal.topic for internal in each.repartition_source_topics))
        for each in (topology.subtopologies if topology else None) or ()
    }
    return tuple(
        sorted(
            TopicPartition(topic, number)
            for task in member.tasks.active
            for topic in source_topics.get(task.subtopology_id, ())
            for number in task.partitions
        )
    )


def topology_of(row: Any) -> Topology | None:
    """Return the topology of a group in a StreamsGroupDescribe response."""
    if row is None:
        return None
    subtopologies = row.subtopologies
    return Topology(row.epoch, None if subtopologies is None else tuple(map(_subtopology, subtopologies)))


def _subtopology(row: Any) -> Subtopology:
    return Subtopology(
        subtopology_id=row.subtopology_id,
        source_topics=tuple(sorted(row.source_topics)),
        repartition_source_topics=tuple(map(_topic, row.repartition_source_topics)),
        repartition_sink_topics=tuple(sorted(row.repartition_sink_topics)),
        state_changelog_topics=tuple(map(_topic, row.state_changelog_topics)),
    )


def _topic(row: Any) -> InternalTopic:
    return InternalTopic(row.name, row.partitions or None, row.replication_factor or None, _pairs(row.topic_configs))


def _pairs(rows: Iterable[Any]) -> dict[str, str]:
    return {row.key: row.value for row in rows}


def streams_member(row: Any) -> StreamsMember:
    """Return the streams fields of a member in a StreamsGroupDescribe response."""
    endpoint = row.user_endpoint
    return StreamsMember(
        topology_epoch=row.topology_epoch,
        process_id=row.process_id,
        user_endpoint=None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
        client_tags=_pairs(row.client_tags),
        tasks=_tasks(row.assignment),
        target_tasks=_tasks(row.target_assignment),
    )


def _tasks(row: Any) -> Tasks:
    return Tasks(
        _by_subtopology(row.active_tasks), _by_subtopology(row.standby_tasks), _by_subtopology(row.warmup_tasks)
    )


def _by_subtopology(rows: Iterable[Any]) -> tuple[SubtopologyTasks, ...]:
    tasks = (SubtopologyTasks(row.subtopology_id, tuple(sorted(row.partitions))) for row in rows)
    return tuple(sorted(tasks, key=lambda each: each.subtopology_id))
