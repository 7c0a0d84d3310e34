"""Warnings about planned changes to topics and configs, shown before the user confirms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kctl.base.text import some_of
from kctl.cluster.topic_configs import MIN_ISR
from kctl.configs.cautions import caution_of, cautions, eligible_caution
from kctl.configs.change import ConfigPlan
from kctl.model import ClusterState
from kctl.topics.alter import ORDER_IS_LOST, AlteredTopic
from kctl.topics.retention_loss import loss_warnings

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def alter_warnings(client: ClusterClient, rows: Sequence[AlteredTopic], state: ClusterState) -> Iterator[str]:
    """Yield warnings about planned changes to topics. state: has the topics."""
    growing = [row.topic for row in rows if row.partition_count_after > row.partition_count_before]
    if growing:
        yield f"{some_of(growing)}: {ORDER_IS_LOST}"
    for row in rows:
        factor = min((len(p.replicas) for p in state.topics[row.topic].partitions), default=None)
        for config in row.config_changes:
            caution = caution_of(config, factor) if config.result.planned else None
            if caution:
                yield f"{row.topic}: {caution}"
    of_min_isr = [row.topic for row in rows if any(c.name == MIN_ISR and c.result.planned for c in row.config_changes)]
    cleared = eligible_caution(client, [state.topics[name] for name in of_min_isr])
    if cleared:
        yield cleared
    yield from loss_warnings(client, {row.topic: row.config_changes for row in rows}, state=state)


def config_warnings(client: ClusterClient, plan: ConfigPlan) -> Iterator[str]:
    """Yield warnings about planned changes to the configs of a resource."""
    if plan.edits:
        yield from cautions(client, plan)
    if plan.resource.kind == "topic":
        yield from loss_warnings(client, {plan.resource.name: plan.rows})
