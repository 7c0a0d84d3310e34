"""Log dirs as rows, as kafka-log-dirs has them: how much each holds, and what is left on its disk."""

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
    """A log dir. size_bytes: of its replicas; usable_bytes, total_bytes, used_percent: of its disk, whatever uses it,
    None on brokers before 3.3. future_replicas: copies on their way to this log dir. error: why it is offline.
    """

    broker: int
    log_dir: str
    replica_count: int
    future_replicas: int
    size_bytes: int
    usable_bytes: int | None
    total_bytes: int | None
    used_percent: float | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A replica in a log dir. offset_lag: how far it is behind its high watermark, or a future one behind the current
    replica (org.apache.kafka.clients.admin.ReplicaInfo).
    """

    broker: int
    log_dir: str
    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool


def absent_holders(client: ClusterClient) -> list[str]:
    """Brokers that hold replicas and are not there, a line each: of their log dirs nobody can tell."""
    state = client.metadata()
    holders = {node for topic in state.topics.values() for p in topic.partitions for node in p.replicas}
    return [f"log dirs of broker {node}: it is not there" for node in sorted(holders - state.brokers.keys())]


def read_log_dirs(
    client: ClusterClient, brokers: Collection[int], topics: Sequence[str], match: Sequence[str] = ()
) -> dict[int, list[LogDir] | KctlError]:
    """The log dirs of each broker with all replicas, or those of some topics. Raises NotFound for unknown topics."""
    from kctl.cluster.topics import only_chosen

    if not topics and not match:
        return fetch_log_dirs(client, brokers)
    state = only_chosen(client, topics, match)
    wanted = {name: [p.partition for p in topic.partitions] for name, topic in state.topics.items()}
    return fetch_log_dirs(client, brokers, topics=wanted)


def log_dir_rows(log_dirs: Mapping[int, Sequence[LogDir]]) -> list[LogDirRow]:
    """By broker and path. Pure."""
    return [
        LogDirRow(
            broker=node,
            log_dir=found.path,
            replica_count=sum(not replica.future for replica in found.replicas),
            future_replicas=sum(replica.future for replica in found.replicas),
            size_bytes=sum(replica.size_bytes for replica in found.replicas),
            usable_bytes=found.usable_bytes,
            total_bytes=found.total_bytes,
            used_percent=used_percent(found),
            error=found.error,
        )
        for node in sorted(log_dirs)
        for found in sorted(log_dirs[node], key=lambda each: each.path)
    ]


def replica_rows(log_dirs: Mapping[int, Sequence[LogDir]]) -> list[ReplicaRow]:
    """Every replica, the largest first. Pure."""
    rows = [
        ReplicaRow(node, found.path, r.topic, r.partition, r.size_bytes, r.offset_lag, r.future)
        for node, dirs in log_dirs.items()
        for found in dirs
        for r in found.replicas
    ]
    return sorted(rows, key=lambda row: (-row.size_bytes, row.topic, row.partition, row.broker, row.log_dir))
