"""What a streams group (KIP-1071) runs: a topology of sub-topologies, and each member's tasks of them.

A task is a sub-topology and a partition number: it reads that partition of each of the sub-topology's source topics,
where the topic has it. The field names are the JSON keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kctl.model import TopicPartition


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that the brokers make for a topology. partition_count, replication_factor: None where it leaves them
    open."""

    topic: str
    partition_count: int | None
    replication_factor: int | None
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Subtopology:
    """source_topics: what it reads, expressions resolved; repartition_source_topics: read, too, and written by another
    one."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """subtopologies: None as long as source topics are missing or have unfitting partitions."""

    epoch: int
    subtopologies: tuple[Subtopology, ...] | None


@dataclass(frozen=True, slots=True)
class SubtopologyTasks:
    """A member's tasks of one sub-topology."""

    subtopology_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tasks:
    """What a member processes, keeps a copy of the state of, and builds a copy for before it takes over."""

    active: tuple[SubtopologyTasks, ...]
    standby: tuple[SubtopologyTasks, ...]
    warmup: tuple[SubtopologyTasks, ...]


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """What members of streams groups have beside what all have. process_id: of the instance, which may have several
    members. user_endpoint: «host:port» for interactive queries. target_tasks: those that it shall have."""

    topology_epoch: int
    process_id: str
    user_endpoint: str | None
    client_tags: Mapping[str, str]
    tasks: Tasks
    target_tasks: Tasks


def sources(topology: Topology | None, member: StreamsMember) -> tuple[TopicPartition, ...]:
    """The partitions that a member's active tasks read; some may not exist, where topics differ in their number."""
    read = {
        each.subtopology_id: (*each.source_topics, *(internal.topic for internal in each.repartition_source_topics))
        for each in (topology.subtopologies if topology else None) or ()
    }
    return tuple(
        sorted(
            TopicPartition(topic, number)
            for task in member.tasks.active
            for topic in read.get(task.subtopology_id, ())
            for number in task.partitions
        )
    )


def topology_of(row: Any) -> Topology | None:
    """That of a group of a StreamsGroupDescribe answer."""
    if row is None:
        return None
    found = row.subtopologies
    return Topology(row.epoch, None if found is None else tuple(map(_subtopology, found)))


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
    """That of a member of a StreamsGroupDescribe answer."""
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
    return Tasks(_of_each(row.active_tasks), _of_each(row.standby_tasks), _of_each(row.warmup_tasks))


def _of_each(rows: Iterable[Any]) -> tuple[SubtopologyTasks, ...]:
    found = (SubtopologyTasks(row.subtopology_id, tuple(sorted(row.partitions))) for row in rows)
    return tuple(sorted(found, key=lambda tasks: tasks.subtopology_id))
