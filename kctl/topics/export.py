"""Export topics as a file for `kctl topic apply` (kctl.topics.spec)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kctl.cluster.topic_configs import fetch_topic_configs
from kctl.errors import KctlError
from kctl.model import ClusterState, TopicState
from kctl.topics.own_configs import set_on_topic

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def export_topics(client: ClusterClient, state: ClusterState, topics: Sequence[TopicState]) -> dict[str, Any]:
    """Return the document. Raises the first error of unreadable configs: applying it would unset them."""
    names = [topic.name for topic in topics]
    configs = fetch_topic_configs(client, names, state.brokers) if names else {}
    entries = []
    for topic in topics:
        topic_configs = configs[topic.name]
        if isinstance(topic_configs, KctlError):
            raise topic_configs
        entries.append(
            {
                "name": topic.name,
                "partitions": len(topic.partitions),
                "replication_factor": topic.replication_factor,
                "configs": dict(sorted(set_on_topic(topic_configs).items())),
            }
        )
    return {"topics": entries}
