"""Side effects of config changes: data loss, rejected writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kctl.base.config_values import comparable, items, same
from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.configs.change import ChangedConfig, ConfigPlan

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_LIMITS = {
    "retention.ms": "records older than the new limit are deleted",
    "retention.bytes": "the oldest records of a partition above this size are deleted",
    "log.retention.ms": "records older than the new limit are deleted in every topic without its own retention.ms",
    "log.retention.bytes": "in topics without their own limit, the oldest records above this size are deleted",
    "local.retention.ms": "older segments are kept only in remote storage",
    "local.retention.bytes": "segments above this size are kept only in remote storage",
}
_MIN_ISR = "min.insync.replicas"


def cautions(client: ClusterClient, plan: ConfigPlan) -> list[str]:
    """Return warnings about planned changes; reads the topic's replication factor if needed."""
    factor = None
    if plan.resource.kind == "topic" and any(row.name == _MIN_ISR for row in plan.rows):
        topic = client.metadata([plan.resource.name]).topics.get(plan.resource.name)
        factor = min((len(p.replicas) for p in topic.partitions), default=None) if topic else None
    messages = (caution_of(row, factor) for row in plan.rows if row.result is not ItemResult.UNCHANGED)
    return [message for message in messages if message]


def caution_of(row: ChangedConfig, replication_factor: int | None = None) -> str | None:
    """Return the warning about one change; None: no warning. Pure."""
    after = row.after or ""
    if row.name in _LIMITS and is_lowered(row.before, row.after):
        return f"{row.name} is lowered: {_LIMITS[row.name]}"
    if row.name in _LIMITS and row.result is ItemResult.WOULD_UNSET and row.before is not None and row.after is None:
        # Brokers do not report the inherited value if it comes from log.retention.hours.
        return f"{row.name} falls back to a value that brokers do not report; if it is lower, {_LIMITS[row.name]}"
    if row.name in _POLICIES and row.before is not None and row.after is not None:
        return _policy_caution(row.name, row.before, after)
    min_isr = comparable("int", after) if row.name == _MIN_ISR else None
    if isinstance(min_isr, int) and replication_factor is not None:
        if min_isr > replication_factor:
            # Partition.effectiveMinIsr (KIP-966): at most the number of replicas
            return (
                f"{_MIN_ISR}={min_isr}, with {counted(replication_factor, 'replica')}, counts as {replication_factor} "
                "since Kafka 3.7: with one broker down, acks=all is rejected; before 3.7 it is always rejected"
            )
        if min_isr == replication_factor > 1:
            return f"{_MIN_ISR}={min_isr} equals the number of replicas: with one broker down, acks=all is rejected"
    unclean = row.name == "unclean.leader.election.enable" and same("boolean", after, "true")
    if unclean and not same("boolean", row.before, after):
        return "a replica that is not in sync may become leader: acknowledged records can be lost"
    return None


_POLICIES: Mapping[str, str] = {"cleanup.policy": "", "log.cleanup.policy": "in topics without their own policy"}


def _policy_caution(name: str, before: str, after: str) -> str | None:
    old, new = set(items(before)), set(items(after))
    scope = f" {_POLICIES[name]}" if _POLICIES[name] else ""
    if "compact" in new - old:
        return f"{name}={after}: only the last record of each key is kept{scope}; records without a key are rejected"
    if "delete" in new - old:
        return f"{name}={after}: records older than the retention are deleted{scope}"
    return None


def is_lowered(before: str | None, after: str | None) -> bool:
    """Return True if a limit is lowered; -1 means no limit."""
    try:
        old, new = int(before or ""), int(after or "")
    except ValueError:
        return False
    return new >= 0 and (old < 0 or new < old)
