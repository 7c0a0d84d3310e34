"""Whether a plan has come true: every partition where it should be, no throttle left, emptied brokers empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.dynamic_configs import Resource
from kctl.reassign.assignment import Reassignment
from kctl.reassign.outcome import BrokerLeft, NotReached, brokers_left, read_back
from kctl.reassign.throttle import EVERY, REPLICAS, Throttle, read_throttles, restoration, split_replicas

if TYPE_CHECKING:
    from kctl.client import ClusterClient


@dataclass(frozen=True, slots=True)
class ThrottleLeft:
    """A setting that throttles moves of the plan. before: what it was before kctl set it, where that is known."""

    kind: str
    name: str
    setting: str
    value: str | None
    before: str | None


@dataclass(frozen=True, slots=True)
class Verification:
    """Partitions by where they stand, and what is left. complete: nothing is."""

    complete: bool
    partitions: int
    reached: int
    in_flight: int
    as_before: int
    elsewhere: int
    failures: list[NotReached]
    throttles_left: list[ThrottleLeft]
    brokers_left: list[BrokerLeft]


def verify(
    client: ClusterClient, rows: Sequence[Reassignment], removed: Sequence[int], throttle: Throttle | None
) -> Verification:
    """Compare a plan with the cluster. throttle: the last one that a run of this plan has set; None: not known.

    Raises what reading raises.
    """
    found = read_back(client, rows)
    brokers = brokers_left(client, removed)
    current = read_throttles(client, rows)
    left = _of_listed_replicas(rows, current) if throttle is None else _of_run(throttle, current)
    return Verification(
        complete=not found.failures and not left and not brokers,
        partitions=found.partitions,
        reached=found.reached,
        in_flight=found.in_flight,
        as_before=found.as_before,
        elsewhere=found.elsewhere,
        failures=found.failures,
        throttles_left=left,
        brokers_left=brokers,
    )


def _of_run(throttle: Throttle, current: Mapping[Resource, Mapping[str, str | None]]) -> list[ThrottleLeft]:
    """Settings that a run has set and that would go back to something else now."""
    changes, _ = restoration(throttle, current)
    return [
        ThrottleLeft(resource.kind, resource.name, name, current[resource].get(name), wanted)
        for resource, values in sorted(changes.items())
        for name, wanted in sorted(values.items())
        if current[resource].get(name) != wanted
    ]


def _of_listed_replicas(
    rows: Sequence[Reassignment], current: Mapping[Resource, Mapping[str, str | None]]
) -> list[ThrottleLeft]:
    """Lists of throttled replicas that name partitions of the plan: what Kafka's own tool leaves, say."""
    planned: dict[str, set[str]] = {}
    for r in rows:
        entries = {f"{r.partition}:{node}" for node in (*r.after, *(r.before or ()))}
        planned.setdefault(r.topic, set()).update(entries)
    left = []
    for resource, values in sorted(current.items()):
        for name in REPLICAS if resource.kind == "topic" else ():
            there = set(split_replicas(values.get(name)))
            if there & (planned.get(resource.name, set()) | {EVERY}):
                left.append(ThrottleLeft(resource.kind, resource.name, name, values.get(name), None))
    return left
