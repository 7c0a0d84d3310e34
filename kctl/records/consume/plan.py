"""Before anything is read: which partitions, from which offset each, and where each one ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kctl.base.name_patterns import parse_patterns, select
from kctl.cluster.log_offsets import LogOffsets, read_log_offsets, read_offsets_at
from kctl.cluster.partition_numbers import no_partition
from kctl.cluster.topics import hidden, known_topics
from kctl.errors import ConnectionFailed, KctlError, NotFound, Refused
from kctl.model import ClusterState, TopicPartition
from kctl.records.consume.absence import Absence
from kctl.records.consume.batches import decode
from kctl.records.consume.fetcher import Fetcher
from kctl.records.consume.options import ConsumeOptions

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_Answer = TypeVar("_Answer")
# The answers; what is missing; what could not be read, and why.
Read: TypeAlias = tuple[dict[TopicPartition, _Answer], set[TopicPartition], dict[TopicPartition, KctlError]]

_ABSENT_PAUSE_S = 0.3
_MOST_COUNTED = 100_000  # records that --tail counts backwards, in all partitions; beyond, offsets are as good


@dataclass(frozen=True, slots=True)
class Plan:
    """starts: the first offset of each partition; ends: the one before which it ends, of those that end."""

    topics: tuple[str, ...]
    partitions: tuple[TopicPartition, ...]
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


def choose_topics(client: ClusterClient, options: ConsumeOptions) -> ClusterState:
    """The state of the topics that are named and of those that match, Kafka's own only when they are named.

    Raises UsageError for impossible names and patterns, NotFound.
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


def plan(client: ClusterClient, options: ConsumeOptions) -> Plan:
    """Raises NotFound, Refused for a start outside of a log, what ClusterClient raises."""
    state = choose_topics(client, options)
    topics = tuple(dict.fromkeys((*options.topics, *sorted(state.topics))))
    chosen = list(_partitions(state, topics, options))
    if options.group is not None:
        log = log_offsets(client, chosen, read_committed=options.read_committed) if options.exit_eof else {}
        return Plan(topics, tuple(chosen), {}, {tp: offsets.end for tp, offsets in log.items()})
    log = log_offsets(client, chosen, read_committed=options.read_committed)
    ends = _ends(client, log, options)
    return Plan(topics, tuple(chosen), _starts(client, log, options), ends)


def _partitions(state: ClusterState, topics: Sequence[str], options: ConsumeOptions) -> Iterator[TopicPartition]:
    for topic in topics:
        count = len(state.topics[topic].partitions)
        wanted = range(count) if options.partitions is None else sorted(set(options.partitions))
        missing = [number for number in wanted if number >= count]
        if missing:
            raise no_partition(topic, missing, count)
        yield from (TopicPartition(topic, number) for number in wanted)


def log_offsets(
    client: ClusterClient, partitions: Sequence[TopicPartition], *, read_committed: bool
) -> dict[TopicPartition, LogOffsets]:
    """Both ends of each log. Raises NotFound when a topic is being deleted, Refused when a partition cannot be read."""
    return _every(lambda wanted: read_log_offsets(client, wanted, read_committed=read_committed), partitions)


def _every(
    read: Callable[[Sequence[TopicPartition]], Read[_Answer]], partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, _Answer]:
    """What `read` says about each partition; about missing ones it is asked again."""
    answers: dict[TopicPartition, _Answer] = {}
    absence, wanted = Absence(), partitions
    while True:
        found, gone, unread = read(wanted)
        answers |= found
        lasting = {tp for tp in gone if absence.lasts(tp.topic, missing=True)}
        if lasting or unread or not gone:
            _raise_missing(lasting, unread, nothing=not answers)
            return answers
        wanted = sorted(gone)
        time.sleep(_ABSENT_PAUSE_S)


def _raise_missing(
    gone: Collection[TopicPartition], unread: Mapping[TopicPartition, KctlError], *, nothing: bool
) -> None:
    if gone:
        raise NotFound(f"topic {min(gone).topic} is being deleted")
    if unread:
        tp, reason = min(unread.items(), key=lambda each: each[0])
        if nothing and isinstance(reason, ConnectionFailed):
            raise reason
        raise Refused(f"partition {tp} cannot be read: {reason.message}", hint="--partition reads the others only")


def offsets_at(
    client: ClusterClient, log: Mapping[TopicPartition, LogOffsets], time_ms: int
) -> dict[TopicPartition, int]:
    """The first offset in each log whose record is not older; its end where there is none."""
    return within_logs(_every(lambda wanted: read_offsets_at(client, wanted, time_ms), list(log)), log)


def within_logs(
    found: Mapping[TopicPartition, int], log: Mapping[TopicPartition, LogOffsets]
) -> dict[TopicPartition, int]:
    """Answers to a question for the offset at a time, where none (−1) is the end of the log."""
    return {tp: offset if 0 <= offset < log[tp].end else log[tp].end for tp, offset in found.items()}


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
            hint=f"its log begins at {log.start} and ends before {log.end}",
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
    """Where the last `count` records of each partition begin.

    By offsets first; where compaction or markers left fewer than that, further in front, counting what is there. With
    very many to count it stays at the offsets.
    """
    starts = {tp: max(offsets.start, offsets.end - count) for tp, offsets in log.items()}
    if count == 0 or count * len(log) > _MOST_COUNTED:
        return starts
    found = {tp: starts[tp] for tp in log if log[tp].start == starts[tp]}
    pending, back = {tp: starts[tp] for tp in log if tp not in found}, count
    while pending:
        seen = _offsets_between(client, pending, {tp: log[tp].end for tp in pending}, options)
        for tp, start in list(pending.items()):
            if len(seen[tp]) >= count or start == log[tp].start:
                found[tp] = seen[tp][-count] if len(seen[tp]) >= count else start
                del pending[tp]
        back *= 4
        pending = {tp: max(log[tp].start, log[tp].end - back) for tp in pending}
    return found


def _offsets_between(
    client: ClusterClient,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    options: ConsumeOptions,
) -> dict[TopicPartition, list[int]]:
    """The offsets of the records that a consumer sees in these parts of logs; the last so many of each."""
    most = options.tail or 0
    seen: dict[TopicPartition, list[int]] = {tp: [] for tp in starts}
    fetcher = Fetcher(
        client, starts, read_committed=options.read_committed, tell=lambda _: None, timeout_s=options.timeout_s,
        follow=False,
    )  # fmt: skip
    left = {tp for tp in starts if starts[tp] < ends[tp]}
    try:
        while left:
            for fetched in fetcher.poll(0.2):
                tp = fetched.tp
                if fetched.error_code:  # cut meanwhile
                    left.discard(tp)
                    fetcher.drop(tp)
                    continue
                for chunk, following in decode(tp, fetched.data, fetched.position, fetched.aborted):
                    if chunk is not None:
                        seen[tp] = [*seen[tp], *(offset for offset in chunk.offsets if offset < ends[tp])][-most:]
                    if following >= ends[tp]:
                        left.discard(tp)
                        fetcher.drop(tp)
                        break
    finally:
        fetcher.close()
    return seen
