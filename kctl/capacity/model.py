"""The values of a plan: what it is made of, each line of its arithmetic, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from kctl.capacity.fields import Inputs


@dataclass(frozen=True, slots=True)
class Workload:
    """A topic's inputs, complete (kctl.capacity.workload), and what it has now, where it was seen in a cluster."""

    topic: str
    inputs: Inputs
    present_partitions: int | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """One line. source: given, default, measured, seen (in the cluster) or computed; a computed one has the formula, of
    other terms' names, and the same with their numbers. unit: of the value."""

    name: str
    value: int | float
    unit: str
    source: str
    formula: str | None = None
    numbers: str | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """The least number of something, and why. binds: no other one asks for more."""

    name: str
    least: int
    binds: bool


@dataclass(frozen=True, slots=True)
class Losses:
    """How many brokers more may be lost when so many are down already and the others in sync: writes_survive with
    acks=all, data_survive for what was acknowledged so. −1: it is lost, or stands still, as it is."""

    brokers_down: int
    writes_survive: int
    data_survive: int


@dataclass(frozen=True, slots=True)
class Caution:
    """What to know about a plan. topic: None when it is of the whole."""

    code: str
    message: str
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic in a plan. partition_bytes: the most that one replica holds; disk_bytes: of all replicas.

    oldest_record_ms: how old a record may be before it is deleted; None where time deletes nothing.
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
    """What a load needs. bounds: of the brokers; disk_bytes: of all replicas of all topics."""

    broker_count: int
    partition_count: int
    replica_count: int
    disk_bytes: int
    bounds: tuple[Bound, ...]
    terms: tuple[Term, ...]
    topic_plans: tuple[TopicPlan, ...]
    cautions: tuple[Caution, ...]
