"""Topics as they are: a line each, or every partition and config."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.errors import ConnectionFailed, KctlError, NotFound
from kctl.model import ClusterState, PartitionState, TopicPartition, TopicState
from kctl.topics.configs import ConfigEntry, fetch_topic_configs
from kctl.topics.names import check_name, is_internal
from kctl.topics.reassignments import Moving, ongoing_reassignments

if TYPE_CHECKING:
    from kctl.client import ClusterClient

_MIN_ISR = "min.insync.replicas"
_AT_REST = Moving((), ())


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in a list. replication_factor is the largest where partitions differ."""

    name: str
    partitions: int
    replication_factor: int
    internal: bool
    under_replicated_partitions: int
    offline_partitions: int


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition. leader is None when there is none.

    under_replicated: fewer in sync than assigned. under_min_isr: fewer in sync than min.insync.replicas (or than
    there are replicas, if that is less): acks=all is refused; None when the config could not be read.
    adding_replicas, removing_replicas: of a reassignment; None when the controller did not tell.
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
    offline: bool


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic. configs: those that differ from Kafka's defaults; configs_error: why they could not be read."""

    name: str
    topic_id: str | None
    internal: bool
    partition_count: int
    replication_factor: int
    configs: tuple[ConfigEntry, ...]
    configs_error: str | None
    partitions: tuple[PartitionDescription, ...]


def list_topics(client: ClusterClient, *, internal: bool = False) -> list[TopicSummary]:
    """All topics by name; Kafka's own only when `internal`."""
    topics = sorted(client.metadata().topics.values(), key=lambda topic: topic.name)
    return [_summary(topic) for topic in topics if internal or not hidden(topic)]


def hidden(topic: TopicState) -> bool:
    """Kafka's own topic: not for people's lists."""
    return topic.internal or is_internal(topic.name)


def _summary(topic: TopicState) -> TopicSummary:
    return TopicSummary(
        name=topic.name,
        partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        internal=hidden(topic),
        under_replicated_partitions=sum(p.under_replicated for p in topic.partitions),
        offline_partitions=sum(p.offline for p in topic.partitions),
    )


def known_topics(client: ClusterClient, names: Collection[str]) -> ClusterState:
    """The state with exactly these topics. Raises UsageError for impossible names, NotFound for unknown ones."""
    state = client.metadata([check_name(name) for name in names])
    missing = [name for name in dict.fromkeys(names) if name not in state.topics]
    if missing:
        named = ", ".join(missing)
        what = f"topic {named} does not exist" if len(missing) == 1 else f"topics {named} do not exist"
        raise NotFound(what, hint="`kctl topic list` shows the topics")
    return state


def describe_topics(
    client: ClusterClient, names: Collection[str] | None = None, *, internal: bool = False
) -> list[TopicDescription]:
    """The topics named, in that order; None: all of them by name (Kafka's own only when `internal`).

    Raises NotFound when one of the named does not exist.
    """
    if names:
        state = known_topics(client, names)
        chosen = [state.topics[name] for name in dict.fromkeys(names)]
    else:
        state = client.metadata()
        chosen = sorted(state.topics.values(), key=lambda topic: topic.name)
        chosen = [topic for topic in chosen if internal or not hidden(topic)]
    if not chosen:
        return []
    configs = fetch_topic_configs(client, [topic.name for topic in chosen], state.brokers)
    moving = _moving(client) if state.controller_id is not None else None
    return [describe(topic, configs[topic.name], moving) for topic in chosen]


def _moving(client: ClusterClient) -> Mapping[TopicPartition, Moving] | None:
    """What is being reassigned; None when the controller cannot be asked: all else is known without it."""
    try:
        return ongoing_reassignments(client)
    except ConnectionFailed:
        return None


def describe(
    topic: TopicState, configs: list[ConfigEntry] | KctlError, moving: Mapping[TopicPartition, Moving] | None
) -> TopicDescription:
    """Put together what Metadata, DescribeConfigs and ListPartitionReassignments (None: nothing) said of one topic."""
    known = not isinstance(configs, KctlError)
    entries = () if isinstance(configs, KctlError) else tuple(configs)
    least = _min_isr(entries) if known else None
    return TopicDescription(
        name=topic.name,
        topic_id=topic.topic_id,
        internal=hidden(topic),
        partition_count=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=entries,
        configs_error=configs.message if isinstance(configs, KctlError) else None,
        partitions=tuple(
            _partition(p, None if moving is None else moving.get(p.tp, _AT_REST), least) for p in topic.partitions
        ),
    )


def _min_isr(entries: tuple[ConfigEntry, ...]) -> int:
    value = next((entry.value for entry in entries if entry.name == _MIN_ISR), None)
    return int(value) if value and value.isdigit() else 1


def _partition(state: PartitionState, moving: Moving | None, min_isr: int | None) -> PartitionDescription:
    effective = None if min_isr is None else min(min_isr, len(state.replicas))
    return PartitionDescription(
        partition=state.partition,
        leader=None if state.offline else state.leader,
        preferred_leader=state.preferred_leader,
        replicas=state.replicas,
        isr=state.isr,
        offline_replicas=state.offline_replicas,
        adding_replicas=None if moving is None else moving.adding,
        removing_replicas=None if moving is None else moving.removing,
        under_replicated=state.under_replicated,
        under_min_isr=None if effective is None else len(state.isr) < effective,
        offline=state.offline,
    )
