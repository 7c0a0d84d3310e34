"""The configs that are set on a topic itself, as copies and files of topics have them."""

from __future__ import annotations

from collections.abc import Iterable

from kctl.cluster.topic_configs import ConfigEntry, ConfigSource

# Throttles of a reassignment: they name partitions and brokers, and come and go with it.
MOVING = frozenset({"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})


def set_on_topic(entries: Iterable[ConfigEntry]) -> dict[str, str]:
    """By name; those of a running reassignment are left out."""
    own = (e for e in entries if e.source is ConfigSource.TOPIC and e.name not in MOVING)
    return {entry.name: entry.value or "" for entry in own}
