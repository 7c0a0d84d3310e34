"""The plan of a read: its partitions, and the first offset and the end of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kctl.base.name_patterns import parse_patterns, select
from kctl.cluster.log_offsets import LogOffsets, read_log_offsets, read_offsets_at
from kctl.cluster.partition_numbers import no_partition
from kctl.cluster.topics import hidden, known_topics
from kctl.errors import ConnectionFailed, KctlError, NotFound, Reason, Refused
from kctl.model import ClusterState, TopicPartition
from kctl.records.consume.absence import Absence
from kctl.records.consume.batches import decode
from kctl.records.consume.fetcher import Fetcher
from kctl.records.consume.options import ConsumeOptions

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_Answer = TypeVar("_Answer")
# The responses; the partitions that do not exist; why others are unreadable.
Answers: TypeAlias = tuple[dict[TopicPartition, _Answer], set[TopicPartition], dict[TopicPartition, KctlError]]

_ABSENT_PAUSE_S = 0.3
_MAX_COUNTED = 100_000  # the most records that --tail counts, in all partitions together; above this, it uses offsets


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The partitions to read. starts: the first offset of each; ends: the exclusive end of those that have one."""

    topics: tuple[str, ...]
    partitions: tuple[TopicPartition, ...]
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


def choose_topics(client: ClusterClient, options: ConsumeOptions) -> ClusterState:
    """Return the state of the topics by name or pattern; internal topics only by name.

    Raises UsageError for invalid names and patterns, NotFound.
    """
    if not options.patterns:
        return known_topics(client, options.topics)
    patterns = parse_patterns("--match", options.patterns)
    state = client.metadata()
    visible = [name for name, topic in state.topics.items() if not hidden(topic) or name in options.topics]
    chosen = select(visible, exact=options.topics, patterns=patterns)
    return ClusterState(
        state.cluster_id, state.controller_id, state.brokers, {name: state.topics[name] for name in chosen}
    )


def make_plan(client: ClusterClient, options: ConsumeOptions) -> ReadPlan:
    """Return the plan. Raises NotFound, Refused for a start outside a log, the errors of ClusterClient."""
    state = choose_topics(client, options)
    topics = tuple(dict.fromkeys((*options.topics, *sorted(state.topics))))
    chosen = list(_partitions(state, topics, options))
    if options.group is not None:
        log = log_offsets(client, chosen, read_committed=options.read_committed) if options.exit_eof else {}
        return ReadPlan(topics, tuple(chosen), {}, {tp: offsets.end for tp, offsets in log.items()})
    log = log_offsets(client, chosen, read_committed=options.read_committed)
    ends = _ends(client, log, options)
    return ReadPlan(topics, tuple(chosen), _starts(client, log, options), ends)


def _partitions(state: ClusterState, topics: Sequence[str], options: ConsumeOptions) -> Iterator[TopicPartition]:
    for topic in topics:
        count = len(state.topics[topic].partitions)
        numbers = range(count) if options.partitions is None else sorted(set(options.partitions))
        missing = [number for number in numbers if number >= count]
        if missing:
            raise no_partition(topic, missing, count)
        yield from (TopicPartition(topic, number) for number in numbers)


def log_offsets(
    client: ClusterClient, partitions: Sequence[TopicPartition], *, read_committed: bool
) -> dict[TopicPartition, LogOffsets]:
    """Return both ends of each log. Raises NotFound if a topic is being deleted, Refused for unreadable partitions."""
    return _read_all(lambda pending: read_log_offsets(client, pending, read_committed=read_committed), partitions)


def _read_all(
    query: Callable[[Sequence[TopicPartition]], Answers[_Answer]], partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, _Answer]:
    """Return the response of `query` for each partition; missing partitions are read again."""
    answers: dict[TopicPartition, _Answer] = {}
    absence, pending = Absence(), partitions
    while True:
        new_answers, missing, failures = query(pending)
        answers |= new_answers
        deleted = {tp for tp in missing if absence.lasts(tp.topic, missing=True)}
        if deleted or failures or not missing:
            _raise_unreadable(deleted, failures, no_answers=not answers)
            return answers
        pending = sorted(missing)
        time.sleep(_ABSENT_PAUSE_S)


def _raise_unreadable(
    deleted: Collection[TopicPartition], failures: Mapping[TopicPartition, KctlError], *, no_answers: bool
) -> None:
    if deleted:
        raise NotFound(f"topic {min(deleted).topic} is being deleted")
    if failures:
        tp, reason = min(failures.items(), key=lambda each: each[0])
        if no_answers and isinstance(reason, ConnectionFailed):
            raise reason
        raise Refused(
            f"partition {tp} cannot be read: {reason.message}",
            hint="read only other partitions with --partition",
            reason=Reason.UNREADABLE,
        )


def offsets_at(
    client: ClusterClient, log: Mapping[TopicPartition, LogOffsets], time_ms: int
) -> dict[TopicPartition, int]:
    """Return the first offset in each log whose record is not older than time_ms, or the end of the log."""
    return within_logs(_read_all(lambda pending: read_offsets_at(client, pending, time_ms), list(log)), log)


def within_logs(
    offsets: Mapping[TopicPartition, int], log: Mapping[TopicPartition, LogOffsets]
) -> dict[TopicPartition, int]:
    """Return the offsets at a time, with the end of the log instead of -1 (no record)."""
    return {tp: offset if 0 <= offset < log[tp].end else log[tp].end for tp, offset in offsets.items()}


def _starts(
    client: ClusterClient, log: Mapping[TopicPartition, LogOffsets], options: ConsumeOptions
) -> dict[TopicPartition, int]:
    if options.from_ms is not None:
        return offsets_at(client, log, options.from_ms)
    if options.tail is not None:
        return tail_starts(client, log, options.tail, options)
    return {tp: _start(tp, offsets, options) for tp, offsets in log.items()}


def _start(tp: TopicPartition, log: LogOffsets, options: ConsumeOptions) -> int:
    if options.from_beginning:
        return log.start
    if options.offset is None:
        return log.end
    if not log.start <= options.offset <= log.end:
        raise Refused(
            f"offset {options.offset} is not in partition {tp}",
            hint=f"use an offset from {log.start} to {log.end}",
            reason=Reason.IMPOSSIBLE,
        )
    return options.offset


def _ends(
    client: ClusterClient, log: Mapping[TopicPartition, LogOffsets], options: ConsumeOptions
) -> dict[TopicPartition, int]:
    ends: dict[TopicPartition, int] = {}
    if options.exit_eof:
        ends = {tp: offsets.end for tp, offsets in log.items()}
    if options.until_ms is not None and options.until_ms <= time.time() * 1000:
        times = offsets_at(client, log, options.until_ms)
        ends = {tp: min(offset, ends.get(tp, offset)) for tp, offset in times.items()}
    if options.until_offset is not None:
        ends = {tp: min(options.until_offset, ends.get(tp, options.until_offset)) for tp in log}
    return ends


def tail_starts(
    client: ClusterClient, log: Mapping[TopicPartition, LogOffsets], count: int, options: ConsumeOptions
) -> dict[TopicPartition, int]:
    """Return the offset at which the last `count` records of each partition begin.

    Offsets alone suffice if there are no gaps. After compaction and with markers, records are read and counted from
    further back. Beyond _MAX_COUNTED records, the offsets are used as they are.
    """
    starts = {tp: max(offsets.start, offsets.end - count) for tp, offsets in log.items()}
    if count == 0 or count * len(log) > _MAX_COUNTED:
        return starts
    tails = {tp: starts[tp] for tp in log if log[tp].start == starts[tp]}
    pending, back = {tp: starts[tp] for tp in log if tp not in tails}, count
    while pending:
        offsets = _offsets_between(client, pending, {tp: log[tp].end for tp in pending}, options)
        for tp, start in list(pending.items()):
            if len(offsets[tp]) >= count or start == log[tp].start:
                tails[tp] = offsets[tp][-count] if len(offsets[tp]) >= count else start
                del pending[tp]
        back *= 4
        pending = {tp: max(log[tp].start, log[tp].end - back) for tp in pending}
    return tails


def _offsets_between(
    client: ClusterClient,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    options: ConsumeOptions,
) -> dict[TopicPartition, list[int]]:
    """Return the offsets of the visible records in these ranges, at most the last `options.tail` of each partition."""
    limit = options.tail or 0
    offsets: dict[TopicPartition, list[int]] = {tp: [] for tp in starts}
    fetcher = Fetcher(
        client, starts, read_committed=options.read_committed, warn=lambda _: None, timeout_s=options.timeout_s,
        follow=False,
    )  # fmt: skip
    remaining = {tp for tp in starts if starts[tp] < ends[tp]}
    try:
        while remaining:
            for fetched in fetcher.poll(0.2):
                tp = fetched.tp
                if fetched.error_code:  # out of range: the log was truncated in the meantime
                    remaining.discard(tp)
                    fetcher.drop(tp)
                    continue
                for chunk, offset_after in decode(tp, fetched.data, fetched.position, fetched.aborted):
                    if chunk is not None:
                        visible = (offset for offset in chunk.offsets if offset < ends[tp])
                        offsets[tp] = [*offsets[tp], *visible][-limit:]
                    if offset_after >= ends[tp]:
                        remaining.discard(tp)
                        fetcher.drop(tp)
                        break
    finally:
        fetcher.close()
    return offsets
