"""The configs of a topic that decide what its logs keep, as the store of snapshots has them (table `configs`)."""

from __future__ import annotations

from typing import NamedTuple

COMPACT = "compact"


class LogConfig(NamedTuple):
    """None: not known. Limits of -1 are none."""

    topic: str
    cleanup_policy: str | None = None
    retention_ms: int | None = None
    retention_bytes: int | None = None
    segment_bytes: int | None = None
    segment_ms: int | None = None
    delete_retention_ms: int | None = None
    min_compaction_lag_ms: int | None = None
    max_compaction_lag_ms: int | None = None
    min_cleanable_dirty_ratio: float | None = None


def compacts(cleanup_policy: str | None) -> bool:
    """Whether the cleaner works on the topic's logs: «compact» is one of the policies."""
    return cleanup_policy is not None and COMPACT in cleanup_policy.replace(" ", "").split(",")
