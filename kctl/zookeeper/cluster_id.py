"""The node where brokers store the cluster id (kafka.zk.ClusterIdZNode)."""

from __future__ import annotations

import json

CLUSTER_ID = "/cluster/id"
_MAX_BYTES = 4096


def parse_cluster_id(data: bytes | None) -> str | None:
    """Return the id in {"version": "1", "id": "…"}; None for anything else. Pure."""
    try:
        cluster_id = json.loads((data or b"")[:_MAX_BYTES])["id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return cluster_id if isinstance(cluster_id, str) else None
