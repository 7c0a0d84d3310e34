"""Estimates of the data that a lower retention.ms or retention.bytes deletes from topics.

Brokers delete whole segments, so the real figures are lower by up to one segment per replica. After compaction and
with transactions, fewer records exist than offsets.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.config_values import items, same
from kctl.base.text import counted
from kctl.base.units import format_size
from kctl.cluster.config_resources import Resource
from kctl.cluster.log_offsets import LogOffsets, read_log_offsets, read_offsets_at
from kctl.configs.cautions import is_lowered
from kctl.configs.change import ChangedConfig
from kctl.configs.describe import by_name, describe_each
from kctl.configs.model import Config
from kctl.errors import KctlError
from kctl.model import ClusterState, TopicPartition
from kctl.topics.sizes import ReplicaSizes, fetch_sizes

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_MS, _BYTES, _POLICY, _TIERED = "retention.ms", "retention.bytes", "cleanup.policy", "remote.storage.enable"

Changes = Mapping[str, Sequence[ChangedConfig]]  # by topic


@dataclass(frozen=True, slots=True)
class RetainedLog:
    """The log of one partition.

    offsets: None if the leader is unreadable. first_retained: the first offset within the new retention.ms, -1 if
    there is none; None if unreadable or not needed.
    """

    offsets: LogOffsets | None
    first_retained: int | None
    sizes: ReplicaSizes


@dataclass(frozen=True, slots=True)
class RetentionLoss:
    """The estimated loss of a topic.

    known_records, known_bytes: the current contents of the readable partitions. Bytes are the sum of all replicas,
    None if a size is unknown. unknown: the number of unreadable partitions, which are not included.
    """

    records: int
    known_records: int
    bytes: int | None
    known_bytes: int | None
    unknown: int


def loss_warnings(client: ClusterClient, changes: Changes, *, state: ClusterState | None = None) -> list[str]:
    """Return one line for each topic whose retention is lowered. state: current metadata with all of these topics.

    A failure is reported in the lines: an estimate never prevents a change.
    """
    lowered = {topic: limits for topic, rows in changes.items() if (limits := _lowered(rows))}
    if not lowered:
        return []
    try:
        return _estimates(client, lowered, changes, state or client.metadata(lowered))
    except KctlError as exc:
        return [f"the number of deleted records is unknown: {exc.message}"]


def _lowered(rows: Iterable[ChangedConfig]) -> dict[str, int]:
    return {
        row.name: int(row.after or "")
        for row in rows
        if row.result.planned and row.name in {_MS, _BYTES} and is_lowered(row.before, row.after)
    }


def _estimates(
    client: ClusterClient, lowered: Mapping[str, Mapping[str, int]], changes: Changes, state: ClusterState
) -> list[str]:
    reasons = _exceptions(client, lowered, changes)
    topics = [state.topics[name] for name in lowered if name in state.topics and name not in reasons]
    partitions = [p.tp for topic in topics for p in topic.partitions]
    offsets, _, _ = read_log_offsets(client, partitions, state=state)
    retained = _first_retained(client, [tp for tp in partitions if tp in offsets], lowered)
    sizes = fetch_sizes(client, state, topics).by_partition
    lines = [f"{topic}: {reason}" for topic, reason in reasons.items()]
    for topic in topics:
        logs = [RetainedLog(offsets.get(p.tp), retained.get(p.tp), sizes[p.tp]) for p in topic.partitions]
        lines.append(f"{topic.name}: {loss_text(loss_of(logs, lowered[topic.name]))}")
    return lines


def _exceptions(client: ClusterClient, topics: Iterable[str], changes: Changes) -> dict[str, str]:
    """Return why there is no estimate: the topic is only compacted, or part of its log is in remote storage."""
    reasons: dict[str, str] = {}
    resources = [Resource.topic(topic) for topic in topics]
    for resource, configs in describe_each(client, resources, names=(_POLICY, _TIERED)).items():
        current: Mapping[str, Config] = {} if isinstance(configs, KctlError) else by_name(configs)
        values = {name: config.value for name, config in current.items()}
        values |= {row.name: row.after for row in changes[resource.name] if row.result.planned}
        policy = values.get(_POLICY)
        if policy is not None and "delete" not in items(policy):
            reasons[resource.name] = f"with {_POLICY}={policy}, retention deletes no records"
        elif same("boolean", values.get(_TIERED), "true"):
            reasons[resource.name] = "no estimate of the deleted records: part of the log is in remote storage"
    return reasons


def _first_retained(
    client: ClusterClient,
    partitions: Sequence[TopicPartition],
    lowered: Mapping[str, Mapping[str, int]],
) -> dict[TopicPartition, int]:
    by_age: dict[int, list[TopicPartition]] = {}
    for tp in partitions:
        if _MS in lowered[tp.topic]:
            by_age.setdefault(lowered[tp.topic][_MS], []).append(tp)
    now = int(time.time() * 1000)
    first: dict[TopicPartition, int] = {}
    for age_ms, of_age in by_age.items():
        offsets, _, _ = read_offsets_at(client, of_age, max(0, now - age_ms))
        first |= offsets
    return first


def loss_of(logs: Iterable[RetainedLog], limits: Mapping[str, int]) -> RetentionLoss:
    """Return the loss of one topic. limits: the lowered configs. Pure."""
    records = known_records = unknown = 0
    sizes: list[tuple[int, int] | None] = []
    for log in logs:
        share = _deleted_share(log, limits)
        if share is None or log.offsets is None:
            unknown += 1
            continue
        count = log.offsets.end - log.offsets.start
        records, known_records = records + round(share * count), known_records + count
        size = log.sizes.bytes
        sizes.append(None if size is None else (round(share * size), size))
    complete = [size for size in sizes if size is not None]
    if len(complete) < len(sizes):
        return RetentionLoss(records, known_records, None, None, unknown)
    return RetentionLoss(
        records, known_records, sum(deleted for deleted, _ in complete), sum(size for _, size in complete), unknown
    )


def _deleted_share(log: RetainedLog, limits: Mapping[str, int]) -> float | None:
    """Return the share of the log that exceeds a limit, from 0 to 1; None: unknown."""
    if log.offsets is None:
        return None
    shares = [0.0]
    if _MS in limits:
        if log.first_retained is None:
            return None
        count = log.offsets.end - log.offsets.start
        first = log.offsets.end if log.first_retained < 0 else log.first_retained
        shares.append((first - log.offsets.start) / count if count else 0.0)
    if _BYTES in limits:
        size = log.sizes.leader_bytes
        if size is None:
            return None
        shares.append((size - limits[_BYTES]) / size if size else 0.0)
    return min(1.0, max(shares))


def loss_text(loss: RetentionLoss) -> str:
    """Return the estimate as text. Pure."""
    left_out = f"; {counted(loss.unknown, 'partition')} unreadable and not included" if loss.unknown else ""
    if loss.unknown and not loss.known_records:
        return f"no estimate of the deleted records{left_out}"
    if not loss.records and not loss.bytes:
        return f"estimate: no records will be deleted now{left_out}"
    size = "size unknown"
    if loss.bytes is not None and loss.known_bytes is not None:
        size = f"{format_size(loss.bytes)} of {format_size(loss.known_bytes)} on disk, all replicas"
    return f"estimate: {loss.records:,} of {counted(loss.known_records, 'record')} will be deleted ({size}){left_out}"
