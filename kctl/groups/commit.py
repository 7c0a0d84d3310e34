"""Commit offsets for a group without members: OffsetCommit with generation -1, like consumers without group management.

Source: KafkaApis.handleOffsetCommitRequest; GroupMetadataManager.validateOffsetCommit. A request becomes one batch in
the offsets topic, so large requests are split to stay below the maximum batch size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from kctl.cluster.groups.coordinators import MOVED, ByCoordinator, ask_coordinators, failure, send_one_by_one
from kctl.errors import KctlError, OperationFailed, Reason, Refused
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
_BATCH_BYTES = 400_000  # well below max.message.bytes of the offsets topic (default: 1 MB)
_ENTRY_BYTES = 80  # size of an entry without its names


class OffsetToCommit(NamedTuple):
    offset: int
    metadata: str = ""


CommitErrors: TypeAlias = dict[TopicPartition, KctlError | None]


def commit_offsets(
    client: ClusterClient,
    offsets: Mapping[str, Mapping[TopicPartition, OffsetToCommit]],
    *,
    coordinators: Mapping[str, int] | None = None,
) -> dict[str, CommitErrors]:
    """Return group → partition → the error, or None if the offset was committed. Repeating the request is harmless.

    Each request is for one group; requests to different coordinators are sent in parallel. coordinators: known
    coordinators, which saves the lookup. If a batch of a group fails, its later batches are not sent.
    """
    batches = {group: list(_batches(group, each)) for group, each in offsets.items()}
    errors: dict[str, CommitErrors] = {group: {} for group in offsets}
    for turn in range(max(map(len, batches.values()), default=0)):
        turn_batches = {group: each[turn] for group, each in batches.items() if turn < len(each)}
        failed = {group: error for group in turn_batches if (error := _blocking_error(errors[group])) is not None}
        for group, error in failed.items():
            not_sent = OperationFailed(f"not sent, because of an earlier failure: {error.message}")
            errors[group] |= dict.fromkeys(turn_batches[group], not_sent)
        rest = [group for group in turn_batches if group not in failed]
        for group, answer in ask_coordinators(
            client, rest, partial(_send, client, turn_batches), coordinators=coordinators
        ).items():
            if isinstance(answer, KctlError):
                errors[group] |= dict.fromkeys(turn_batches[group], answer)
            else:
                errors[group] |= {tp: answer.get(tp, _missing(tp)) for tp in turn_batches[group]}
    return errors


def _blocking_error(errors: CommitErrors) -> KctlError | None:
    """Return the error after which later batches are not sent."""
    blocking = (error for error in errors.values() if error is not None and error.exit_code != Refused.exit_code)
    return next(blocking, None)


def _batches(
    group: str, offsets: Mapping[TopicPartition, OffsetToCommit]
) -> Iterator[dict[TopicPartition, OffsetToCommit]]:
    batch: dict[TopicPartition, OffsetToCommit] = {}
    size = 0
    for tp, entry in sorted(offsets.items()):
        entry_bytes = _ENTRY_BYTES + len(group.encode()) + len(tp.topic) + len(entry.metadata.encode())
        if batch and size + entry_bytes > _BATCH_BYTES:
            yield batch
            batch, size = {}, 0
        batch[tp] = entry
        size += entry_bytes
    if batch:
        yield batch


def _send(
    client: ClusterClient, batches: Mapping[str, Mapping[TopicPartition, OffsetToCommit]], by_node: ByCoordinator
) -> dict[str, CommitErrors | KctlError]:
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
        max_version=9,  # 10 identifies topics by id
    )


def _parse(answer: Any, group: str) -> CommitErrors | KctlError:
    errors: CommitErrors = {}
    for topic in answer.topics:
        for row in topic.partitions:
            if row.error_code in MOVED:
                return failure(row.error_code, None, group)
            errors[TopicPartition(topic.name, row.partition_index)] = _error(row.error_code, group, topic.name)
    return errors


def _error(code: int, group: str, topic: str) -> KctlError | None:
    if code == ErrorCode.NONE:
        return None
    if code in _HAS_MEMBERS:
        return Refused(f"group {group!r} has members now", hint="stop its consumers first", reason=Reason.NOT_READY)
    return error_for(code, None, subject=f"group {group!r}, topic {topic}")


def _missing(tp: TopicPartition) -> KctlError:
    return OperationFailed(f"{tp} is missing from the coordinator's response")
