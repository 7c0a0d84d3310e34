"""Whether a plan has come true: every partition where it should be, no throttle left, emptied brokers empty."""

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
) -> Verification:
    """Compare a plan with the cluster. throttle: the last one that a run of this plan has set; None: not known.

    Raises what reading raises.
    """
    found = read_back(client, rows)
    brokers = brokers_left(client, removed)
    left = _of_plan(client, rows) if throttle is None else _of_run(client, throttle)
    return Verification(
        complete=not found.failures and not left and not brokers,
        partition_count=found.partition_count,
        reached=found.reached,
        in_flight=found.in_flight,
        as_before=found.as_before,
        elsewhere=found.elsewhere,
        failures=found.failures,
        throttles_left=left,
        brokers_left=brokers,
    )


def _read(client: ClusterClient, brokers: Iterable[int], topics: Iterable[str]) -> dict[Resource, Values]:
    """What is set; without brokers that do not answer."""
    current, unread = read_settings(client, brokers, topics)
    for error in unread.values():
        if not isinstance(error, (ConnectionFailed, NotFound)):
            raise error
    return current


def _of_run(client: ClusterClient, throttle: Throttle) -> list[ThrottleLeft]:
    """Settings that a run has set and that would go back to something else now."""
    brokers = [int(resource.name) for resource in throttle.set if resource.kind == "broker"]
    current = _read(client, brokers, [resource.name for resource in throttle.set if resource.kind == "topic"])
    changes, _ = restoration(throttle, current)
    return [
        ThrottleLeft(resource.kind, resource.name, name, current[resource].get(name), wanted)
        for resource, values in sorted(changes.items())
        for name, wanted in sorted(values.items())
        if current[resource].get(name) != wanted
    ]


def _of_plan(client: ClusterClient, rows: Sequence[Reassignment]) -> list[ThrottleLeft]:
    """Rates of the plan's brokers and its entries in topics' lists: nobody knows who has set them, and what for.

    What Kafka's own tool leaves, or a run whose journal is elsewhere. A broker that is down is passed over: it moves
    nothing. Raises the KctlError of another that cannot be read.
    """
    up = client.metadata(()).brokers
    current = _read(client, affected_brokers(rows, up) & up.keys(), {r.topic for r in rows})
    found = active_settings(throttle_of(rows, current).set)
    return [ThrottleLeft(row.kind, row.name, row.setting, row.value, None) for row in found]
