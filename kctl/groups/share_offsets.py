"""Read, set and delete the start offsets of share groups (KIP-932, Kafka 4.1).

A share group has a start offset in each partition that it is subscribed to, instead of a committed offset: the records
before it are done. Kafka sets a start offset only if the group has no members, and resets the delivery state after it.
Kafka deletes the offsets of a group by topic only. kafka-python lacks the messages; the definitions in this folder are
Kafka's (GroupMetadataManager.alterShareGroupOffsets, GroupCoordinatorShard.initiateDeleteShareGroupOffsets).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from kctl.cluster.groups.coordinators import MOVED, ByCoordinator, ask_coordinators, failure, send_one_by_one
from kctl.cluster.groups.newer_groups import StartOffset, fetch_start_offsets
from kctl.errors import KctlError, OperationFailed, Reason, Refused
from kctl.model import TopicPartition
from kctl.protocol.codes import ErrorCode
from kctl.protocol.error_meanings import error_for
from kctl.protocol.message_classes import request_class

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_PER_REQUEST = 1000  # partitions; the coordinator writes the state of each to __share_group_state

Starts: TypeAlias = dict[TopicPartition, StartOffset]
Outcomes: TypeAlias = dict[TopicPartition, "KctlError | None"]


def read_starts(
    client: ClusterClient, groups: Collection[str], *, coordinators: Mapping[str, int] | None = None
) -> dict[str, Starts | KctlError]:
    """Return the start offsets by group and partition, also for partitions that the group has not read yet.

    If a group or one of its partitions could not be read, the value is the error: a plan must be complete.
    """
    starts: dict[str, Starts | KctlError] = {}
    for name, answer in fetch_start_offsets(client, groups, coordinators=coordinators).items() if groups else ():
        if isinstance(answer, KctlError):
            starts[name] = answer
        elif answer.unread:
            starts[name] = next(iter(answer.unread.values()))
        else:
            starts[name] = {TopicPartition(row.topic, row.partition): row for row in answer.offsets}
    return starts


def set_starts(
    client: ClusterClient,
    offsets: Mapping[str, Mapping[TopicPartition, int]],
    *,
    coordinators: Mapping[str, int] | None = None,
) -> dict[str, Outcomes]:
    """Return group → partition → the error, or None if the start offset was set. Missing groups are created.

    Each request is for one group. If a request fails, the later requests for the group are not sent. A repetition is
    harmless.
    """
    batches = {group: _batches(each) for group, each in offsets.items()}
    outcomes: dict[str, Outcomes] = {group: {} for group in offsets}
    for turn in range(max(map(len, batches.values()), default=0)):
        turn_batches = {group: each[turn] for group, each in batches.items() if turn < len(each)}
        pending = []
        for group, batch in turn_batches.items():
            failed = next((error for error in outcomes[group].values() if error is not None), None)
            if failed is None:
                pending.append(group)
            else:
                not_sent = OperationFailed(f"not sent, because of an earlier failure: {failed.message}")
                outcomes[group] |= dict.fromkeys(batch, not_sent)
        send = partial(_send_starts, client, turn_batches)
        for group, answer in ask_coordinators(client, pending, send, coordinators=coordinators).items():
            outcomes[group] |= _of_each(turn_batches[group], answer)
    return outcomes


def _batches(offsets: Mapping[TopicPartition, int]) -> list[dict[TopicPartition, int]]:
    rows = sorted(offsets.items())
    return [dict(rows[start : start + _PER_REQUEST]) for start in range(0, len(rows), _PER_REQUEST)]


def _of_each(partitions: Collection[TopicPartition], answer: Outcomes | KctlError) -> Outcomes:
    """Return an outcome for each partition. A faulty response may lack some, or have others."""
    if isinstance(answer, KctlError):
        return dict.fromkeys(partitions, answer)
    return {tp: answer[tp] if tp in answer else _missing(str(tp)) for tp in partitions}


def _missing(subject: str) -> KctlError:
    return OperationFailed(f"{subject} is missing from the coordinator's response")


def _send_starts(
    client: ClusterClient, batches: Mapping[str, Mapping[TopicPartition, int]], by_node: ByCoordinator
) -> dict[str, Outcomes | KctlError]:
    return send_one_by_one(client, by_node, lambda group: _alter_request(group, batches[group]), _altered)


def _alter_request(group: str, batch: Mapping[TopicPartition, int]) -> object:
    request = request_class(__package__, "AlterShareGroupOffsets")
    topic_class = request.AlterShareGroupOffsetsRequestTopic
    partition_class = topic_class.AlterShareGroupOffsetsRequestPartition
    by_topic: dict[str, list[Any]] = {}
    for (topic, number), offset in batch.items():
        by_topic.setdefault(topic, []).append(partition_class(partition_index=number, start_offset=offset))
    topics = [topic_class(topic_name=name, partitions=rows) for name, rows in by_topic.items()]
    return request(group_id=group, topics=topics)


def _altered(answer: Any, group: str) -> Outcomes | KctlError:
    if answer.error_code:
        return _group_error(answer.error_code, answer.error_message, group)
    outcomes: Outcomes = {}
    for topic in answer.responses:
        for row in topic.partitions:
            if row.error_code in MOVED:
                return failure(row.error_code, row.error_message, group)
            subject = f"group {group!r}, topic {topic.topic_name}"
            error = error_for(row.error_code, row.error_message, subject=subject) if row.error_code else None
            outcomes[TopicPartition(topic.topic_name, row.partition_index)] = error
    return outcomes


def _group_error(code: int, message: str | None, group: str) -> KctlError:
    if code == ErrorCode.NON_EMPTY_GROUP:
        return Refused(f"group {group!r} has members now", hint="stop its consumers first", reason=Reason.NOT_READY)
    return failure(code, message, group)


def delete_starts(
    client: ClusterClient, group: str, topics: Sequence[str], *, coordinators: Mapping[str, int] | None = None
) -> dict[str, KctlError | None]:
    """Return topic → the error, or None if the start offsets of the group in the topic were deleted."""
    send = partial(_send_deletion, client, topics)
    answer = ask_coordinators(client, [group], send, coordinators=coordinators)[group]
    if isinstance(answer, KctlError):
        return dict.fromkeys(topics, answer)
    return {topic: answer[topic] if topic in answer else _missing(f"topic {topic}") for topic in topics}


def _send_deletion(
    client: ClusterClient, topics: Sequence[str], by_node: ByCoordinator
) -> dict[str, dict[str, KctlError | None] | KctlError]:
    request = request_class(__package__, "DeleteShareGroupOffsets")
    topic_class = request.DeleteShareGroupOffsetsRequestTopic
    rows = [topic_class(topic_name=topic) for topic in topics]
    return send_one_by_one(client, by_node, lambda group: request(group_id=group, topics=rows), _deleted)


def _deleted(answer: Any, group: str) -> dict[str, KctlError | None] | KctlError:
    if answer.error_code:
        return _group_error(answer.error_code, answer.error_message, group)
    outcomes: dict[str, KctlError | None] = {}
    for row in answer.responses:
        if row.error_code in MOVED:
            return failure(row.error_code, row.error_message, group)
        subject = f"group {group!r}, topic {row.topic_name}"
        outcomes[row.topic_name] = (
            error_for(row.error_code, row.error_message, subject=subject) if row.error_code else None
        )
    return outcomes
