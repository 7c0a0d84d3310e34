"""Verifies a plan: each partition at its target, no throttle left, brokers to be emptied are empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.configs.dynamic import Resource, Values
from kctl.errors import ConnectionFailed, NotFound
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.outcome import brokers_left, read_back
from kctl.reassign.run.reached import BrokerLeft, NotReached
from kctl.reassign.run.settings import active_settings, affected_brokers, read_settings, throttle_of
from kctl.reassign.run.throttle import Throttle, restoration

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class ThrottleLeft:
    """A setting that throttles moves of the plan. before: the value before kctl set it; None: unset or unknown."""

    kind: str
    name: str
    setting: str
    value: str | None
    before: str | None


@dataclass(frozen=True, slots=True)
class PlanVerification:
    """Partitions by position, and what remains. complete: nothing remains."""

    complete: bool
    partition_count: int
    reached: int
    in_flight: int
    as_before: int
    elsewhere: int
    failures: list[NotReached]
    throttles_left: list[ThrottleLeft]
    brokers_left: list[BrokerLeft]


def compare_plan(
    client: ClusterClient, rows: Sequence[Reassignment], removed: Sequence[int], throttle: Throttle | None
) -> PlanVerification:
    """Compare a plan with the cluster. throttle: the last one that a run of this plan set; None: unknown.

    Raises what reading raises.
    """
    positions = read_back(client, rows)
    brokers = brokers_left(client, removed)
    left = _of_plan(client, rows) if throttle is None else _of_run(client, throttle)
    return PlanVerification(
        complete=not positions.failures and not left and not brokers,
        partition_count=positions.partition_count,
        reached=positions.reached,
        in_flight=positions.in_flight,
        as_before=positions.as_before,
        elsewhere=positions.elsewhere,
        failures=positions.failures,
        throttles_left=left,
        brokers_left=brokers,
    )


def _read(client: ClusterClient, brokers: Iterable[int], topics: Iterable[str]) -> dict[Resource, Values]:
    """Return the settings, without brokers that do not respond."""
    current, unread = read_settings(client, brokers, topics)
    for error in unread.values():
        if not isinstance(error, (ConnectionFailed, NotFound)):
            raise error
    return current


def _of_run(client: ClusterClient, throttle: Throttle) -> list[ThrottleLeft]:
    """Return settings that a run has set and has not restored."""
    brokers = [int(resource.name) for resource in throttle.set if resource.kind == "broker"]
    current = _read(client, brokers, [resource.name for resource in throttle.set if resource.kind == "topic"])
    changes, _ = restoration(throttle, current)
    return [
        ThrottleLeft(resource.kind, resource.name, name, current[resource].get(name), target)
        for resource, values in sorted(changes.items())
        for name, target in sorted(values.items())
        if current[resource].get(name) != target
    ]


def _of_plan(client: ClusterClient, rows: Sequence[Reassignment]) -> list[ThrottleLeft]:
    """Return rates of the plan's brokers and its entries in the topics' lists, whoever set them.

    Kafka's own tool, or a run with its journal elsewhere, may have left them. Brokers that are down are skipped: they
    move nothing. Raises the KctlError of another resource that cannot be read.
    """
    up = client.metadata(()).brokers
    current = _read(client, affected_brokers(rows, up) & up.keys(), {r.topic for r in rows})
    positions = active_settings(throttle_of(rows, current).set)
    return [ThrottleLeft(row.kind, row.name, row.setting, row.value, None) for row in positions]
