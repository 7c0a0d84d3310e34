"""The internal topics of a streams group (KIP-1071), which a reset of its input offsets does not change.

A reset sets the offsets of the input topics. The repartition topics keep records that were derived from the old input,
and the changelog topics keep the state. Kafka's tool deletes both on request, and never resets their offsets
(StreamsGroupCommand.retrieveInternalTopics, getInputTopicOffsets).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.cluster.groups.model import STREAMS, Group

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def internal_topics(group: Group) -> tuple[str, ...]:
    """Return the repartition and changelog topics of the group's topology; none if it has none or it is unknown. Pure.

    Topics that are also the input of a sub-topology are omitted, and so are names that do not begin with the group id:
    clients report the topology, and the names of all internal topics begin with the group id.
    """
    if group.type != STREAMS or group.topology is None:
        return ()
    parts = group.topology.subtopologies or ()
    inputs = {topic for part in parts for topic in part.source_topics}
    internal = {
        each.topic for part in parts for each in (*part.repartition_source_topics, *part.state_changelog_topics)
    }
    return tuple(sorted(topic for topic in internal - inputs if topic.startswith(f"{group.group}-")))


def remaining_internal_topics(client: ClusterClient, group: Group) -> tuple[str, ...]:
    """Return the internal topics that exist, as far as this user may describe them."""
    topics = internal_topics(group)
    return tuple(sorted(client.metadata(topics, keep_errors=True).topics)) if topics else ()
