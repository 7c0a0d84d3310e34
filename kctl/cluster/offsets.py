"""Committed offsets from coordinators, log offsets from leaders: the two requests that lag is computed from.

Most functions query one broker, so that a Spark executor can do its share; `kctl.lag.collect` queries all of them at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from kctl.cluster.groups.coordinators import ByCoordinator, failure, send_in_chunks, send_one_by_one
from kctl.errors import KctlError, NotFound, NotSupported, OperationFailed
from kctl.model import TopicPartition
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_Value = TypeVar("_Value")

_CONSUMER, _DEBUGGING_REPLICA = -1, -2  # replica ids; followers respond to the latter, too, with their own log end

Committed: TypeAlias = dict[TopicPartition, int]


class Commit(NamedTuple):
    """A committed offset. leader_epoch: of the last record read, -1 if not committed."""

    offset: int
    leader_epoch: int
    metadata: str


class OffsetSpec(IntEnum):
    """The special timestamps of a ListOffsets request."""

    LATEST = -1  # for consumers the high watermark
    EARLIEST = -2  # the log start offset
    MAX_TIMESTAMP = -3  # the record with the largest timestamp (KIP-734, brokers ≥ 3.0)
    EARLIEST_LOCAL = -4  # the first offset on the leader's disk, without tiered storage (KIP-405, ≥ 3.6)
    LATEST_TIERED = -5  # the last offset in tiered storage (KIP-1005, ≥ 3.9)
    EARLIEST_PENDING_UPLOAD = -6  # the first offset that is not yet in tiered storage (KIP-1023, ≥ 4.2)


_LIST_VERSIONS = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}


class ListedOffset(NamedTuple):
    """A row of a ListOffsets response; both are -1 if no record matches."""

    offset: int
    timestamp_ms: int


def fetch_committed(
    client: ClusterClient, coordinator_id: int, groups: Sequence[str]
) -> dict[str, Committed | KctlError]:
    """Return the committed offsets of each group, from its coordinator; for a group that failed, the KctlError.

    One OffsetFetch for all groups (version 8, KIP-709, Kafka 3.0), one per group on older brokers.
    """
    return fetch_committed_each(client, {coordinator_id: groups})


def fetch_committed_each(client: ClusterClient, by_node: ByCoordinator) -> dict[str, Committed | KctlError]:
    """Return committed offsets from several coordinators at once; see `fetch_committed`."""
    return _fetch(client, by_node, _committed_offset)


def fetch_commits_each(
    client: ClusterClient, by_node: ByCoordinator
) -> dict[str, dict[TopicPartition, Commit] | KctlError]:
    """Return offset, leader epoch and metadata of each commit; otherwise like `fetch_committed_each`."""
    return _fetch(client, by_node, _commit)


def _committed_offset(row: Any) -> int:
    offset: int = row.committed_offset
    return offset


def _commit(row: Any) -> Commit:
    epoch = getattr(row, "committed_leader_epoch", None)  # brokers ≥ 2.1
    return Commit(row.committed_offset, -1 if epoch is None else epoch, row.metadata or "")


def _fetch(
    client: ClusterClient, by_node: ByCoordinator, value: Callable[[Any], _Value]
) -> dict[str, dict[TopicPartition, _Value] | KctlError]:
    try:
        return send_in_chunks(client, by_node, _batched_request, lambda response: _parse_batched(response, value))
    except NotSupported:
        return send_one_by_one(client, by_node, _request, lambda response, group: _parse_one(response, group, value))


def _batched_request(groups: Sequence[str]) -> object:
    from kafka.protocol.consumer import OffsetFetchRequest

    group = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(
        groups=[group(group_id=name, topics=None) for name in groups],
        min_version=8,
        max_version=9,  # 10 identifies topics by id
    )


def _parse_batched(
    response: Any, value: Callable[[Any], _Value]
) -> dict[str, dict[TopicPartition, _Value] | KctlError]:
    return {
        group.group_id: failure(group.error_code, None, group.group_id)
        if group.error_code
        else _parse_topics(group.topics, group.group_id, value)
        for group in response.groups
    }


def _parse_topics(
    topics: Iterable[Any], group: str, value: Callable[[Any], _Value]
) -> dict[TopicPartition, _Value] | KctlError:
    committed: dict[TopicPartition, _Value] = {}
    for topic in topics:
        name = topic.name
        for row in topic.partitions:
            if row.error_code:
                return failure(row.error_code, f"offset of {name}-{row.partition_index}", group)
            if row.committed_offset >= 0:
                committed[TopicPartition(name, row.partition_index)] = value(row)
    return committed


def _request(group: str) -> object:
    from kafka.protocol.consumer import OffsetFetchRequest

    return OffsetFetchRequest(group_id=group, topics=None, min_version=2, max_version=7)


def _parse_one(response: Any, group: str, value: Callable[[Any], _Value]) -> dict[TopicPartition, _Value] | KctlError:
    if response.error_code:
        return failure(response.error_code, None, group)
    return _parse_topics(response.topics, group, value)


def fetch_offsets(
    client: ClusterClient,
    leader_id: int,
    partitions: Iterable[TopicPartition],
    spec: OffsetSpec,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int | KctlError]:
    """Return one end of the log of each partition, from its leader, by one ListOffsets; or a KctlError.

    read_committed: LATEST is the last stable offset, before the first open transaction. NotFound: the topic or
    partition does not exist. Any other error: the broker does not lead the partition, or did not respond.
    """
    return fetch_offsets_each(client, {leader_id: list(partitions)}, spec, read_committed=read_committed)


def fetch_offsets_each(
    client: ClusterClient,
    by_leader: Mapping[int, Sequence[TopicPartition]],
    spec: int,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int | KctlError]:
    """Return offsets from several leaders at once; see `fetch_offsets`."""
    return list_offsets_each(client, by_leader, spec, _offset, read_committed=read_committed)


def list_offsets_each(
    client: ClusterClient,
    by_leader: Mapping[int, Sequence[TopicPartition]],
    timestamp_ms: int,
    value: Callable[[Any], _Value],
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, _Value | KctlError]:
    """Return `value` of each partition's row, from several leaders at once; for a partition that failed, the KctlError.

    timestamp_ms: list the first record at or after this time; or an OffsetSpec.
    """
    requests = {node: _list_request(tps, timestamp_ms, read_committed) for node, tps in by_leader.items()}
    responses = client.send_each(requests)
    results: dict[TopicPartition, _Value | KctlError] = {}
    for node, partitions in by_leader.items():
        response = responses[node]
        if isinstance(response, KctlError):
            results.update(dict.fromkeys(partitions, response))
            continue
        rows = parse_listed(response, value)
        missing = OperationFailed("missing in the response")
        results.update({tp: rows.get(tp, missing) for tp in partitions})
    return results


def listed(row: Any) -> ListedOffset:
    """Return the offset and timestamp of a row; a `value` for list_offsets_each."""
    return ListedOffset(row.offset, row.timestamp)


def fetch_replica_ends(
    client: ClusterClient, by_node: Mapping[int, Sequence[TopicPartition]]
) -> dict[int, dict[TopicPartition, int | KctlError]]:
    """Return the log end offsets of the brokers' own replicas, including followers and replicas that are not in sync.

    Sent as a debugging replica (ListOffsetsRequest.DEBUGGING_REPLICA_ID), to which followers respond, too.
    """
    responses = client.send_each(
        {node: _list_request(tps, OffsetSpec.LATEST, False, _DEBUGGING_REPLICA) for node, tps in by_node.items()}
    )
    ends: dict[int, dict[TopicPartition, int | KctlError]] = {}
    for node, response in responses.items():
        failed = isinstance(response, KctlError)
        ends[node] = dict.fromkeys(by_node[node], response) if failed else parse_listed(response, _offset)
    return ends


def _list_request(
    partitions: Sequence[TopicPartition], timestamp_ms: int, read_committed: bool, replica_id: int = _CONSUMER
) -> object:
    from kafka.protocol.consumer import ListOffsetsRequest

    topic_class = ListOffsetsRequest.ListOffsetsTopic
    partition_class = topic_class.ListOffsetsPartition
    by_topic: dict[str, list[Any]] = {}
    for topic, number in partitions:
        row = partition_class(partition_index=number, timestamp=int(timestamp_ms), current_leader_epoch=-1)
        by_topic.setdefault(topic, []).append(row)
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=int(read_committed),
        topics=[topic_class(name=name, partitions=rows) for name, rows in by_topic.items()],
        min_version=max(2 if read_committed else 1, _lowest_version(timestamp_ms)),
    )


def _lowest_version(timestamp_ms: int) -> int:
    return _LIST_VERSIONS.get(OffsetSpec(timestamp_ms), 1) if timestamp_ms < 0 else 1


def parse_listed(response: Any, value: Callable[[Any], _Value]) -> dict[TopicPartition, _Value | KctlError]:
    """Return a ListOffsets response by partition: `value` of each row, or the row's error."""
    from kctl.protocol.client import error_for

    results: dict[TopicPartition, _Value | KctlError] = {}
    for topic in response.topics:
        for row in topic.partitions:
            tp = TopicPartition(topic.name, row.partition_index)
            if row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                results[tp] = NotFound(f"partition {tp} does not exist on its leader")
            elif row.error_code:
                results[tp] = error_for(row.error_code, None, subject=f"partition {tp}")
            else:
                results[tp] = value(row)
    return results


def _offset(row: Any) -> int:
    offset: int = row.offset
    return offset
