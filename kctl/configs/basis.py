"""The facts behind planned config changes: the values that they replace. See kctl.cluster.unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kctl.cluster.unchanged import Basis, ObjectFacts
from kctl.configs.change import ConfigPlan
from kctl.errors import KctlError, NotFound

if TYPE_CHECKING:
    from kctl.cluster.config_resources import Resource
    from kctl.protocol.client import ClusterClient

ConfigValue = tuple["str | None", "str | None"]  # a value, and where it is set


def of_changes(client: ClusterClient, plan: ConfigPlan) -> Basis:
    """Return the values that a plan replaces, and where they are set."""
    changed = {edit.name for edit in plan.edits}
    # A key may be written as a synonym; brokers return the canonical name.
    values_shown = {
        plan.before[row.name].name: (row.before, row.before_source) for row in plan.rows if row.name in changed
    }
    return values(client, {plan.resource: values_shown})


def values(client: ClusterClient, configs: Mapping[Resource, Mapping[str, ConfigValue]]) -> Basis:
    """Return a basis of config values: resource → name → the value and where it is set.

    For a sensitive config, only the source is compared.
    """
    from kctl.configs.describe import describe_each

    def read_facts() -> ObjectFacts:
        facts: dict[str, dict[str, object]] = {}
        names = {name for entries in configs.values() for name in entries}
        for resource, entries in (describe_each(client, list(configs), names=names) if configs else {}).items():
            if isinstance(entries, NotFound):
                continue
            if isinstance(entries, KctlError):
                raise entries
            now = {c.name: (c.value, c.source.value if c.source else None) for c in entries}
            facts |= facts_of(resource, {name: now.get(name, (None, None)) for name in configs[resource]})
        return facts

    def facts_of(resource: Resource, entries: Mapping[str, ConfigValue]) -> dict[str, dict[str, object]]:
        return {f"{name} of {resource}": {"value": value, "place": source} for name, (value, source) in entries.items()}

    before: dict[str, dict[str, object]] = {}
    for resource, entries in configs.items():
        before |= facts_of(resource, entries)
    return Basis(before, read_facts)
