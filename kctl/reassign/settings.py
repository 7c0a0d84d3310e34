"""Which throttles of replication are set, in the whole cluster or on what a plan concerns, whoever has set them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.dynamic_configs import Resource, Values, try_read_dynamic
from kctl.errors import KctlError, NotFound
from kctl.reassign.throttle import NAMES

if TYPE_CHECKING:
    from kctl.client import ClusterClient


@dataclass(frozen=True, slots=True)
class ThrottleSetting:
    """A throttle that is set. kind: «topic» or «broker». value: bytes a second, or «partition:broker,…»."""

    kind: str
    name: str
    setting: str
    value: str


def read_settings(
    client: ClusterClient, brokers: Iterable[int], topics: Iterable[str]
) -> tuple[dict[Resource, Values], dict[Resource, KctlError]]:
    """What is set on each, and what could not be read; topics that are gone left out.

    Raises what finding the brokers raises.
    """
    asked = [*map(Resource.broker, brokers), *map(Resource.topic, topics)]
    found: dict[Resource, Values] = {}
    failed: dict[Resource, KctlError] = {}
    for resource, values in try_read_dynamic(client, asked, NAMES).items():
        if not isinstance(values, KctlError):
            found[resource] = values
        elif not (resource.kind == "topic" and isinstance(values, NotFound)):
            failed[resource] = values
    return found, failed


def set_ones(current: Mapping[Resource, Mapping[str, str | None]]) -> list[ThrottleSetting]:
    """All that is set among what was read; brokers first, by their ids."""
    return [
        ThrottleSetting(resource.kind, resource.name, name, value)
        for resource, values in sorted(current.items(), key=lambda row: (row[0].kind, len(row[0].name), row[0].name))
        for name, value in sorted(values.items())
        if value is not None
    ]


def in_short(settings: Collection[ThrottleSetting]) -> str:
    """«rates on brokers 1, 2 and lists on 3 topics»."""
    nodes = list(dict.fromkeys(row.name for row in settings if row.kind == "broker"))
    topics = {row.name for row in settings if row.kind == "topic"}
    parts = []
    if nodes:
        more = f" and {len(nodes) - 10:,} more" if len(nodes) > 10 else ""
        parts.append(f"rates on broker{'s' if len(nodes) > 1 else ''} {', '.join(nodes[:10])}{more}")
    if topics:
        parts.append(f"lists on {'1 topic' if len(topics) == 1 else f'{len(topics):,} topics'}")
    return " and ".join(parts)
