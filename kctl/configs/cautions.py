"""What a change of configs brings with it that is not seen in the values: data lost, writes refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kctl.base.config_values import comparable, items, same
from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.configs.change import ChangedConfig, Plan

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_LIMITS = {
    "retention.ms": "older records are deleted",
    "retention.bytes": "what is more than that in a partition is deleted, oldest first",
    "log.retention.ms": "older records are deleted in every topic without a retention.ms of its own",
    "log.retention.bytes": "what a partition has more is deleted, in every topic without a limit of its own",
    "local.retention.ms": "older segments are kept only in remote storage",
    "local.retention.bytes": "what is more than that is kept only in remote storage",
}
_MIN_ISR = "min.insync.replicas"


def cautions(client: ClusterClient, plan: Plan) -> list[str]:
    """What to know before these changes are made; reads the topic's replication factor where that decides."""
    factor = None
    if plan.resource.kind == "topic" and any(row.name == _MIN_ISR for row in plan.rows):
        topic = client.metadata([plan.resource.name]).topics.get(plan.resource.name)
        factor = min((len(p.replicas) for p in topic.partitions), default=None) if topic else None
    found = (caution_of(row, factor) for row in plan.rows if row.result is not ItemResult.UNCHANGED)
    return [caution for caution in found if caution]


def caution_of(row: ChangedConfig, replication_factor: int | None = None) -> str | None:
    """What one change brings with it; None: nothing that has to be said. Pure."""
    after = row.after or ""
    if row.name in _LIMITS and _shrinks(row.before, row.after):
        return f"{row.name} gets smaller: {_LIMITS[row.name]}"
    if row.name in _LIMITS and row.result is ItemResult.WOULD_UNSET and row.before is not None and row.after is None:
        # Brokers leave the values out that hold behind a topic's own, when these are of log.retention.hours.
        return f"{row.name} falls back to a value that brokers do not tell; if it is less, {_LIMITS[row.name]}"
    if row.name in _POLICIES and row.before is not None and row.after is not None:
        return _policy_caution(row.name, row.before, after)
    least = comparable("int", after) if row.name == _MIN_ISR else None
    if isinstance(least, int) and replication_factor is not None:
        if least > replication_factor:
            # Partition.effectiveMinIsr, of KIP-966: no more are asked for than there are
            return (
                f"{_MIN_ISR}={least}, with {counted(replication_factor, 'replica')}, counts as {replication_factor} "
                "since Kafka 3.7: with one broker down acks=all is refused; before 3.7 it is always refused"
            )
        if least == replication_factor > 1:
            return f"{_MIN_ISR}={least} equals the number of replicas: with one broker down, acks=all is refused"
    unclean = row.name == "unclean.leader.election.enable" and same("boolean", after, "true")
    if unclean and not same("boolean", row.before, after):
        return "a replica that is not in sync may become leader: acknowledged records can be lost"
    return None


_POLICIES: Mapping[str, str] = {"cleanup.policy": "", "log.cleanup.policy": "in topics without a policy of their own"}


def _policy_caution(name: str, before: str, after: str) -> str | None:
    was, will = set(items(before)), set(items(after))
    where = f" {_POLICIES[name]}" if _POLICIES[name] else ""
    if "compact" in will - was:
        return f"{name}={after}: of each key only the last record is kept{where}; records without a key are refused"
    if "delete" in will - was:
        return f"{name}={after}: records older than the retention are deleted{where}"
    return None


def _shrinks(before: str | None, after: str | None) -> bool:
    """Limits as numbers; -1 is none."""
    try:
        old, new = int(before or ""), int(after or "")
    except ValueError:
        return False
    return new >= 0 and (old < 0 or new < old)
