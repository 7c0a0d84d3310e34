"""Resume an interrupted copy, after comparing its journal with the current topics."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kctl.base.deadline import Deadline
from kctl.cluster.log_offsets import ByLeader, LogOffsets, ask_leaders, read_log_offsets
from kctl.cluster.offsets import fetch_replica_ends
from kctl.cluster.topic_configs import fetch_topic_configs
from kctl.cluster.topics import known_topics
from kctl.errors import AlreadyExists, KctlError, NotAuthorized, Reason, Refused
from kctl.model import ClusterState, TopicPartition
from kctl.protocol.fetch import fetch_request, fetched
from kctl.records.consume.batches import batches_in, decode_batch
from kctl.segment.format.record import Header
from kctl.topics.clone.journal import CloneState, Pair, configs_at_creation
from kctl.topics.offsets import failure_lines
from kctl.topics.own_configs import set_on_topic

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_SETTLE_S = 1.0  # requests of a killed process may still reach the log
_FETCH_BYTES = 1 << 16


def restart_hint(target: str) -> str:
    """Return the hint for a copy that cannot be resumed."""
    return f"`kctl topic delete {target}` shows what the topic contains and asks; then clone again"


class LoggedRecord(NamedTuple):
    """A record at a known offset. append_time: the broker set its timestamp."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    timestamp: int
    append_time: bool

    def is_copy_of(self, source: LoggedRecord) -> bool:
        """Return True if this record is a copy of `source`."""
        same_time = self.append_time or self.timestamp == source.timestamp
        return same_time and self[:2] == source[:2] and _comparable(self.headers) == _comparable(source.headers)


def _comparable(headers: Sequence[Header]) -> list[tuple[str, bytes | None]]:
    """Return headers with names as Kafka's log cleaner rewrites them: it replaces invalid UTF-8."""
    return [(name.decode("utf-8", "replace"), value) for name, value in headers]


def resume_points(client: ClusterClient, state: CloneState, *, timeout_s: float) -> dict[int, Pair]:
    """Return the end of each target partition, and the source offset to continue from.

    Raises Refused if a topic was replaced, if the target has foreign records, or if records that were not yet copied
    were deleted from the source. Raises AlreadyExists if the target was recreated.
    """
    task = state.task
    topics = known_topics(client, [task.source, task.target])
    check_topics(state, topics)
    if not state.created:
        _check_configs(client, state, topics)
    targets = {partition: TopicPartition(task.target, partition) for partition in task.logs}
    sources = {partition: TopicPartition(task.source, partition) for partition in task.logs}
    target_logs = settled_logs(client, list(targets.values()), timeout_s)
    source_logs = _logs(client, list(sources.values()))
    if not state.created and any(log.end for log in target_logs.values()):
        raise _other_topic(task.target)
    points: dict[int, Pair] = {}
    for partition, tp in targets.items():
        end = target_logs[tp].end
        points[partition] = (end, state.source_offset(partition, end))
        check_point(state, partition, points[partition], source_logs[sources[partition]])
    for partition, (end, source_offset) in points.items():
        copy = _record_at(client, targets[partition], end - 1, target_logs[targets[partition]])
        source = _record_at(client, sources[partition], source_offset - 1, source_logs[sources[partition]])
        if copy is not None and source is not None and not copy.is_copy_of(source):
            raise _foreign(
                task.target, partition, f"has another record at offset {end - 1} than {sources[partition]} at offset "
                f"{source_offset - 1}",
            )  # fmt: skip
    return points


def check_topics(state: CloneState, topics: ClusterState) -> None:
    """Raise Refused or AlreadyExists if the topics are not those that the copy started with. Pure."""
    task = state.task
    source, target = topics.topics[task.source], topics.topics[task.target]
    if state.created and state.target_id != target.topic_id:
        raise _other_topic(task.target)
    if len(target.partitions) != len(task.logs):
        raise AlreadyExists(
            f"topic {task.target} has {len(target.partitions)} partitions, the interrupted copy {len(task.logs)}",
            hint=restart_hint(task.target),
        )
    if source.topic_id != task.source_id or len(source.partitions) < len(task.logs):
        raise Refused(
            f"topic {task.source} was deleted and recreated: the copy into {task.target} cannot be completed",
            hint=restart_hint(task.target),
            reason=Reason.CHANGED_MEANWHILE,
        )


def _check_configs(client: ClusterClient, state: CloneState, topics: ClusterState) -> None:
    """Raise AlreadyExists if the topic cannot be the one of a copy that was killed while it created its target."""
    task = state.task
    configs = fetch_topic_configs(client, [task.target], topics.brokers)[task.target]
    if isinstance(configs, KctlError):
        raise configs
    if set_on_topic(configs) != configs_at_creation(task.configs):
        raise _other_topic(task.target)


def _other_topic(target: str) -> AlreadyExists:
    return AlreadyExists(
        f"topic {target} already exists, and was not created by the interrupted copy",
        hint=restart_hint(target),
    )


def check_point(state: CloneState, partition: int, point: Pair, source: LogOffsets) -> None:
    """Raise Refused if the copy cannot resume at `point`. source: the current source log. Pure."""
    task, position = state.task, point[1]
    end = task.logs[partition].end
    if position > end:
        raise _foreign(task.target, partition, f"ends at {point[0]}, after all records to copy")
    if position < min(source.start, end):
        raise Refused(
            f"offsets {position} to {min(source.start, end) - 1} of {task.source}-{partition} were deleted before they "
            "were copied",
            hint=restart_hint(task.target),
            reason=Reason.CHANGED_MEANWHILE,
        )
    if source.end < end:
        raise Refused(
            f"the log of {task.source}-{partition} was truncated: it ends at {source.end}, the copy at {end}",
            hint=restart_hint(task.target),
            reason=Reason.CHANGED_MEANWHILE,
        )


def _foreign(target: str, partition: int, reason: str) -> Refused:
    return Refused(
        f"partition {target}-{partition} has records that the copy did not write: it {reason}",
        hint=restart_hint(target),
        reason=Reason.CHANGED_MEANWHILE,
    )


def settled_logs(
    client: ClusterClient, partitions: Collection[TopicPartition], timeout_s: float
) -> dict[TopicPartition, LogOffsets]:
    """Return both ends of logs that have settled: all records are committed, and the ends do not move.

    Raises Refused if they do not settle within timeout_s.
    """
    deadline = Deadline(timeout_s)
    before: dict[TopicPartition, LogOffsets] | None = None
    while True:
        logs = _logs(client, partitions)
        ends, _, failed = ask_leaders(client, partitions, lambda by_leader: _leader_ends(client, by_leader))
        _refuse_unread(failed)
        unsettled = [tp for tp, log in logs.items() if ends.get(tp) != log.end]
        if not unsettled and logs == before:
            return logs
        if deadline.expired:
            tp = next(iter(unsettled), next(iter(logs)))
            raise Refused(
                f"partition {tp} has unreplicated records, or is being written to",
                hint="nothing was changed; try again once its replicas are in sync",
                reason=Reason.CHANGED_MEANWHILE,
            )
        before = logs
        time.sleep(_SETTLE_S)


def _logs(client: ClusterClient, partitions: Collection[TopicPartition]) -> dict[TopicPartition, LogOffsets]:
    logs, missing, failed = read_log_offsets(client, partitions)
    _refuse_unread(failed)
    if missing:
        raise Refused(f"partition {min(missing)} does not exist", hint="nothing was changed", reason=Reason.IMPOSSIBLE)
    return logs


def _refuse_unread(failed: Mapping[TopicPartition, KctlError]) -> None:
    if failed:
        raise Refused("; ".join(failure_lines(failed)), hint="nothing was changed", reason=Reason.UNREADABLE)


def _leader_ends(client: ClusterClient, by_leader: ByLeader) -> dict[TopicPartition, int | KctlError]:
    """Return the log end offsets of leaders, including uncommitted records."""
    return {tp: end for ends in fetch_replica_ends(client, by_leader).values() for tp, end in ends.items()}


def _record_at(client: ClusterClient, tp: TopicPartition, offset: int, log: LogOffsets) -> LoggedRecord | None:
    """Return the record at an offset.

    None if it does not exist (deleted, compacted, or a marker), or if this user may not read it: copying does not
    require Read on the target.
    """
    if not log.start <= offset < log.end:
        return None
    request = fetch_request({tp: offset}, partition_bytes=_FETCH_BYTES, max_bytes=_FETCH_BYTES)

    def ask(by_leader: ByLeader) -> dict[TopicPartition, bytes | KctlError]:
        responses: dict[TopicPartition, bytes | KctlError] = {}
        for response in client.send_each(dict.fromkeys(by_leader, request)).values():
            responses.update({tp: response} if isinstance(response, KctlError) else fetched(response))
        return responses

    responses, _, failed = ask_leaders(client, [tp], ask)
    if isinstance(failed.get(tp), NotAuthorized):
        return None
    _refuse_unread(failed)
    return record_in(tp, responses.get(tp, b""), offset)


def record_in(tp: TopicPartition, data: bytes, offset: int) -> LoggedRecord | None:
    """Return the record at `offset` of fetched batches. Pure."""
    for batch in batches_in(data):
        if batch.last_offset < offset or batch.control:
            continue
        content = memoryview(data)[batch.position : batch.next_position]
        for chunk in decode_batch(tp, batch, content, offset):
            if chunk.offsets[0] == offset:
                return LoggedRecord(
                    chunk.keys[0], chunk.values[0], chunk.headers_of(0), chunk.timestamps[0], batch.log_append_time
                )
            return None
    return None
