"""The state of a cluster as one value, for planners and reports.

    {"cluster_id", "controller", "brokers": [{"id", "host", "port", "rack", "log_dirs": [{"path", "total_bytes",
     "usable_bytes", "cordoned", "replicas": [{"topic", "partition", "size_bytes", "offset_lag", "future"}]}]}],
     "topics": [{"name", "topic_id", "configs": {}, "partitions": [{"partition", "leader", "replicas", "isr", "adding",
     "removing", "size_bytes"}]}]}

An absent key is unknown: the log_dirs of a broker that did not respond, the sizes of an offline log dir or on brokers
before 3.3, the configs of topics that may not be described. The controller is null if it is unknown. Requests: one
Metadata, with KRaft one DescribeQuorum, one DescribeLogDirs to each broker, one ListPartitionReassignments,
DescribeConfigs for 500 topics at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kctl.cluster.log_dirs import LogDir, fetch_log_dirs
from kctl.cluster.reassignments import Moving, ongoing_reassignments
from kctl.cluster.topic_configs import ConfigEntry, ConfigSource, fetch_topic_configs
from kctl.errors import KctlError
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition
from kctl.protocol.active_controller import controller_of

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def export_cluster(client: ClusterClient) -> tuple[dict[str, Any], list[str]]:
    """Return the state, and a line for each part that could not be read.

    Raises the errors of ClusterClient.metadata.
    """
    state = client.metadata()
    controller = controller_of(client, state)
    unread = [each for each in (controller.missing, controller.unread) if each]
    moving: Mapping[TopicPartition, Moving] | None = None
    if controller.missing is None:  # otherwise a KRaft broker would not respond
        try:
            moving = ongoing_reassignments(client)
        except KctlError as exc:
            unread.append(f"reassignments: {exc.message}")
    log_dirs = fetch_log_dirs(client, state.brokers)
    configs = fetch_topic_configs(client, state.topics, state.brokers) if state.topics else {}
    unread += _unread(log_dirs, configs)
    return assemble(replace(state, controller_id=controller.id), log_dirs, configs, moving), unread


def _unread(
    log_dirs: Mapping[int, list[LogDir] | KctlError], configs: Mapping[str, list[ConfigEntry] | KctlError]
) -> list[str]:
    lines = [f"log dirs of broker {node}: {e.message}" for node, e in log_dirs.items() if isinstance(e, KctlError)]
    lines += [
        f"log dir {log_dir.path} of broker {node} is offline: {log_dir.error}"
        for node, dirs in log_dirs.items()
        if not isinstance(dirs, KctlError)
        for log_dir in dirs
        if log_dir.error
    ]
    failed = [error.message for error in configs.values() if isinstance(error, KctlError)]
    if failed:
        lines.append(f"configs of {len(failed)} topics: {failed[0]}")
    return lines


def assemble(
    state: ClusterState,
    log_dirs: Mapping[int, list[LogDir] | KctlError],
    configs: Mapping[str, list[ConfigEntry] | KctlError],
    moving: Mapping[TopicPartition, Moving] | None,
) -> dict[str, Any]:
    """Combine the responses; see the module for the shape. Pure. moving: None: unknown."""
    sizes = replica_sizes(log_dirs)
    replica_ids = {node for t in state.topics.values() for p in t.partitions for node in p.replicas}
    absent = sorted(replica_ids - state.brokers.keys())
    return {
        "cluster_id": state.cluster_id,
        "controller": state.controller_id,
        "brokers": [
            *(_broker(state.brokers[node], log_dirs.get(node)) for node in sorted(state.brokers)),
            *({"id": node} for node in absent),  # hosts replicas but is down: everything else is unknown
        ],
        "topics": [
            {
                "name": name,
                **_topic_id(state.topics[name].topic_id),
                **_configs(configs.get(name)),
                "partitions": [_partition(p, sizes, moving) for p in state.topics[name].partitions],
            }
            for name in sorted(state.topics)
        ],
    }


def replica_sizes(log_dirs: Mapping[int, list[LogDir] | KctlError]) -> dict[tuple[str, int], dict[int, int]]:
    """Return the bytes of each replica: partition → broker → size. Future replicas are skipped."""
    sizes: dict[tuple[str, int], dict[int, int]] = {}
    for node, dirs in log_dirs.items():
        for log_dir in () if isinstance(dirs, KctlError) else dirs:
            for topic, partition, size, _, future in log_dir.replicas:
                if not future:
                    sizes.setdefault((topic, partition), {})[node] = size
    return sizes


def _broker(broker: Broker, log_dirs: list[LogDir] | KctlError | None) -> dict[str, Any]:
    row: dict[str, Any] = {"id": broker.id, "host": broker.host, "port": broker.port, "rack": broker.rack}
    if log_dirs is not None and not isinstance(log_dirs, KctlError):
        row["log_dirs"] = [_log_dir(log_dir) for log_dir in log_dirs]
    return row


def _log_dir(log_dir: LogDir) -> dict[str, Any]:
    row: dict[str, Any] = {"path": log_dir.path}
    if log_dir.total_bytes is not None:
        row["total_bytes"] = log_dir.total_bytes
    if log_dir.usable_bytes is not None:
        row["usable_bytes"] = log_dir.usable_bytes
    if log_dir.cordoned:
        row["cordoned"] = True
    if log_dir.error is None:
        row["replicas"] = [replica._asdict() for replica in sorted(log_dir.replicas)]
    return row


def _topic_id(topic_id: str | None) -> dict[str, str]:
    return {} if topic_id is None else {"topic_id": topic_id}


def _configs(entries: Iterable[ConfigEntry] | KctlError | None) -> dict[str, Any]:
    """Return the configs that are set on the topic itself."""
    if entries is None or isinstance(entries, KctlError):
        return {}
    configs = {entry.name: entry.value for entry in entries if entry.source is ConfigSource.TOPIC}
    return {"configs": configs}


def _partition(
    state: PartitionState,
    sizes: Mapping[tuple[str, int], Mapping[int, int]],
    moving: Mapping[TopicPartition, Moving] | None,
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "partition": state.partition,
        "leader": None if state.offline else state.leader,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
    }
    if moving is not None:
        move = moving.get(state.tp)
        row["adding"] = list(move.adding) if move else []
        row["removing"] = list(move.removing) if move else []
    size = size_of(state, sizes)
    if size is not None:
        row["size_bytes"] = size
    return row


def size_of(state: PartitionState, sizes: Mapping[tuple[str, int], Mapping[int, int]]) -> int | None:
    """Return the bytes of one replica. sizes: as returned by replica_sizes.

    The leader's log is authoritative: a follower may lag, or still hold segments that the leader has deleted.
    """
    on_disk = sizes.get(state.tp, {})
    return on_disk.get(state.leader, max(on_disk.values(), default=None))
