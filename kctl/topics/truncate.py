"""Delete records from the beginning of logs (DeleteRecords, KIP-107): planned, applied, and read back.

Like kafka-delete-records (org.apache.kafka.tools.DeleteRecordsCommand), whose files are accepted too. The leader moves
its log start offset; followers then move theirs, and old segments are deleted from disk.
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
from kctl.errors import KctlError, NotAuthorized, NotFound, OperationFailed, OutcomeUnknown, Reason, Refused
from kctl.lag.retention_requests import fetch_config_values
from kctl.model import ClusterState, TopicPartition
from kctl.topics.offsets import failure_lines, list_offsets, vanished

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.topics.readers import ReadingGroup

HIGH_WATERMARK = -1  # as an offset: everything that consumers can read, as in kafka-delete-records
_POLICY = "cleanup.policy"
_NEEDS_DELETE = "nothing was deleted; this requires Delete on the topic"


@dataclass(frozen=True, slots=True)
class TruncatedPartition:
    """The result for one partition. result: would delete, deleted, unchanged or failed.

    before_offset: records before it are deleted. messages: the number of these offsets. log_start_offset,
    log_end_offset: before the change. low_watermark: the new log start offset, read back; None if nothing was done, or
    unknown.
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
    """Return the offset of the first record at or after a time, else the log end.

    The log end is read first, so that records that arrive in the meantime stay. Records are in the order of writing,
    not of timestamps, so later records may be older. Raises Refused if a leader does not respond.
    """
    ends, unread = list_offsets(client, partitions, OffsetSpec.LATEST, listed, state=state)
    offsets, failed = list_offsets(client, list(ends), time_ms, listed, state=state)
    if unread or failed:
        raise Refused("; ".join(failure_lines(unread | failed)), hint="nothing was deleted", reason=Reason.UNREADABLE)
    return {tp: offset.offset if offset.offset >= 0 else ends[tp].offset for tp, offset in offsets.items()}


def plan_truncate(
    client: ClusterClient, state: ClusterState, offsets: Mapping[TopicPartition, int]
) -> list[TruncatedPartition]:
    """Return what would be deleted, in partition order. offsets: the first offset to keep, or HIGH_WATERMARK.

    state: has the topics. Raises NotFound for unknown partitions, NotAuthorized if brokers report that they will reject
    the request, Refused for offsets after the log end, compacted topics, and unreadable partitions.
    """
    denied = topics_denied(client, {tp.topic for tp in offsets}, DELETE)
    if denied:
        raise NotAuthorized(f"not authorized to delete records of {', '.join(denied)}", hint=_NEEDS_DELETE)
    _check_policies(client, {tp.topic for tp in offsets})
    ends, missing, failed = read_log_offsets(client, sorted(offsets), state=state)
    if missing:
        raise NotFound(f"partition {', '.join(map(str, sorted(missing)))} does not exist")
    if failed:
        raise Refused("; ".join(failure_lines(failed)), hint="nothing was deleted", reason=Reason.UNREADABLE)
    rows = [planned(tp, offset, ends[tp].start, ends[tp].end) for tp, offset in sorted(offsets.items())]
    behind = [row for row in rows if row.before_offset > row.log_end_offset]
    if behind:
        raise Refused(
            f"the log of {behind[0].tp} ends at {behind[0].log_end_offset}, before {behind[0].before_offset}"
            + (f"; {counted(len(behind), 'partition')} in total end before the offset" if len(behind) > 1 else ""),
            hint="nothing was deleted; use a smaller offset, or select partitions with --partition",
            reason=Reason.IMPOSSIBLE,
        )
    return rows


def planned(tp: TopicPartition, offset: int, start: int, end: int) -> TruncatedPartition:
    """Return the planned deletion. start, end: of the log (end: the high watermark). offset: the first to keep."""
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
    """Raise Refused for topics that are only compacted: leaders reject them (POLICY_VIOLATION)."""
    for topic, values in fetch_config_values(client, topics, [_POLICY]).items():
        policy = None if isinstance(values, KctlError) else values.get(_POLICY)
        if policy is not None and "delete" not in policy.split(","):
            raise Refused(
                f"topic {topic} has {_POLICY}={policy}: deleting records requires delete in the policy",
                hint=f"allow it with `kctl topic alter {topic} --config {_POLICY}=compact,delete`",
                reason=Reason.IMPOSSIBLE,
            )


def unread(rows: Iterable[TruncatedPartition], readers: Mapping[str, Sequence[ReadingGroup]]) -> dict[str, int]:
    """Return the number of deleted offsets that each group has not read, according to its commits."""
    unread_counts: dict[str, int] = {}
    for row in rows:
        for reader in readers.get(row.topic, ()):
            committed = reader.committed.get(row.partition)
            if committed is not None and committed < row.before_offset:
                missed = row.before_offset - max(committed, row.log_start_offset)
                unread_counts[reader.group] = unread_counts.get(reader.group, 0) + missed
    return {group: count for group, count in sorted(unread_counts.items()) if count > 0}


def truncate(
    client: ClusterClient,
    rows: Sequence[TruncatedPartition],
    *,
    timeout_s: float = 30.0,
    progress: Callable[[str], None] | None = None,
) -> list[TruncatedPartition]:
    """Delete the planned records, and return the new log starts. Failures of single partitions are in the rows.

    If a leader has changed, the request is sent again to the new leader: deleting records twice is harmless. Raises
    NotAuthorized if the leaders reject all partitions for this reason.
    """
    to_delete = {row.tp: row.before_offset for row in rows if row.result is ItemResult.WOULD_DELETE}
    if not to_delete:
        return list(rows)

    results: dict[TopicPartition, int | KctlError] = {}

    def ask(by_leader: ByLeader) -> dict[TopicPartition, int | KctlError]:
        if progress:
            progress(f"{counted(sum(map(len, by_leader.values())), 'partition')} of {len(by_leader)} brokers")
        responses = _delete(client, by_leader, to_delete, timeout_s)
        results.update(responses)
        return responses

    try:
        _, missing, failed = ask_leaders(client, list(to_delete), ask)
        failed |= vanished(missing)
    except KctlError as exc:  # raised while new leaders were looked up
        if not results:
            raise
        final = {tp: results.get(tp, exc) for tp in to_delete}
        failed = {tp: result for tp, result in final.items() if isinstance(result, KctlError)}
    refused = [error for error in failed.values() if isinstance(error, NotAuthorized)]
    if len(refused) == len(to_delete):
        more = f" (and {len(refused) - 1:,} more)" if len(refused) > 1 else ""
        raise NotAuthorized(f"{refused[0].message}{more}", hint=_NEEDS_DELETE, details=refused[0].details)
    try:
        logs, _, _ = read_log_offsets(client, list(to_delete))
    except KctlError:
        logs = {}
    return [_outcome(row, failed.get(row.tp), logs[row.tp].start if row.tp in logs else None) for row in rows]


def _outcome(row: TruncatedPartition, error: KctlError | None, start: int | None) -> TruncatedPartition:
    if row.result is not ItemResult.WOULD_DELETE:
        return row
    if start is not None and start >= row.before_offset:  # regardless of the response
        return replace(row, result=ItemResult.DELETED, low_watermark=start)
    reason = error.message if error else "the deletion was accepted, but the new log start could not be read"
    if error is None and start is not None:
        reason = f"the deletion was accepted, but the log starts at {start}"
    return replace(row, result=ItemResult.FAILED, low_watermark=start, error=reason)


def _delete(
    client: ClusterClient, by_leader: ByLeader, offsets: Mapping[TopicPartition, int], timeout_s: float
) -> dict[TopicPartition, int | KctlError]:
    """Send one DeleteRecords request to each leader. Return the new log start, or the error, of each partition."""
    requests = {node: _request({tp: offsets[tp] for tp in tps}, timeout_s) for node, tps in by_leader.items()}
    results: dict[TopicPartition, int | KctlError] = {}
    for node, response in client.send_each(requests, timeout_s=timeout_s + 5).items():
        if isinstance(response, KctlError):
            results.update(dict.fromkeys(by_leader[node], response))
        else:
            results |= _low_watermarks(response, by_leader[node])
    return results


def _request(offsets: Mapping[TopicPartition, int], timeout_s: float) -> Any:
    from kafka.protocol.admin import DeleteRecordsRequest

    topic_class = DeleteRecordsRequest.DeleteRecordsTopic
    partition_class = topic_class.DeleteRecordsPartition
    by_topic = grouped(offsets.items(), lambda item: item[0].topic)
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


def _low_watermarks(response: Any, requested: Iterable[TopicPartition]) -> dict[TopicPartition, int | KctlError]:
    from kctl.protocol.client import error_for

    rows = {TopicPartition(topic.name, p.partition_index): p for topic in response.topics for p in topic.partitions}
    results: dict[TopicPartition, int | KctlError] = {}
    for tp in requested:
        row = rows.get(tp)
        if row is None:
            results[tp] = OutcomeUnknown(f"partition {tp}: the leader's response does not contain it")
        elif row.error_code:
            results[tp] = error_for(row.error_code, None, subject=f"partition {tp}")
        else:
            results[tp] = row.low_watermark
    return results


def require_truncated(rows: Sequence[TruncatedPartition]) -> None:
    """Raise OperationFailed if a partition failed."""
    failed = [_reason(row) for row in rows if row.result is ItemResult.FAILED]
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(rows), 'partition')} not truncated: {'; '.join(failed)}")


def _reason(row: TruncatedPartition) -> str:
    error = row.error or ""
    return error if str(row.tp) in error else f"{row.tp}: {error}"
