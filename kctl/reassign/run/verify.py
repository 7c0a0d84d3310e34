"""Verify a plan: each partition is at its target, no throttle remains, brokers to be emptied are empty."""

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
    """A remaining throttle of the plan's moves. before: the value before kctl set it; None: unset or unknown."""

    kind: str
    name: str
    setting: str
    value: str | None
    before: str | None


@dataclass(frozen=True, slots=True)
class PlanVerification:
    """The result of `verify`: partitions by position, remaining throttles and brokers. complete: nothing remains."""

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
    """Compare a plan with the cluster. throttle: the last throttle that a run of this plan set; None: unknown.

    Raises the errors of reading.
    """
    positions = read_back(client, rows)
    brokers = brokers_left(client, removed)
    throttles = _left_on_plan(client, rows) if throttle is None else _left_by_run(client, throttle)
    return PlanVerification(
        complete=not positions.failures and not throttles and not brokers,
        partition_count=positions.partition_count,
        reached=positions.reached,
        in_flight=positions.in_flight,
        as_before=positions.as_before,
        elsewhere=positions.elsewhere,
        failures=positions.failures,
        throttles_left=throttles,
        brokers_left=brokers,
    )


def _read_reachable(client: ClusterClient, brokers: Iterable[int], topics: Iterable[str]) -> dict[Resource, Values]:
    """Return the settings, without brokers that do not respond."""
    current, unread = read_settings(client, brokers, topics)
    for error in unread.values():
        if not isinstance(error, (ConnectionFailed, NotFound)):
            raise error
    return current


def _left_by_run(client: ClusterClient, throttle: Throttle) -> list[ThrottleLeft]:
    """Return the settings that a run set and did not restore."""
    brokers = [int(resource.name) for resource in throttle.set if resource.kind == "broker"]
    current = _read_reachable(client, brokers, [resource.name for resource in throttle.set if resource.kind == "topic"])
    changes, _ = restoration(throttle, current)
    return [
        ThrottleLeft(resource.kind, resource.name, name, current[resource].get(name), target)
        for resource, values in sorted(changes.items())
        for name, target in sorted(values.items())
        if current[resource].get(name) != target
    ]


def _left_on_plan(client: ClusterClient, rows: Sequence[Reassignment]) -> list[ThrottleLeft]:
    """Return rates of the plan's brokers and its entries in the topics' lists, from any source.

    Kafka's own tool, or a run with its journal elsewhere, may have left them. Skip brokers that are down: they copy
    nothing. Raises the KctlError of any other unreadable resource.
    """
    live_brokers = client.metadata(()).brokers
    brokers = affected_brokers(rows, live_brokers) & live_brokers.keys()
    current = _read_reachable(client, brokers, {r.topic for r in rows})
    settings = active_settings(throttle_of(rows, current).set)
    return [ThrottleLeft(row.kind, row.name, row.setting, row.value, None) for row in settings]
