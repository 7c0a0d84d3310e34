"""Side effects of config changes: data loss, rejected writes, eligible leader replicas that are discarded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kctl.base.config_values import comparable, items, same
from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.cluster.eligible import eligible_if_known
from kctl.configs.change import ChangedConfig, ConfigPlan
from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.model import TopicState
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
    """Return warnings about planned changes; reads the topic's replicas, or those of all topics, if needed."""
    factor, cleared = None, None
    kind, changed = plan.resource.kind, {row.name for row in plan.rows if row.result is not ItemResult.UNCHANGED}
    if _MIN_ISR in changed and kind in {"topic", "brokers"}:
        topics = client.metadata([plan.resource.name] if kind == "topic" else None).topics
        cleared = eligible_caution(client, topics.values())
        if kind == "topic":
            replicas = [len(p.replicas) for topic in topics.values() for p in topic.partitions]
            factor = min(replicas, default=None)
    messages = [caution_of(row, factor) for row in plan.rows if row.result is not ItemResult.UNCHANGED]
    return [message for message in (*messages, cleared) if message]


def eligible_caution(client: ClusterClient, topics: Iterable[TopicState]) -> str | None:
    """Return the warning about a change of min.insync.replicas of these topics; None: no warning.

    The controller then discards the eligible leader replicas of the topics
    (ConfigurationControlManager.createClearElrRecordsAsNeeded). Only under-replicated partitions have any.
    """
    partitions = [p.tp for topic in topics for p in topic.partitions if p.under_replicated]
    eligible = eligible_if_known(client, partitions) if partitions else None
    if eligible is None or isinstance(eligible, KctlError):
        return None
    affected = sorted(tp for tp, each in eligible.items() if each.replicas)
    if not affected:
        return None
    more = f" and {len(affected) - 3:,} more" if len(affected) > 3 else ""
    return (
        f"{_MIN_ISR} is changed: Kafka discards the eligible leader replicas (ELR) of "
        f"{', '.join(map(str, affected[:3]))}{more}; a partition without a leader may then lose records. "
        "Start the brokers that are down first"
    )


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
