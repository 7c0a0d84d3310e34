"""The partitions of a plan by position, and the brokers that are not empty yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotReached:
    """A partition that is not at its target. standing: a value of kctl.reassign.run.compare.PlanPosition."""

    topic: str
    partition: int
    standing: str
    reason: str


@dataclass(frozen=True, slots=True)
class BrokerLeft:
    """A broker to be emptied that still holds replicas. partitions: the partitions that it holds or will receive.

    without_leader: number of these partitions without a leader, which cannot be copied.
    """

    broker: int
    replica_count: int
    partitions: list[str]
    without_leader: int = 0


@dataclass(frozen=True, slots=True)
class PlanPositions:
    """Number of partitions of a plan by position, and those that are not at their target."""

    partition_count: int
    reached: int
    in_flight: int
    as_before: int
    elsewhere: int
    failures: list[NotReached]
