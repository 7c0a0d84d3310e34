"""Committing offsets for a group without members: OffsetCommit with generation −1, as consumers do that manage their
partitions themselves (KafkaApis.handleOffsetCommitRequest; GroupMetadataManager.validateOffsetCommit).

A request becomes one batch in the offsets topic, which must not be larger than that takes: large ones are divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.errors import KctlError, OperationFailed, Refused
from kctl.groups.coordinators import MOVED, ByCoordinator, ask_coordinators, failure
from kctl.model import TopicPartition
from kctl.protocol_errors import error_for

if TYPE_CHECKING:
    from kctl.client import ClusterClient

_ILLEGAL_GENERATION, _UNKNOWN_MEMBER_ID, _REBALANCE_IN_PROGRESS, _STALE_MEMBER_EPOCH = 22, 25, 27, 113
_HAS_MEMBERS = frozenset({_ILLEGAL_GENERATION, _UNKNOWN_MEMBER_ID, _REBALANCE_IN_PROGRESS, _STALE_MEMBER_EPOCH})
_BATCH_BYTES = 400_000  # offsets.topic's max.message.bytes is 1 MB by default
_ENTRY_BYTES = 80  # what an entry needs beside its names


class OffsetToCommit(NamedTuple):
    offset: int
    metadata: str = ""


def commit_offsets(
    client: ClusterClient, group: str, offsets: Mapping[TopicPartition, OffsetToCommit]
) -> dict[TopicPartition, KctlError | None]:
    """Partition → its error, or None when the coordinator took the offset. The same request again is harmless.

    After a batch without an answer the rest is not sent.
    """
    outcomes: dict[TopicPartition, KctlError | None] = {}
    for batch in _batches(group, offsets):
        lost = next((error for error in outcomes.values() if error is not None), None)
        if lost is not None and lost.exit_code != Refused.exit_code:
            outcomes.update(dict.fromkeys(batch, OperationFailed(f"not sent, because before: {lost.message}")))
            continue
        answer = ask_coordinators(client, [group], partial(_send, client, batch))[group]
        if isinstance(answer, KctlError):
            outcomes.update(dict.fromkeys(batch, answer))
        else:
            outcomes.update({tp: answer.get(tp, _no_word(tp)) for tp in batch})
    return outcomes


def _batches(
    group: str, offsets: Mapping[TopicPartition, OffsetToCommit]
) -> Iterator[dict[TopicPartition, OffsetToCommit]]:
    batch: dict[TopicPartition, OffsetToCommit] = {}
    size = 0
    for tp, entry in sorted(offsets.items()):
        needed = _ENTRY_BYTES + len(group.encode()) + len(tp.topic) + len(entry.metadata.encode())
        if batch and size + needed > _BATCH_BYTES:
            yield batch
            batch, size = {}, 0
        batch[tp] = entry
        size += needed
    if batch:
        yield batch


def _send(
    client: ClusterClient, batch: Mapping[TopicPartition, OffsetToCommit], by_node: ByCoordinator
) -> dict[str, dict[TopicPartition, KctlError | None] | KctlError]:
    ((node, (group,)),) = by_node.items()
    answer = client.send_each({node: _request(group, batch)})[node]
    return {group: answer if isinstance(answer, KctlError) else _parse(answer, group)}


def _request(group: str, batch: Mapping[TopicPartition, OffsetToCommit]) -> object:
    from kafka.protocol.consumer import OffsetCommitRequest

    topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
    partition_class = topic_class.OffsetCommitRequestPartition
    by_topic: dict[str, list[Any]] = {}
    for (topic, number), entry in batch.items():
        row = partition_class(
            partition_index=number,
            committed_offset=entry.offset,
            committed_leader_epoch=-1,
            committed_metadata=entry.metadata,
        )
        by_topic.setdefault(topic, []).append(row)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=-1,
        topics=[topic_class(name=name, partitions=rows) for name, rows in by_topic.items()],
        min_version=2,
        max_version=9,  # 10 speaks of topics by id
    )


def _parse(answer: Any, group: str) -> dict[TopicPartition, KctlError | None] | KctlError:
    outcomes: dict[TopicPartition, KctlError | None] = {}
    for topic in answer.topics:
        for row in topic.partitions:
            if row.error_code in MOVED:
                return failure(row.error_code, None, group)
            outcomes[TopicPartition(topic.name, row.partition_index)] = _error(row.error_code, group, topic.name)
    return outcomes


def _error(code: int, group: str, topic: str) -> KctlError | None:
    if code == 0:
        return None
    if code in _HAS_MEMBERS:
        return Refused(f"group {group!r} has members now", hint="stop its consumers first")
    return error_for(code, None, subject=f"group {group!r}, topic {topic}")


def _no_word(tp: TopicPartition) -> KctlError:
    return OperationFailed(f"the coordinator's answer does not name {tp}")
