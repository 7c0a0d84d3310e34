"""The value types that every part of kctl shares. Names are Kafka's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kctl.errors import KctlError


class TopicPartition(NamedTuple):
    """A partition of a topic. Sorts by topic, then partition; `str()` returns Kafka's own form, e.g. "orders-3"."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker. host and port: its advertised address on the listener that kctl uses."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of a partition in a Metadata response. leader: -1 if there is none."""

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
        """Return True if fewer replicas are in sync than assigned.

        That includes replicas that a reassignment is still adding; kctl.health.partitions.under_replicated excludes
        them.
        """
        return len(self.isr) < len(self.replicas)

    @property
    def offline(self) -> bool:
        return self.leader < 0


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic and its partitions, ordered by number."""

    name: str
    internal: bool
    topic_id: str | None
    partitions: tuple[PartitionState, ...]

    @property
    def replication_factor(self) -> int:
        """Return the maximum over the partitions.

        Partitions differ only during a reassignment or after manual changes.
        """
        return max((len(p.replicas) for p in self.partitions), default=0)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A Metadata response: brokers by id, topics by name. controller_id: None if there is no controller.

    failed: topics that the broker did not describe, with the error, if the request keeps errors.
    operations: topic → AclOperation codes that the user may perform, if requested and reported.
    """

    cluster_id: str | None
    controller_id: int | None
    brokers: dict[int, Broker]
    topics: dict[str, TopicState]
    failed: dict[str, KctlError] = field(default_factory=dict)
    operations: dict[str, frozenset[int]] = field(default_factory=dict)
