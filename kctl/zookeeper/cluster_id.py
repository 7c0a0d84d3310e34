"""The node in which brokers keep the id of their cluster (kafka.zk.ClusterIdZNode)."""

from __future__ import annotations

import json

CLUSTER_ID = "/cluster/id"
_MAX_BYTES = 4096


def parse_cluster_id(data: bytes | None) -> str | None:
    """The id in {"version": "1", "id": "…"}; None for anything else. Pure."""
    try:
        found = json.loads((data or b"")[:_MAX_BYTES])["id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
