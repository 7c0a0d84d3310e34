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

Shown = tuple["str | None", "str | None"]  # a value, and where it is set


def of_changes(client: ClusterClient, plan: ConfigPlan) -> Basis:
    """Return the values that a plan replaces, and where they are set."""
    changed = {edit.name for edit in plan.edits}
    # A key may be written as a synonym; brokers return its own name.
    values_shown = {
        plan.before[row.name].name: (row.before, row.before_source) for row in plan.rows if row.name in changed
    }
    return values(client, {plan.resource: values_shown})


def values(client: ClusterClient, shown: Mapping[Resource, Mapping[str, Shown]]) -> Basis:
    """Return a basis of config values: resource → name → the value and where it is set.

    For a sensitive config, only the source is compared.
    """
    from kctl.configs.describe import describe_each

    def look() -> ObjectFacts:
        facts: dict[str, dict[str, object]] = {}
        names = {name for known in shown.values() for name in known}
        for resource, entries in (describe_each(client, list(shown), names=names) if shown else {}).items():
            if isinstance(entries, NotFound):
                continue
            if isinstance(entries, KctlError):
                raise entries
            now = {c.name: (c.value, c.source.value if c.source else None) for c in entries}
            facts |= facts_of(resource, {name: now.get(name, (None, None)) for name in shown[resource]})
        return facts

    def facts_of(resource: Resource, known: Mapping[str, Shown]) -> dict[str, dict[str, object]]:
        return {f"{name} of {resource}": {"value": value, "place": source} for name, (value, source) in known.items()}

    before: dict[str, dict[str, object]] = {}
    for resource, known in shown.items():
        before |= facts_of(resource, known)
    return Basis(before, look)
