"""The few value types that everything shares. Names are Kafka's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kctl.errors import KctlError


class TopicPartition(NamedTuple):
    """Sorts by topic, then partition. `str()` gives Kafka's own «topic-partition»."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker, at the address that it advertises on the listener that was asked."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What the controller last said of a partition (Metadata response). leader is -1 when there is none."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else -1

    @property
    def under_replicated(self) -> bool:
        """Fewer replicas in sync than assigned, those that a reassignment still copies included: whether something is
        wrong says kctl.health.partitions.under_replicated."""
        return len(self.isr) < len(self.replicas)

    @property
    def offline(self) -> bool:
        return self.leader < 0


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic and its partitions in order."""

    name: str
    internal: bool
    topic_id: str | None
    partitions: tuple[PartitionState, ...]

    @property
    def replication_factor(self) -> int:
        """The largest over the partitions: they differ only while a reassignment runs, or by hand."""
        return max((len(p.replicas) for p in self.partitions), default=0)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """One Metadata response: brokers by id, topics by name. controller_id is None when there is none.

    failed: topics that the broker does not describe, with the reason, if the request keeps errors.
    operations: topic → codes of AclOperation that the user may perform, if requested and reported.
    """

    cluster_id: str | None
    controller_id: int | None
    brokers: dict[int, Broker]
    topics: dict[str, TopicState]
    failed: dict[str, KctlError] = field(default_factory=dict)
    operations: dict[str, frozenset[int]] = field(default_factory=dict)
