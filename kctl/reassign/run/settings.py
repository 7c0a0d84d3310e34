"""The active replication throttles of the cluster or of a plan, from any source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.configs.dynamic import Resource, Values, try_read_dynamic
from kctl.errors import KctlError, NotFound
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.throttle import EVERY, NAMES, RATES, Throttle, split_replicas

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class ThrottleSetting:
    """An active throttle. kind: "topic" or "broker". value: bytes per second, or "partition:broker,…"."""

    kind: str
    name: str
    setting: str
    value: str


def read_settings(
    client: ClusterClient, brokers: Iterable[int], topics: Iterable[str]
) -> tuple[dict[Resource, Values], dict[Resource, KctlError]]:
    """Return the settings of each resource, and the errors; topics that were deleted are omitted.

    Raises the errors of reading the brokers.
    """
    resources = [*map(Resource.broker, brokers), *map(Resource.topic, topics)]
    settings: dict[Resource, Values] = {}
    failed: dict[Resource, KctlError] = {}
    for resource, values in try_read_dynamic(client, resources, NAMES).items():
        if not isinstance(values, KctlError):
            settings[resource] = values
        elif not (resource.kind == "topic" and isinstance(values, NotFound)):
            failed[resource] = values
    return settings, failed


def active_settings(current: Mapping[Resource, Mapping[str, str | None]]) -> list[ThrottleSetting]:
    """Return all settings that have a value; brokers first, by id."""
    return [
        ThrottleSetting(resource.kind, resource.name, name, value)
        for resource, values in sorted(current.items(), key=lambda row: (row[0].kind, len(row[0].name), row[0].name))
        for name, value in sorted(values.items())
        if value is not None
    ]


def summarize_settings(settings: Collection[ThrottleSetting]) -> str:
    """Return e.g. "rates on brokers 1, 2 and lists on 3 topics"."""
    nodes = list(dict.fromkeys(row.name for row in settings if row.kind == "broker"))
    topics = {row.name for row in settings if row.kind == "topic"}
    parts = []
    if nodes:
        more = f" and {len(nodes) - 10:,} more" if len(nodes) > 10 else ""
        parts.append(f"rates on broker{'s' if len(nodes) > 1 else ''} {', '.join(nodes[:10])}{more}")
    if topics:
        parts.append(f"lists on {'1 topic' if len(topics) == 1 else f'{len(topics):,} topics'}")
    return " and ".join(parts)


# --- throttles of a plan --------------------------------------------------------------------------------------------


def affected_brokers(rows: Sequence[Reassignment], brokers: Collection[int]) -> set[int]:
    """Return brokers that may have a rate because of these moves; all `brokers` if the sources are unknown."""
    nodes = {node for r in rows for node in (*r.after, *(r.before or ()))}
    return nodes | set(brokers) if any(r.before is None for r in rows) else nodes


def throttle_of(rows: Sequence[Reassignment], current: Mapping[Resource, Mapping[str, str | None]]) -> Throttle:
    """Return the throttle of these moves: all rates of their brokers, their entries in the topics' lists, "*". Pure.

    current: the settings of the moves' brokers and topics. The values before the plan are unknown: to restore them,
    rates are deleted, and lists keep the entries of other plans.
    """
    entries: dict[str, set[str]] = {}
    for r in rows:
        nodes = (*r.after, *(r.before or ()))
        entries.setdefault(r.topic, {EVERY}).update(f"{r.partition}:{node}" for node in nodes)
    throttle = Throttle()
    for resource, values in current.items():
        for name, value in values.items():
            if value is None:
                continue
            listed = split_replicas(value)
            rest = [] if name in RATES else [e for e in listed if e not in entries.get(resource.name, ())]
            if name in RATES or len(rest) < len(listed):
                throttle.set.setdefault(resource, {})[name] = value
                throttle.before.setdefault(resource, {})[name] = ",".join(rest) or None
    return throttle


def rate_of(throttle: Throttle) -> int | None:
    """Return the highest rate, None if there is none."""
    rates = [int(v) for values in throttle.set.values() for n, v in values.items() if n in RATES and v.isdecimal()]
    return max(rates, default=None)
