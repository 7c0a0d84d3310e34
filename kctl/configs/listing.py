"""List the groups and client metrics subscriptions that have configs of their own.

ListConfigResources of Kafka 4.1 lists both (KIP-1142); its version 0, since Kafka 3.7, lists subscriptions only
(KIP-714). A group can have configs before it exists, and keeps them when it is deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kctl.cluster.config_resources import RESOURCE_TYPES, Kind, Resource, right_hint
from kctl.configs.describe import describe_each
from kctl.errors import KctlError, NotSupported, UsageError

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

LISTED: tuple[Kind, ...] = ("client-metrics", "group")


@dataclass(frozen=True, slots=True)
class ConfiguredResource:
    """A resource with its own configs. The field names are the JSON keys.

    resource: as written on a command line, e.g. "group/billing". configs: the values that are set on it, by name; None:
    sensitive.
    """

    resource: str
    configs: Mapping[str, str | None]


def parse_kinds(texts: Collection[str]) -> tuple[Kind, ...]:
    """Return the kinds to list (default: all). Raises UsageError."""
    for text in texts:
        if text not in LISTED:
            raise UsageError(
                f"{text!r} is not a kind of resource that can be listed",
                hint=f"use {' or '.join(LISTED)}; for topics, use `kctl topic export`",
            )
    return tuple(kind for kind in LISTED if not texts or kind in texts)


def list_configured(
    client: ClusterClient, kinds: Collection[Kind] = LISTED
) -> tuple[list[ConfiguredResource], list[str]]:
    """Return the resources of these kinds with configs of their own, sorted, and a line for each failure.

    Raises NotSupported if the brokers can list none of the kinds, and the broker's error.
    """
    resources, failures = _listed(client, kinds)
    rows: list[ConfiguredResource] = []
    for resource, configs in describe_each(client, resources).items():
        if isinstance(configs, KctlError):
            failures.append(configs.message)
            continue
        own = {config.name: synonym for config in configs if (synonym := config.own(resource.kind)) is not None}
        if own:  # else: unset since it was listed
            values = {name: synonym.value for name, synonym in own.items()}
            rows.append(ConfiguredResource(resource.path, values))
    return sorted(rows, key=lambda row: row.resource), failures


def _listed(client: ClusterClient, kinds: Collection[Kind]) -> tuple[list[Resource], list[str]]:
    from kafka.protocol.admin import ListConfigResourcesRequest

    types = [RESOURCE_TYPES[kind] for kind in kinds]
    try:
        answer = client.send(ListConfigResourcesRequest(resource_types=types, min_version=1))
    except NotSupported as exc:
        if "client-metrics" not in kinds:
            raise
        answer = client.send(ListConfigResourcesRequest(max_version=0))
        failures = [f"groups are not listed: {exc.message}"] if "group" in kinds else []
        return _resources(answer, [kind for kind in kinds if kind == "client-metrics"]), failures
    return _resources(answer, kinds), []


def _resources(answer: Any, kinds: Collection[Kind]) -> list[Resource]:
    from kctl.protocol.client import error_for

    if answer.error_code:
        hint = right_hint("DescribeConfigs", Resource("client-metrics", ""), answer.error_code)
        raise error_for(answer.error_code, None, subject="resources with configs", hint=hint)
    by_type = {RESOURCE_TYPES[kind]: kind for kind in kinds}
    rows = {(by_type.get(row.resource_type), row.resource_name) for row in answer.config_resources}
    return sorted(Resource(kind, name) for kind, name in rows if kind is not None and name)
