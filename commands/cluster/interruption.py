"""Confirmation before an interruption of a cluster on this machine."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from kctl.commands.terminal.invocation import Invocation
from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.protocol.target import Target


def confirm_interruption(inv: Invocation, name: str, question: str) -> None:
    """Ask before an interruption. For a protected cluster, ask for the name of its context."""
    inv.confirm(question, target=own_target(name))


def own_target(name: str) -> Target:
    """Return the target of a cluster on this machine, with its servers and id even while the cluster is down.

    If the cluster's description is damaged, the target has only the servers of its context.
    """
    from kctl.contexts.choose import list_contexts
    from kctl.deploy import health, lifecycle
    from kctl.protocol.target import Target

    target, cluster_id = Target(name, ()), None
    with suppress(KctlError):
        target = health.target_of(lifecycle.load_cluster(name))
        cluster_id = lifecycle.own_cluster_id(name)
    context = list_contexts().get(name)
    return replace(
        target,
        bootstrap_servers=target.bootstrap_servers or (context.bootstrap_servers if context is not None else ()),
        protected=context is not None and context.protected,
        cluster_id=cluster_id,
        advertised=target.bootstrap_servers if cluster_id is not None else (),
    )
