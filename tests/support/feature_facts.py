"""Clusters of the tests of features, as facts."""

from __future__ import annotations

from collections.abc import Mapping

from kctl.cluster.api_versions import VersionRange
from kctl.features.facts import ClusterFeatures, NodeFeatures, NodeRole, SilentNode
from kctl.features.levels import release_of_level

# What nodes of a release support: highest levels, by feature. The lowest are 0, those of metadata.version below.
KAFKA_3_9 = {"metadata.version": 21, "kraft.version": 1, "transaction.version": 0, "group.version": 0}
KAFKA_4_0 = {"metadata.version": 25, "kraft.version": 1, "transaction.version": 2, "group.version": 1,
             "eligible.leader.replicas.version": 1}  # fmt: skip
KAFKA_4_3 = {**KAFKA_4_0, "metadata.version": 30, "share.version": 1, "streams.version": 1}
KAFKA_4_4 = {**KAFKA_4_3, "metadata.version": 33, "share.version": 2}


def node(node_id: int, highest: Mapping[str, int], role: NodeRole = NodeRole.BROKER) -> NodeFeatures:
    level = highest["metadata.version"]
    lowest = 7 if level > 21 else 1
    supported = {name: VersionRange(lowest if name == "metadata.version" else 0, n) for name, n in highest.items()}
    return NodeFeatures(role, node_id, supported, release_of_level(level))


def cluster(finalized: Mapping[str, int], *nodes: NodeFeatures, silent: tuple[SilentNode, ...] = ()) -> ClusterFeatures:
    """Return a cluster; without nodes, one broker of Kafka 4.4."""
    return ClusterFeatures(finalized, 7, nodes or (node(1, KAFKA_4_4),), silent)
