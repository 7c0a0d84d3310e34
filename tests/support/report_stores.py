"""A store for tests of reports: an hour of a small cluster, with figures that can be computed by hand.

A pass each minute. Each topic has two partitions, and each of them gets 100 messages of 1,000 B between two passes.

| group | reads | result |
|---|---|---|
| keeps-up | orders | all of it: OK |
| falls-behind | orders | 60 of 100 between two passes: WARN, lag grows by 40 a partition and minute |
| stopped | orders | nothing from minute 30 on, then without members: ERR |
| ghost | gone | commits of a topic that was deleted: no alarm |
| left | orders | gone from minute 40 on |
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.commit import put_pass
from kctl.history.snapshots.layout import HOUR_MS
from kctl.history.snapshots.store import Store, create_store

START_MS = 1_790_000_000_000 // HOUR_MS * HOUR_MS
MINUTE_MS = 60_000
PASSES = 60
PARTITIONS = 2
STEP = 100
MESSAGE_BYTES = 1_000
RETENTION_MS = 3 * HOUR_MS
TOPICS = ("orders", "clicks")
GROUPS = ("keeps-up", "falls-behind", "stopped", "ghost", "left")


def at_ms(minute: int) -> int:
    """Return the time of a minute's pass."""
    return START_MS + minute * MINUTE_MS


def end_of(minute: int) -> int:
    """Return the end of each log."""
    return 10_000 + STEP * minute


def committed(group: str, minute: int) -> int | None:
    """Return the committed offset of a group in each partition; None: no commit (anymore)."""
    if group == "left":
        return end_of(minute) if minute < 40 else None
    return {
        "keeps-up": end_of(minute),
        "falls-behind": 10_000 + 60 * minute,
        "stopped": end_of(min(minute, 30)),
        "ghost": 5,
    }[group]


def members(group: str, minute: int) -> int:
    """Return the number of members of a group."""
    return 0 if group == "ghost" or (group == "stopped" and minute > 30) else 1


def a_pass(minute: int, volume_bytes: int = 10**12) -> Pass:
    """Return the rows of a minute. volume_bytes: of broker 2's log dir."""
    found = Pass(rows={table: [] for table in schema.TABLES if table != schema.PASSES})
    for group in GROUPS:
        _group(found, group, minute)
    for topic in TOPICS:
        for partition in range(PARTITIONS):
            size = end_of(minute) * MESSAGE_BYTES
            oldest = at_ms(0) - HOUR_MS
            found.rows[schema.LOGS].append((topic, partition, "id", 1, 3, 0, end_of(minute), end_of(minute), oldest))
            found.rows[schema.REPLICAS] += [(b, "/data", topic, partition, size, 0, False) for b in (1, 2)]
        found.rows[schema.CONFIGS].append((topic, "delete", RETENTION_MS, -1, 10**6, None, None, None, None, None))
    used = PARTITIONS * len(TOPICS) * end_of(minute) * MESSAGE_BYTES
    found.rows[schema.LOG_DIRS] += [
        (1, "/data", 10**9, 10**9 - used, None),
        (2, "/data", volume_bytes, volume_bytes - used, None),
        (3, "/lost", None, None, "KAFKA_STORAGE_ERROR"),
    ]
    return found


def _group(found: Pass, group: str, minute: int) -> None:
    offset, count = committed(group, minute), members(group, minute)
    if offset is None:
        return
    topic = "gone" if group == "ghost" else "orders"
    found.rows[schema.GROUPS].append((group, "Stable" if count else "Empty", "classic", "consumer", count, 1))
    for partition in range(PARTITIONS):
        row: tuple[Any, ...]
        if group == "ghost":
            row = (group, topic, partition, offset, None, None, None, None, True)
        else:
            row = (group, topic, partition, offset, 0, end_of(minute), 3, "id", False)
        found.rows[schema.COMMITS].append(row)
        if count:
            found.rows[schema.OWNERS].append((group, topic, partition, "m", f"client-{group}", "/10.0.0.1"))


def small_cluster(root: Path, *, passes: int = PASSES, cluster_id: str = "c", volume_bytes: int = 10**12) -> Store:
    """Return the store, with a pass each minute."""
    store = create_store(root, cluster_id)
    for minute in range(passes):
        put_pass(store, at_ms(minute), at_ms(minute) + 50, a_pass(minute, volume_bytes), interval_ms=MINUTE_MS)
    return store
