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
    """The topics that are altered, and the config values that are replaced. state: of before the plan."""
    todo = [row for row in plan if row.result is ItemResult.WOULD_ALTER]
    shown = {Resource.topic(row.topic): of_configs(row.config_changes) for row in todo if row.config_changes}
    return topics(client, [row.topic for row in todo], state=state).also(values(client, shown))


def of_configs(rows: Iterable[ChangedConfig]) -> dict[str, tuple[str | None, str | None]]:
    """The values that are replaced, and where they are set."""
    return {row.name: (row.before, row.before_source) for row in rows if row.result is not ItemResult.UNCHANGED}


def of_cloned(client: ClusterClient, row: ClonedTopic) -> Basis:
    """The configs of a topic that are copied to its clone."""
    own = OWN_SOURCE["topic"].value
    shown = {name: (value, own) for name, value in row.configs.items()}
    return values(client, {Resource.topic(row.source_topic): shown})


def of_deleted(client: ClusterClient, rows: Iterable[DeletedTopic]) -> Basis:
    """The topics that are deleted, by the ids that they had when their losses were counted."""
    ids = {row.topic: row.topic_id for row in rows}
    return topics(client, ids, ids=ids)
