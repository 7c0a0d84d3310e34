"""The values of a capacity plan: workloads, lines of arithmetic, and results."""

from __future__ import annotations

from dataclasses import dataclass

from kctl.capacity.fields import Inputs


@dataclass(frozen=True, slots=True)
class Workload:
    """The complete inputs of a topic (see kctl.capacity.workload).

    current_partitions: current number of partitions; None if the topic was not read from a cluster.
    """

    topic: str
    inputs: Inputs
    current_partitions: int | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """A line of arithmetic.

    source: given, default, measured, seen (in the cluster) or computed. formula, numbers: of a computed term, the
    formula with the names of other terms, and the same formula with their values. unit: of the value.
    """

    name: str
    value: int | float
    unit: str
    source: str
    formula: str | None = None
    numbers: str | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A minimum number of brokers or partitions, and its reason. binds: True for the largest minimum."""

    name: str
    least: int
    binds: bool


@dataclass(frozen=True, slots=True)
class Losses:
    """The number of further broker failures that writes with acks=all and acknowledged data survive.

    brokers_down: brokers that are already down; the others are in sync. -1: writes are already stopped, or data is
    lost.
    """

    brokers_down: int
    writes_survive: int
    data_survive: int


@dataclass(frozen=True, slots=True)
class PlanWarning:
    """A warning about a plan. topic: None if the warning is about the cluster."""

    code: str
    message: str
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The plan for one topic. partition_bytes: maximum size of one replica. disk_bytes: size of all replicas.

    oldest_record_ms: maximum age of a record before it is deleted; None without time-based retention.
    """

    topic: str
    partition_count: int
    replication_factor: int
    min_insync_replicas: int
    partition_bytes: int
    disk_bytes: int
    oldest_record_ms: int | None
    bounds: tuple[Bound, ...]
    losses: tuple[Losses, ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """The plan for a cluster. bounds: of the brokers. disk_bytes: of all replicas of all topics."""

    broker_count: int
    partition_count: int
    replica_count: int
    disk_bytes: int
    bounds: tuple[Bound, ...]
    terms: tuple[Term, ...]
    topic_plans: tuple[TopicPlan, ...]
    cautions: tuple[PlanWarning, ...]
