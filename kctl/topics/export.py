"""Topics as the file that `kctl topic apply` takes (kctl.topics.spec)."""

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
    """The document. Raises the error of the first topic whose configs cannot be read: applied, it would unset them."""
    names = [topic.name for topic in topics]
    configs = fetch_topic_configs(client, names, state.brokers) if names else {}
    entries = []
    for topic in topics:
        found = configs[topic.name]
        if isinstance(found, KctlError):
            raise found
        entries.append(
            {
                "name": topic.name,
                "partitions": len(topic.partitions),
                "replication_factor": topic.replication_factor,
                "configs": dict(sorted(set_on_topic(found).items())),
            }
        )
    return {"topics": entries}
