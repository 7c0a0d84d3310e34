"""The facts behind planned topic changes: ids, numbers of partitions, config values. See kctl.cluster.unchanged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.cluster.config_resources import Resource
from kctl.cluster.unchanged import Basis, topics
from kctl.configs.basis import values
from kctl.configs.change import ChangedConfig
from kctl.configs.model import OWN_SOURCE
from kctl.topics.alter import AlteredTopic
from kctl.topics.clone.plan import ClonedTopic
from kctl.topics.delete import DeletedTopic

if TYPE_CHECKING:
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient


def of_altered(client: ClusterClient, state: ClusterState, plan: Iterable[AlteredTopic]) -> Basis:
    """Return the altered topics and the replaced config values. state: from before the plan."""
    to_alter = [row for row in plan if row.result is ItemResult.WOULD_ALTER]
    replaced = {Resource.topic(row.topic): of_configs(row.config_changes) for row in to_alter if row.config_changes}
    return topics(client, [row.topic for row in to_alter], state=state).also(values(client, replaced))


def of_configs(rows: Iterable[ChangedConfig]) -> dict[str, tuple[str | None, str | None]]:
    """Return the replaced values and their sources."""
    return {row.name: (row.before, row.before_source) for row in rows if row.result is not ItemResult.UNCHANGED}


def of_cloned(client: ClusterClient, row: ClonedTopic) -> Basis:
    """Return the configs of the source topic that are copied to its clone."""
    topic_source = OWN_SOURCE["topic"].value
    copied = {name: (value, topic_source) for name, value in row.configs.items()}
    return values(client, {Resource.topic(row.source_topic): copied})


def of_deleted(client: ClusterClient, rows: Iterable[DeletedTopic]) -> Basis:
    """Return the deleted topics, with the ids that they had when the plan was made."""
    ids = {row.topic: row.topic_id for row in rows}
    return topics(client, ids, ids=ids)
