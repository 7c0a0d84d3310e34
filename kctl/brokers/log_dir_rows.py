"""Log dirs as rows, like kafka-log-dirs: their contents and free disk space."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.cluster.log_dirs import LogDir, fetch_log_dirs
from kctl.errors import KctlError
from kctl.health.disks import used_percent

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class LogDirRow:
    """A log dir.

    size_bytes: of its replicas. usable_bytes, total_bytes, used_percent: of its disk, including data of other programs;
    None on brokers before 3.3. future_replicas: copies that are being moved to this log dir. cordoned: receives no new
    replicas (KIP-1066). error: why it is offline.
    """

    broker: int
    log_dir: str
    replica_count: int
    future_replicas: int
    size_bytes: int
    usable_bytes: int | None
    total_bytes: int | None
    used_percent: float | None
    cordoned: bool
    error: str | None


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A replica in a log dir.

    offset_lag: messages behind the high watermark; for a future replica, behind the current one
    (org.apache.kafka.clients.admin.ReplicaInfo).
    """

    broker: int
    log_dir: str
    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool


def unreachable_log_dirs(client: ClusterClient) -> list[str]:
    """Return a line for each broker that holds replicas but is down: its log dirs are unknown."""
    state = client.metadata()
    holders = {node for topic in state.topics.values() for p in topic.partitions for node in p.replicas}
    return [f"log dirs of broker {node}: the broker is down" for node in sorted(holders - state.brokers.keys())]


def read_log_dirs(
    client: ClusterClient, brokers: Collection[int], topics: Sequence[str], match: Sequence[str] = ()
) -> dict[int, list[LogDir] | KctlError]:
    """Return the log dirs of each broker with all replicas, or those of some topics. Raises NotFound."""
    from kctl.cluster.topics import only_chosen

    if not topics and not match:
        return fetch_log_dirs(client, brokers)
    state = only_chosen(client, topics, match)
    partitions = {name: [p.partition for p in topic.partitions] for name, topic in state.topics.items()}
    return fetch_log_dirs(client, brokers, topics=partitions)


def log_dir_rows(log_dirs: Mapping[int, Sequence[LogDir]]) -> list[LogDirRow]:
    """Return the rows, sorted by broker and path. Pure."""
    return [
        LogDirRow(
            broker=node,
            log_dir=log_dir.path,
            replica_count=sum(not replica.future for replica in log_dir.replicas),
            future_replicas=sum(replica.future for replica in log_dir.replicas),
            size_bytes=sum(replica.size_bytes for replica in log_dir.replicas),
            usable_bytes=log_dir.usable_bytes,
            total_bytes=log_dir.total_bytes,
            used_percent=used_percent(log_dir),
            cordoned=log_dir.cordoned,
            error=log_dir.error,
        )
        for node in sorted(log_dirs)
        for log_dir in sorted(log_dirs[node], key=lambda each: each.path)
    ]


def replica_rows(log_dirs: Mapping[int, Sequence[LogDir]]) -> list[ReplicaRow]:
    """Return all replicas, largest first. Pure."""
    rows = [
        ReplicaRow(node, log_dir.path, r.topic, r.partition, r.size_bytes, r.offset_lag, r.future)
        for node, dirs in log_dirs.items()
        for log_dir in dirs
        for r in log_dir.replicas
    ]
    return sorted(rows, key=lambda row: (-row.size_bytes, row.topic, row.partition, row.broker, row.log_dir))
