"""What a cluster was like at a moment, beside its commits: groups, owners, logs, configs, as the newest passes tell.

The rows of several passes are looked at, because the last one may lack something: of each key the newest counts. What
the newest row of a group says of its members holds for all owners: older ones have none any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kctl.lag.deletion import Limits
from kctl.lag.report import Owner
from kctl.snapshots import schema

Row = Mapping[str, Any]


class TopicPartitionLog(NamedTuple):
    """Of the leader's replica; None: not known. oldest_timestamp_ms: of its first record."""

    last_stable_offset: int | None = None
    oldest_timestamp_ms: int | None = None
    size_bytes: int | None = None


@dataclass
class Moment:
    """states: of groups, as brokers say. owners: by group, topic, partition. owned: topics that a group's members have.

    logs: by topic and partition. limits: by topic.
    """

    states: dict[str, str] = field(default_factory=dict)
    owners: dict[tuple[str, str, int], Owner] = field(default_factory=dict)
    owned: set[tuple[str, str]] = field(default_factory=set)
    logs: dict[tuple[str, int], TopicPartitionLog] = field(default_factory=dict)
    limits: dict[str, Limits] = field(default_factory=dict)


TABLES = (schema.GROUPS, schema.OWNERS, schema.LOGS, schema.REPLICAS, schema.CONFIGS)
COLUMNS: dict[str, tuple[str, ...]] = {
    schema.GROUPS: ("at_ms", "group", "state"),
    schema.OWNERS: ("at_ms", "group", "topic", "partition", "client_id", "host"),
    schema.LOGS: ("at_ms", "topic", "partition", "leader", "last_stable_offset", "oldest_timestamp_ms"),
    schema.REPLICAS: ("at_ms", "broker", "topic", "partition", "size_bytes", "future"),
    schema.CONFIGS: ("at_ms", "topic", "cleanup_policy", "retention_ms", "retention_bytes"),
}


def moment_of(rows: Mapping[str, Iterable[Row]]) -> Moment:
    """The moment that rows of TABLES tell of, with at least the columns COLUMNS, in any order."""
    groups = _newest(rows.get(schema.GROUPS, ()), ("group",))
    at = {key[0]: row["at_ms"] for key, row in groups.items()}
    owners = {
        (str(group), str(topic), int(partition)): Owner(row["client_id"], row["host"])
        for (group, topic, partition), row in _newest(
            rows.get(schema.OWNERS, ()), ("group", "topic", "partition")
        ).items()
        if row["at_ms"] >= at.get(group, 0)
    }
    return Moment(
        states={key[0]: row["state"] for key, row in groups.items()},
        owners=owners,
        owned={(group, topic) for group, topic, _ in owners},
        logs=_logs(rows),
        limits={
            key[0]: Limits(row["cleanup_policy"], row["retention_ms"], row["retention_bytes"])
            for key, row in _newest(rows.get(schema.CONFIGS, ()), ("topic",)).items()
        },
    )


def _logs(rows: Mapping[str, Iterable[Row]]) -> dict[tuple[str, int], TopicPartitionLog]:
    sizes = {
        key: row["size_bytes"]
        for key, row in _newest(_present(rows.get(schema.REPLICAS, ())), ("topic", "partition", "broker")).items()
    }
    return {
        (topic, partition): TopicPartitionLog(
            row["last_stable_offset"], row["oldest_timestamp_ms"], sizes.get((topic, partition, row["leader"]))
        )
        for (topic, partition), row in _newest(rows.get(schema.LOGS, ()), ("topic", "partition")).items()
    }


def _present(replicas: Iterable[Row]) -> Iterator[Row]:
    return (row for row in replicas if not row["future"])


def _newest(rows: Iterable[Row], key: tuple[str, ...]) -> dict[tuple[Any, ...], Row]:
    """The newest row of each key."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        name = tuple(row[column] for column in key)
        if name not in found or found[name]["at_ms"] <= row["at_ms"]:
            found[name] = row
    return found
