"""The configs that are set on a topic itself, for clones and topic files."""

from __future__ import annotations

from collections.abc import Iterable

from kctl.cluster.topic_configs import ConfigEntry, ConfigSource

# Throttles of a reassignment: they contain partitions and brokers, and exist only while it runs.
REASSIGNMENT_THROTTLES = frozenset({"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})


def set_on_topic(entries: Iterable[ConfigEntry]) -> dict[str, str]:
    """Return the configs by name, without those of a running reassignment."""
    topic_entries = (e for e in entries if e.source is ConfigSource.TOPIC and e.name not in REASSIGNMENT_THROTTLES)
    return {entry.name: entry.value or "" for entry in topic_entries}
