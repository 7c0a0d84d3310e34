"""Deleting records from the beginning of logs (DeleteRecords, KIP-107): planned, shown, done, and read back.

As kafka-delete-records does (org.apache.kafka.tools.DeleteRecordsCommand), whose files are taken as well. The leader
moves its log start offset; replicas and disks follow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kctl.base.grouping import grouped
from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.cluster.log_offsets import ByLeader, ask_leaders, read_log_offsets
from kctl.cluster.offsets import OffsetSpec, listed
from kctl.cluster.rights import DELETE, topics_denied
from kctl.errors import KctlError, NotAuthorized, NotFound, OutcomeUnknown, Refused
from kctl.lag.retention_requests import fetch_config_values
from kctl.model import ClusterState, TopicPartition
from kctl.topics.offsets import failure_lines, list_offsets, vanished

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.topics.readers import Reader

HIGH_WATERMARK = -1  # as an offset: all that consumers can read, as kafka-delete-records has it
_POLICY = "cleanup.policy"
_NEEDS_DELETE = "nothing was deleted; it needs an ACL for Delete on the topic"


@dataclass(frozen=True, slots=True)
class TruncatedPartition:
    """What becomes of one partition. result: «would delete», «deleted», «unchanged» or «failed».

    before_offset: records before it go; messages: how many offsets these are. log_start_offset and log_end_offset: as
    they were; low_watermark: the log start offset afterwards, read back; None when nothing was done, or not known.
    """

    topic: str
    partition: int
    result: ItemResult
    log_start_offset: int
    before_offset: int
    log_end_offset: int
    messages: int
    low_watermark: int | None = None
    error: str | None = None

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def offsets_at(
    client: ClusterClient, state: ClusterState, partitions: Collection[TopicPartition], time_ms: int
) -> dict[TopicPartition, int]:
    """The offset of the first record of each that is not older; where all are older, what was the end before the look.

    Not the end of later: what arrives meanwhile is not older, and stays. Records are in the order in which they were
    written, not in that of their timestamps: later ones may be older, too. Raises Refused when a leader does not tell.
    """
    ends, unread = list_offsets(client, partitions, OffsetSpec.LATEST, listed, state=state)
    found, failed = list_offsets(client, list(ends), time_ms, listed, state=state)
    if unread or failed:
        raise Refused("; ".join(failure_lines(unread | failed)), hint="nothing was deleted")
    return {tp: answer.offset if answer.offset >= 0 else ends[tp].offset for tp, answer in found.items()}


def plan_truncate(
    client: ClusterClient, state: ClusterState, wanted: Mapping[TopicPartition, int]
) -> list[TruncatedPartition]:
    """What would be deleted, in order of the partitions. wanted: the first offset to keep, or HIGH_WATERMARK.

    state: has the topics. Raises NotFound for unknown partitions, NotAuthorized where brokers say that they will refuse
    it, Refused for offsets behind the end of a log, for compacted topics and for partitions whose leader does not
    answer.
    """
    denied = topics_denied(client, {tp.topic for tp in wanted}, DELETE)
    if denied:
        raise NotAuthorized(f"not authorized to delete records of {', '.join(denied)}", hint=_NEEDS_DELETE)
    _check_policies(client, {tp.topic for tp in wanted})
    ends, gone, failed = read_log_offsets(client, sorted(wanted), state=state)
    if gone:
        raise NotFound(f"there is no partition {', '.join(map(str, sorted(gone)))}")
    if failed:
        raise Refused("; ".join(failure_lines(failed)), hint="nothing was deleted")
    rows = [planned(tp, offset, ends[tp].start, ends[tp].end) for tp, offset in sorted(wanted.items())]
    behind = [row for row in rows if row.before_offset > row.log_end_offset]
    if behind:
        raise Refused(
            f"the log of {behind[0].tp} ends at {behind[0].log_end_offset}, before {behind[0].before_offset}"
            + (f"; {counted(len(behind), 'partition')} end before the offset" if len(behind) > 1 else ""),
            hint="nothing was deleted; give a smaller offset, or with --partitions only those that have it",
        )
    return rows


def planned(tp: TopicPartition, offset: int, start: int, end: int) -> TruncatedPartition:
    """A partition with the log from start to end (the high watermark), of which what is before `offset` shall go."""
    before = end if offset == HIGH_WATERMARK else offset
    messages = max(before - start, 0)
    return TruncatedPartition(
        tp.topic,
        tp.partition,
        ItemResult.WOULD_DELETE if messages else ItemResult.UNCHANGED,
        start,
        before,
        end,
        messages,
    )


def _check_policies(client: ClusterClient, topics: Collection[str]) -> None:
    """Leaders refuse it for topics that are only compacted (POLICY_VIOLATION); said before anything is deleted."""
    for topic, values in fetch_config_values(client, topics, [_POLICY]).items():
        policy = None if isinstance(values, KctlError) else values.get(_POLICY)
        if policy is not None and "delete" not in policy.split(","):
            raise Refused(
                f"topic {topic} has {_POLICY}={policy}: records can be deleted only where the policy has delete",
                hint=f"`kctl topic alter {topic} --config {_POLICY}=compact,delete` allows it",
            )


def unread(rows: Iterable[TruncatedPartition], readers: Mapping[str, Sequence[Reader]]) -> dict[str, int]:
    """Group → how many of the offsets that go it has not read yet; by what it has committed."""
    lost: dict[str, int] = {}
    for row in rows:
        for reader in readers.get(row.topic, ()):
            committed = reader.committed.get(row.partition)
            if committed is not None and committed < row.before_offset:
                missed = row.before_offset - max(committed, row.log_start_offset)
                lost[reader.group] = lost.get(reader.group, 0) + missed
    return {group: count for group, count in sorted(lost.items()) if count > 0}


def truncate(
    client: ClusterClient,
    rows: Sequence[TruncatedPartition],
    *,
    timeout_s: float = 30.0,
    progress: Callable[[str], None] | None = None,
) -> list[TruncatedPartition]:
    """Delete what `rows` say «would delete», and say from where the logs begin now. Failures of partitions are results.

    A leader that has changed since is looked up anew, and asked once more: what was deleted stays deleted. Raises
    NotAuthorized when leaders refuse all of it for that.
    """
    todo = {row.tp: row.before_offset for row in rows if row.result is ItemResult.WOULD_DELETE}
    if not todo:
        return list(rows)

    told: dict[TopicPartition, int | KctlError] = {}

    def ask(by_leader: ByLeader) -> dict[TopicPartition, int | KctlError]:
        if progress:
            progress(f"{counted(sum(map(len, by_leader.values())), 'partition')} of {len(by_leader)} brokers")
        answers = _delete(client, by_leader, todo, timeout_s)
        told.update(answers)
        return answers

    try:
        _, gone, failed = ask_leaders(client, list(todo), ask)
        failed |= vanished(gone)
    except KctlError as exc:  # it was looked for new leaders
        if not told:
            raise
        answers = {tp: told.get(tp, exc) for tp in todo}
        failed = {tp: answer for tp, answer in answers.items() if isinstance(answer, KctlError)}
    refused = [error for error in failed.values() if isinstance(error, NotAuthorized)]
    if len(refused) == len(todo):
        more = f" (and {len(refused) - 1:,} more)" if len(refused) > 1 else ""
        raise NotAuthorized(f"{refused[0].message}{more}", hint=_NEEDS_DELETE, details=refused[0].details)
    try:
        logs, _, _ = read_log_offsets(client, list(todo))
    except KctlError:
        logs = {}
    return [_outcome(row, failed.get(row.tp), logs[row.tp].start if row.tp in logs else None) for row in rows]


def _outcome(row: TruncatedPartition, error: KctlError | None, start: int | None) -> TruncatedPartition:
    if row.result is not ItemResult.WOULD_DELETE:
        return row
    if start is not None and start >= row.before_offset:  # whatever was answered: it is so
        return replace(row, result=ItemResult.DELETED, low_watermark=start)
    reason = error.message if error else "the leader took it, but where the log begins now cannot be read"
    if error is None and start is not None:
        reason = f"the leader took it, but the log begins at {start}"
    return replace(row, result=ItemResult.FAILED, low_watermark=start, error=reason)


def _delete(
    client: ClusterClient, by_leader: ByLeader, wanted: Mapping[TopicPartition, int], timeout_s: float
) -> dict[TopicPartition, int | KctlError]:
    """One DeleteRecords to each leader: where each log begins now, or why nothing was deleted."""
    requests = {node: _request({tp: wanted[tp] for tp in tps}, timeout_s) for node, tps in by_leader.items()}
    found: dict[TopicPartition, int | KctlError] = {}
    for node, answer in client.send_each(requests, timeout_s=timeout_s + 5).items():
        if isinstance(answer, KctlError):
            found.update(dict.fromkeys(by_leader[node], answer))
        else:
            found |= _low_watermarks(answer, by_leader[node])
    return found


def _request(wanted: Mapping[TopicPartition, int], timeout_s: float) -> Any:
    from kafka.protocol.admin import DeleteRecordsRequest

    topic_class = DeleteRecordsRequest.DeleteRecordsTopic
    partition_class = topic_class.DeleteRecordsPartition
    by_topic = grouped(wanted.items(), lambda item: item[0].topic)
    return DeleteRecordsRequest(
        topics=[
            topic_class(
                name=topic,
                partitions=[partition_class(partition_index=tp.partition, offset=offset) for tp, offset in items],
            )
            for topic, items in by_topic.items()
        ],
        timeout_ms=int(timeout_s * 1000),
    )


def _low_watermarks(answer: Any, asked: Iterable[TopicPartition]) -> dict[TopicPartition, int | KctlError]:
    from kctl.protocol.client import error_for

    rows = {TopicPartition(topic.name, p.partition_index): p for topic in answer.topics for p in topic.partitions}
    found: dict[TopicPartition, int | KctlError] = {}
    for tp in asked:
        row = rows.get(tp)
        if row is None:
            found[tp] = OutcomeUnknown(f"partition {tp}: the leader's answer does not name it")
        elif row.error_code:
            found[tp] = error_for(row.error_code, None, subject=f"partition {tp}")
        else:
            found[tp] = row.low_watermark
    return found
