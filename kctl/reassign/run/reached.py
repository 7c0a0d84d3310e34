"""How far the partitions of a plan have come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotReached:
    """A partition that is not where the plan wants it. standing: as kctl.reassign.run.compare.Standing."""

    topic: str
    partition: int
    standing: str
    reason: str


@dataclass(frozen=True, slots=True)
class BrokerLeft:
    """A broker that was to be emptied and is not: partitions that it holds or is about to get.

    without_leader: how many of them have none, so that nothing can be copied from.
    """

    broker: int
    replica_count: int
    partitions: list[str]
    without_leader: int = 0


@dataclass(frozen=True, slots=True)
class Reached:
    """Partitions of a plan by where they stand, and those that are not there."""

    partition_count: int
    reached: int
    in_flight: int
    as_before: int
    elsewhere: int
    failures: list[NotReached]
