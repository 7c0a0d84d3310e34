"""Committing offsets for a group without members: OffsetCommit with generation −1, as consumers do that manage their
partitions themselves (KafkaApis.handleOffsetCommitRequest; GroupMetadataManager.validateOffsetCommit).

A request becomes one batch in the offsets topic, which must not be larger than that takes: large ones are divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from kctl.cluster.groups.coordinators import MOVED, ByCoordinator, ask_coordinators, failure, send_one_by_one
from kctl.errors import KctlError, OperationFailed, Refused
from kctl.model import TopicPartition
from kctl.protocol.codes import ErrorCode
from kctl.protocol.error_meanings import error_for

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_HAS_MEMBERS = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)  # fmt: skip
_BATCH_BYTES = 400_000  # offsets.topic's max.message.bytes is 1 MB by default
_ENTRY_BYTES = 80  # what an entry needs beside its names


class OffsetToCommit(NamedTuple):
    offset: int
    metadata: str = ""


Outcomes: TypeAlias = dict[TopicPartition, KctlError | None]


def commit_offsets(
    client: ClusterClient,
    offsets: Mapping[str, Mapping[TopicPartition, OffsetToCommit]],
    *,
    known: Mapping[str, int] | None = None,
) -> dict[str, Outcomes]:
    """Group → partition → its error, or None when the coordinator took the offset. The same request again is harmless.

    A request is of one group; all coordinators have one at the same time. known: coordinators of groups that were seen
    already, which saves the look-up. After a batch of a group that was not answered, the rest of it is not sent.
    """
    batches = {group: list(_batches(group, each)) for group, each in offsets.items()}
    outcomes: dict[str, Outcomes] = {group: {} for group in offsets}
    for turn in range(max(map(len, batches.values()), default=0)):
        now = {group: each[turn] for group, each in batches.items() if turn < len(each)}
        lost = {group: error for group in now if (error := _lost(outcomes[group])) is not None}
        for group, error in lost.items():
            outcomes[group] |= dict.fromkeys(now[group], OperationFailed(f"not sent, because before: {error.message}"))
        rest = [group for group in now if group not in lost]
        for group, answer in ask_coordinators(client, rest, partial(_send, client, now), known=known).items():
            if isinstance(answer, KctlError):
                outcomes[group] |= dict.fromkeys(now[group], answer)
            else:
                outcomes[group] |= {tp: answer.get(tp, _no_word(tp)) for tp in now[group]}
    return outcomes


def _lost(outcomes: Outcomes) -> KctlError | None:
    """Why what comes after them is not sent."""
    found = (error for error in outcomes.values() if error is not None and error.exit_code != Refused.exit_code)
    return next(found, None)


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
    client: ClusterClient, batches: Mapping[str, Mapping[TopicPartition, OffsetToCommit]], by_node: ByCoordinator
) -> dict[str, Outcomes | KctlError]:
    return send_one_by_one(client, by_node, lambda group: _request(group, batches[group]), _parse)


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


def _parse(answer: Any, group: str) -> Outcomes | KctlError:
    outcomes: Outcomes = {}
    for topic in answer.topics:
        for row in topic.partitions:
            if row.error_code in MOVED:
                return failure(row.error_code, None, group)
            outcomes[TopicPartition(topic.name, row.partition_index)] = _error(row.error_code, group, topic.name)
    return outcomes


def _error(code: int, group: str, topic: str) -> KctlError | None:
    if code == ErrorCode.NONE:
        return None
    if code in _HAS_MEMBERS:
        return Refused(f"group {group!r} has members now", hint="stop its consumers first")
    return error_for(code, None, subject=f"group {group!r}, topic {topic}")


def _no_word(tp: TopicPartition) -> KctlError:
    return OperationFailed(f"the coordinator's answer does not name {tp}")
