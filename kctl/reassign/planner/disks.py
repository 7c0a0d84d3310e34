"""The log dir of each replica on its broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kctl.cluster.log_dirs import LogDir, LogDirReplica
from kctl.errors import InvalidFile, Reason, Refused
from kctl.reassign.planner.cluster import UNKNOWN, PlanCluster

_MAX_SIZE = 1 << 62


@dataclass(slots=True)
class Disk:
    """A log dir that is online and not cordoned. fixed_*: replicas outside the plan (of other topics)."""

    path: str
    total_bytes: int | None
    usable_bytes: int | None
    fixed_replicas: int = 0
    fixed_bytes: int = 0


@dataclass(slots=True)
class BrokerDisks:
    """The log dirs of a broker.

    broker: its id. replicas: partition (row of the cluster) → position in disks, bytes (or UNKNOWN).
    """

    broker: int
    disks: list[Disk]
    replicas: dict[int, tuple[int, int]]


def disks_of(cluster: PlanCluster, log_dirs: Mapping[int, list[LogDir]]) -> dict[int, BrokerDisks]:
    """Return the log dirs by broker index, without brokers whose log dirs are unknown. log_dirs: by broker id.

    Raises Refused if a replica of the partitions is already moving to another log dir.
    """
    topic_rows: dict[str, dict[int, int]] = {name: {} for name in cluster.topics}
    for p, topic in enumerate(cluster.topic_of):
        topic_rows[cluster.topics[topic]][cluster.number[p]] = p
    by_broker = {}
    for index, broker in enumerate(cluster.brokers):
        online = [log_dir for log_dir in log_dirs.get(broker.id, ()) if log_dir.error is None]
        # Replicas in a cordoned log dir stay, as on an excluded broker.
        if broker.alive and online:
            by_broker[index] = _broker_disks(broker.id, online, topic_rows)
    return by_broker


def _broker_disks(broker: int, log_dirs: list[LogDir], topic_rows: Mapping[str, Mapping[int, int]]) -> BrokerDisks:
    result = BrokerDisks(broker, [], {})
    for log_dir in sorted(log_dirs, key=lambda each: each.path):
        place = len(result.disks)
        disk = Disk(log_dir.path, log_dir.total_bytes, log_dir.usable_bytes)
        if not log_dir.cordoned:
            result.disks.append(disk)
        for topic, partition, size, _, future in log_dir.replicas:
            row = topic_rows.get(topic, {}).get(partition)
            if future and row is not None:
                raise Refused(
                    f"the replica of {topic}-{partition} on broker {broker} is already moving to {log_dir.path}",
                    hint="wait for the move (`kctl topic reassign status`), or omit --log-dirs",
                    reason=Reason.RUN_STATE,
                )
            if row is not None and not log_dir.cordoned:
                result.replicas[row] = (place, size)
            elif not future:
                disk.fixed_replicas += 1
                disk.fixed_bytes += max(0, size)
    return result


def log_dirs_of_export(document: Mapping[str, Any]) -> dict[int, list[LogDir]]:
    """Return broker id → its log dirs, from the JSON of `kctl cluster export`. Raises InvalidFile."""
    by_broker: dict[int, list[LogDir]] = {}
    for row in document.get("brokers", ()):
        rows = row.get("log_dirs")
        if rows is None:
            continue
        name = f"broker {row.get('id')}"
        if not isinstance(rows, list) or not all(isinstance(each, Mapping) for each in rows):
            raise _invalid(f"log_dirs of {name} is not a list of objects")
        by_broker[row["id"]] = [_log_dir(name, each) for each in rows]
        if len({log_dir.path for log_dir in by_broker[row["id"]]}) < len(rows):
            raise _invalid(f"{name} lists a log dir twice")
    return by_broker


def _log_dir(broker: str, row: Mapping[str, Any]) -> LogDir:
    path = row.get("path")
    if not isinstance(path, str) or not path.startswith("/"):
        raise _invalid(f"a log dir of {broker} is {path!r:.100}, not an absolute path")
    name = f"log dir {path} of {broker}"
    total, usable = (_size(row, key, name) for key in ("total_bytes", "usable_bytes"))
    replicas = row.get("replicas")
    if replicas is None:  # the export writes this for a log dir that is offline
        return LogDir(path, total, usable, [], "it is offline, or was not described")
    if not isinstance(replicas, list) or not all(isinstance(each, Mapping) for each in replicas):
        raise _invalid(f"replicas of {name} is not a list of objects")
    return LogDir(
        path, total, usable, [_replica(name, each) for each in replicas], cordoned=row.get("cordoned") is True
    )


def _replica(log_dir: str, row: Mapping[str, Any]) -> LogDirReplica:
    topic, partition, size = row.get("topic"), row.get("partition"), _size(row, "size_bytes", log_dir)
    if not isinstance(topic, str) or type(partition) is not int:
        raise _invalid(f"a replica in {log_dir} is {row!r:.100}")
    return LogDirReplica(topic, partition, UNKNOWN if size is None else size, 0, row.get("future") is True)


def _size(row: Mapping[str, Any], key: str, name: str) -> int | None:
    value = row.get(key)
    if value is not None and (type(value) is not int or not 0 <= value < _MAX_SIZE):
        raise _invalid(f"{key} in {name} is {value!r:.100}")
    return value


def _invalid(message: str) -> InvalidFile:
    return InvalidFile(message, hint="write one with `kctl cluster export --out cluster.json`")
