"""What a change of configs was planned from: the values that it replaces. See kctl.unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.configs.change import Plan
from kctl.unchanged import Basis, values

if TYPE_CHECKING:
    from kctl.client import ClusterClient


def of_changes(client: ClusterClient, plan: Plan) -> Basis:
    """The values that a plan replaces, and where they are set."""
    changed = {edit.name for edit in plan.edits}
    # A key may be written by its other name; brokers tell it by its own.
    shown = {plan.before[row.name].name: (row.before, row.before_source) for row in plan.rows if row.name in changed}
    return values(client, {plan.resource: shown})
