"""Topic configs that determine the contents of logs, as in the snapshot store (table `configs`)."""

from __future__ import annotations

from typing import NamedTuple

COMPACT = "compact"


class LogConfig(NamedTuple):
    """The configs of a topic. None: unknown. A limit of -1 means no limit."""

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
    """Return True if the topic's logs are compacted ("compact" is one of the policies)."""
    return cleanup_policy is not None and COMPACT in cleanup_policy.replace(" ", "").split(",")
