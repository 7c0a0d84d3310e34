"""The facts behind planned config changes: the values that they replace. See kctl.unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.configs.change import Plan
from kctl.unchanged import Basis, values

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def of_changes(client: ClusterClient, plan: Plan) -> Basis:
    """Return the values that a plan replaces, and where they are set."""
    changed = {edit.name for edit in plan.edits}
    # A key may be written as a synonym; brokers return its own name.
    shown = {plan.before[row.name].name: (row.before, row.before_source) for row in plan.rows if row.name in changed}
    return values(client, {plan.resource: shown})
