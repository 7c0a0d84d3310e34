"""The state of a cluster at a time, without its commits: groups, owners, logs and configs from the newest passes.

Rows of several passes are combined, because the last one may be incomplete: the newest row of each key counts. If the
newest row of a group has no members, its older owners are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kctl.history.lag.status_rows import Owner
from kctl.history.retention.deletion import Limits
from kctl.history.snapshots import schema

Row = tuple[Any, ...]


class TopicPartitionLog(NamedTuple):
    """The log of the leader's replica; None: unknown. oldest_timestamp_ms: of its first record."""

    last_stable_offset: int | None = None
    oldest_timestamp_ms: int | None = None
    size_bytes: int | None = None


@dataclass
class Moment:
    """The state of a cluster at a time. states: of groups, as reported by brokers. owners: by group, topic, partition.

    owned: groups with the topics that their members own. logs: by topic and partition. limits: by topic.
    """

    states: dict[str, str] = field(default_factory=dict)
    owners: dict[tuple[str, str, int], Owner] = field(default_factory=dict)
    owned: set[tuple[str, str]] = field(default_factory=set)
    logs: dict[tuple[str, int], TopicPartitionLog] = field(default_factory=dict)
    limits: dict[str, Limits] = field(default_factory=dict)


TABLES = (schema.GROUPS, schema.OWNERS, schema.LOGS, schema.REPLICAS, schema.CONFIGS)
COLUMNS: dict[str, tuple[str, ...]] = {  # the time, the key, the rest
    schema.GROUPS: ("at_ms", "group", "state"),
    schema.OWNERS: ("at_ms", "group", "topic", "partition", "client_id", "host"),
    schema.LOGS: ("at_ms", "topic", "partition", "leader", "last_stable_offset", "oldest_timestamp_ms"),
    schema.REPLICAS: ("at_ms", "topic", "partition", "broker", "size_bytes", "future"),
    schema.CONFIGS: ("at_ms", "topic", "cleanup_policy", "retention_ms", "retention_bytes"),
}


def moment_of(rows: Mapping[str, Iterable[Row]]) -> Moment:
    """Return the moment from rows of TABLES, each with the values of COLUMNS, in any order."""
    groups = _newest(rows.get(schema.GROUPS, ()), 1)
    owners = {
        key: Owner(client_id, host)
        for key, (at_ms, *_, client_id, host) in _newest(rows.get(schema.OWNERS, ()), 3).items()
        if key[:1] not in groups or at_ms >= groups[key[:1]][0]
    }
    return Moment(
        states={group: state for _, group, state in groups.values()},
        owners=owners,
        owned={(group, topic) for group, topic, _ in owners},
        logs=_logs(rows),
        limits={topic: Limits(*configs) for _, topic, *configs in _newest(rows.get(schema.CONFIGS, ()), 1).values()},
    )


def _logs(rows: Mapping[str, Iterable[Row]]) -> dict[tuple[str, int], TopicPartitionLog]:
    replicas = (row for row in rows.get(schema.REPLICAS, ()) if not row[-1])
    sizes = {key: size_bytes for key, (*_, size_bytes, _) in _newest(replicas, 3).items()}
    return {
        key: TopicPartitionLog(stable, oldest_ms, sizes.get((*key, leader)))
        for key, (*_, leader, stable, oldest_ms) in _newest(rows.get(schema.LOGS, ()), 2).items()
    }


def _newest(rows: Iterable[Row], key_columns: int) -> dict[tuple[Any, ...], Row]:
    """Return the newest row of each key."""
    result: dict[tuple[Any, ...], Row] = {}
    until = 1 + key_columns
    for row in rows:
        key = row[1:until]
        before = result.get(key)
        if before is None or before[0] <= row[0]:
            result[key] = row
    return result
