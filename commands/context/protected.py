"""The cluster id of a protected context."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from kctl.commands.terminal import output

if TYPE_CHECKING:
    from kctl.contexts.context import Context


def learn_protected(name: str, entry: Context) -> Context:
    """Read the cluster id of a protected context, so that the cluster is protected at its other addresses too."""
    from kctl.deploy.protection import look_at, remember

    if not entry.protected or entry.cluster_id is not None or not entry.bootstrap_servers:
        return entry
    look = look_at(name)
    if look.problem is not None:
        output.warn(
            f"context {name}: cannot read its cluster id: {look.problem}; until `kctl context test {name}` succeeds,"
            f" changes to other clusters may ask for the name {name}"
        )
    elif look.cluster_id is not None and remember(name, look.cluster_id):
        return dataclasses.replace(entry, cluster_id=look.cluster_id)
    return entry
