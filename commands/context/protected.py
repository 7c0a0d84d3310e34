"""The cluster id of a protected context."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from kctl.commands.terminal import output

if TYPE_CHECKING:
    from kctl.contexts.context import Context


def learn_protected(name: str, entry: Context) -> Context:
    """Store the cluster id of a protected context, so that the cluster is protected under all its addresses."""
    from kctl.deploy.protection import probe, remember

    if not entry.protected or entry.cluster_id is not None or not entry.bootstrap_servers:
        return entry
    lookup = probe(name)
    if lookup.problem is not None:
        output.warn(
            f"context {name}: cannot read the cluster id: {lookup.problem}; until `kctl context test {name}` succeeds,"
            f" changes to other clusters may require typing the name {name}"
        )
    elif lookup.cluster_id is not None and remember(name, lookup.cluster_id):
        return dataclasses.replace(entry, cluster_id=lookup.cluster_id)
    return entry
