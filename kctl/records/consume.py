"""Consuming a topic: alone (partitions assigned by hand) or as a member of a group, whose offsets are committed
only for records that were handed over and flushed.

The end of a log is where the position reaches the end offset that was read at the start, not a count of records:
compaction leaves gaps, and transactions put markers into the log that no consumer sees.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kctl.errors import (
    ConnectionFailed,
    KctlError,
    NotFound,
    OperationFailed,
    Refused,
    UsageError,
)
from kctl.lag.collect import LogOffsets, read_log_offsets
from kctl.model import TopicPartition
from kctl.records.consumer import POLL_RECORDS, failure, open_consumer, ours, theirs, unstick
from kctl.records.record import Record, record_of
from kctl.topics.describe import known_topics

if TYPE_CHECKING:
    from kctl.client import ClusterClient

_POLL_MS = 200
_LOOK_AROUND_S = 5.0  # with nothing to read: are topic and brokers still there?
_CLOSE_MS = 5000
_FLUSH_BYTES = 2048  # less than stdout buffers: what a reader that goes away (`| head`) has got is known
_ASSIGNED_S = 3.0  # a group without others has assigned its partitions by then


class Sink(Protocol):
    """Where records go. A record counts as delivered once flush has returned after its write."""

    def write(self, record: Record) -> None: ...

    def flush(self) -> None: ...

    def warn(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class ConsumeOptions:
    """What to read and when to stop.

    partitions: None for all. offset: where to start in each partition; None is the end, or the beginning with
    from_beginning. group: read as a member of it, from where it stands; the start then only matters where it has
    committed nothing. exit_eof: stop at the end that the log has at the start. idle_ms: stop after so long
    without a record. read_committed: leave out aborted transactions, and stop before open ones.
    """

    topic: str
    partitions: tuple[int, ...] | None = None
    offset: int | None = None
    from_beginning: bool = False
    group: str | None = None
    max_messages: int | None = None
    exit_eof: bool = False
    idle_ms: int | None = None
    read_committed: bool = False
    timeout_s: float = 30.0


@dataclass
class ConsumeResult:
    """What was read. committed: next offsets that were committed for the group, by partition (None without one).

    skipped: records that were deleted before they could be read. ended: why it stopped.
    """

    topic: str
    group: str | None
    records: int = 0
    bytes: int = 0
    skipped: int = 0
    ended: str = "interrupted"
    duration_ms: int = 0
    committed: dict[int, int] | None = None
    partitions: dict[int, int] = field(default_factory=dict)


def check_options(options: ConsumeOptions) -> None:
    """Raise UsageError for options that exclude each other."""
    if options.group is not None and (options.partitions is not None or options.offset is not None):
        raise UsageError("--group gets its partitions and offsets from the group: leave out --partition and --offset")
    if options.offset is not None and options.from_beginning:
        raise UsageError("--offset and --from-beginning are two different starts")
    if options.group == "":
        raise UsageError("--group is empty")


def consume(client: ClusterClient, options: ConsumeOptions, sink: Sink) -> ConsumeResult:
    """Read records into `sink` until a limit is reached or Ctrl-C (which is a result, `ended` «interrupted»).

    Raises NotFound for an unknown topic or partition, Refused for a start outside the log, OperationFailed when the
    topic goes away or the log is damaged, ConnectionFailed when no broker answers for timeout_s.
    """
    check_options(options)
    state = known_topics(client, [options.topic])
    count = len(state.topics[options.topic].partitions)
    numbers = range(count) if options.partitions is None else sorted(set(options.partitions))
    missing = [number for number in numbers if number >= count]
    if missing:
        raise NotFound(f"topic {options.topic} has no partition {missing[0]}", hint=f"it has 0 to {count - 1}")
    chosen = [TopicPartition(options.topic, number) for number in numbers]
    log = _log_offsets(client, chosen, options) if options.group is None or options.exit_eof else {}
    starts = {tp: _start(tp, log[tp], options) for tp in log} if options.group is None else {}
    result = ConsumeResult(options.topic, options.group, committed=None if options.group is None else {})
    if options.max_messages == 0 or _nothing_to_read(starts, log, options):
        result.ended = "end" if options.exit_eof else "max-messages"
        return result
    consumer = open_consumer(client, options)
    return _Run(client, consumer, options, sink, log, result).run(starts)


def _log_offsets(
    client: ClusterClient, partitions: Sequence[TopicPartition], options: ConsumeOptions
) -> dict[TopicPartition, LogOffsets]:
    offsets, gone, unread = read_log_offsets(client, partitions, read_committed=options.read_committed)
    if gone:
        raise NotFound(f"topic {options.topic} is being deleted")
    if unread:
        tp, reason = min(unread.items())
        if not offsets and isinstance(reason, ConnectionFailed):
            raise reason
        raise Refused(f"partition {tp} cannot be read: {reason.message}", hint="--partition reads the others only")
    return offsets


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


def _nothing_to_read(
    starts: Mapping[TopicPartition, int], log: Mapping[TopicPartition, LogOffsets], options: ConsumeOptions
) -> bool:
    return options.exit_eof and options.group is None and all(starts[tp] >= log[tp].end for tp in starts)


class _Run:
    """One reading: the consumer, where it stands, and what has been delivered."""

    def __init__(
        self,
        client: ClusterClient,
        consumer: Any,
        options: ConsumeOptions,
        sink: Sink,
        log: dict[TopicPartition, LogOffsets],
        result: ConsumeResult,
    ) -> None:
        self._client, self._consumer, self._options, self._sink = client, consumer, options, sink
        self._ends = {tp: offsets.end for tp, offsets in log.items()} if options.exit_eof else {}
        self._unflushed: dict[TopicPartition, int] = {}  # the next offset after what was written
        self._delivered: dict[TopicPartition, int] = {}  # and flushed
        self._result = result
        now = time.monotonic()
        self._started = self._last_record = self._last_look = self._last_answer = now
        self._waiting_told = False
        self._leaderless: set[TopicPartition] = set()

    def run(self, starts: Mapping[TopicPartition, int]) -> ConsumeResult:
        """Read until it ends; then commit what was delivered, and close the consumer."""
        started = time.monotonic()
        try:
            try:
                self._attach(starts)
                while not self._ended():
                    self._poll()
            except KeyboardInterrupt:
                self._result.ended = "interrupted"
                self._flush()
            except BrokenPipeError:  # `| head` has seen enough: what was flushed before was handed over
                self._commit()
                raise
            self._commit()
        finally:
            self._close()
        self._result.duration_ms = round((time.monotonic() - started) * 1000)
        return self._result

    def _attach(self, starts: Mapping[TopicPartition, int]) -> None:
        if self._options.group is not None:
            self._consumer.subscribe([self._options.topic])
            return
        self._consumer.assign([theirs(tp) for tp in starts])
        for tp, offset in starts.items():
            self._consumer.seek(theirs(tp), offset)

    def _ended(self) -> bool:
        result, options = self._result, self._options
        if options.max_messages is not None and result.records >= options.max_messages:
            result.ended = "max-messages"
        elif options.exit_eof and self._at_the_end():
            result.ended = "end"
        elif options.idle_ms is not None and time.monotonic() - self._last_record > options.idle_ms / 1000:
            result.ended = "idle"
        else:
            return False
        return True

    def _at_the_end(self) -> bool:
        """Every assigned partition has reached the end that its log had at the start."""
        assigned = [ours(tp) for tp in self._consumer.assignment()]
        return bool(assigned) and all(self._position(tp) >= self._ends[tp] for tp in assigned)

    def _position(self, tp: TopicPartition) -> int:
        from kafka.errors import KafkaError

        with suppress(KafkaError):
            position = self._consumer.position(theirs(tp), timeout_ms=_POLL_MS)
            if position is not None:
                return int(position)
        return -1

    def _poll(self) -> None:
        from kafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError

        limit = POLL_RECORDS
        if self._options.max_messages is not None:
            limit = min(limit, self._options.max_messages - self._result.records)
        unstick(self._consumer)
        try:
            batches = self._consumer.poll(timeout_ms=_POLL_MS, max_records=limit)
        except NoOffsetForPartitionError as exc:
            self._first_offsets([ours(tp) for tp in exc.args[0]])
            return
        except OffsetOutOfRangeError as exc:
            self._out_of_range({ours(tp): offset for tp, offset in exc.args[0].items()})
            return
        except KafkaError as exc:
            raise failure(exc, self._options) from None
        except Exception as exc:
            raise self._undecodable(exc) from exc
        if batches:
            self._last_record = self._last_look = self._last_answer = time.monotonic()
            self._deliver(record_of(message) for messages in batches.values() for message in messages)
        elif time.monotonic() - self._last_look > _LOOK_AROUND_S:
            self._look_around()
        self._say_waiting()

    def _say_waiting(self) -> None:
        """Once: why a member of a group gets nothing."""
        if self._options.group is None or self._waiting_told or self._result.records:
            return
        if time.monotonic() - self._started > _ASSIGNED_S and not self._consumer.assignment():
            self._waiting_told = True
            self._sink.warn(
                f"group {self._options.group} has assigned nothing yet: it waits for its other members,"
                " and for the session of one that died to end"
            )

    def _undecodable(self, exc: Exception) -> KctlError:
        """kafka-python lets what a codec or its own parser raises pass, and does not tell where the batch is."""
        at = [f"{tp.partition}:{self._position(tp)}" for tp in map(ours, sorted(self._consumer.assignment()))]
        return OperationFailed(
            f"topic {self._options.topic}: a record batch cannot be decoded ({type(exc).__name__}: {exc})",
            hint=f"it stands at or after one of these positions (partition:offset): {' '.join(at[:20])};"
            " --partition and --offset read on behind it",
        )

    def _deliver(self, records: Iterator[Record]) -> None:
        result, flushed = self._result, self._result.bytes
        for record in records:
            if result.bytes - flushed > _FLUSH_BYTES:
                self._flush()
                flushed = result.bytes
            self._sink.write(record)
            self._unflushed[TopicPartition(record.topic, record.partition)] = record.offset + 1
            result.records += 1
            result.bytes += len(record.key or b"") + len(record.value or b"")
            result.partitions[record.partition] = result.partitions.get(record.partition, 0) + 1
        self._flush()

    def _flush(self) -> None:
        self._sink.flush()
        self._delivered |= self._unflushed
        self._unflushed.clear()

    def _first_offsets(self, partitions: Collection[TopicPartition]) -> None:
        """A group that has committed nothing starts where the options say."""
        for tp, log in _log_offsets(self._client, sorted(partitions), self._options).items():
            self._consumer.seek(theirs(tp), _start(tp, log, self._options))

    def _out_of_range(self, positions: Mapping[TopicPartition, int]) -> None:
        """The log was cut under the reader: deleted in front, or truncated behind (unclean election)."""
        for tp, log in _log_offsets(self._client, sorted(positions), self._options).items():
            position = positions[tp]
            if position < log.start:
                self._result.skipped += log.start - position
                self._sink.warn(f"{tp}: offsets {position} to {log.start - 1} were deleted before they were read")
                self._consumer.seek(theirs(tp), log.start)
            elif position > log.end:
                self._sink.warn(f"{tp}: the log ends at {log.end}, before the position {position}: it was truncated")
                self._consumer.seek(theirs(tp), log.end)

    def _look_around(self) -> None:
        """Nothing came for a while: say why, or fail, rather than wait for what cannot come."""
        self._last_look = time.monotonic()
        try:
            topics = self._client.metadata([self._options.topic]).topics
        except ConnectionFailed:
            if time.monotonic() - self._last_answer > self._options.timeout_s:
                raise
            return
        self._last_answer = time.monotonic()
        topic = topics.get(self._options.topic)
        if topic is None:
            raise OperationFailed(f"topic {self._options.topic} was deleted while it was read")
        assigned = {ours(tp) for tp in self._consumer.assignment()}
        leaderless = {p.tp for p in topic.partitions if p.offline and p.tp in assigned}
        for tp in sorted(leaderless - self._leaderless):
            self._sink.warn(f"{tp} has no leader; waiting for one")
        self._leaderless = leaderless

    def _commit(self) -> None:
        """For a group: the offsets after what was delivered, of partitions that are still its own.

        Where nothing came it is the position, as Java's consumers commit it: an unread partition has a lag, too.
        """
        from kafka.errors import KafkaError
        from kafka.structs import OffsetAndMetadata

        if self._options.group is None or self._result.committed is None:
            return
        assigned = {ours(tp) for tp in self._consumer.assignment()}
        own = {tp: offset for tp, offset in self._delivered.items() if tp in assigned}
        untouched = assigned - self._delivered.keys() - self._unflushed.keys()
        positions = {tp: self._position(tp) for tp in sorted(untouched)}
        own |= {tp: offset for tp, offset in positions.items() if offset >= 0}
        if own:
            try:
                self._consumer.commit(
                    {theirs(tp): OffsetAndMetadata(offset, "", -1) for tp, offset in own.items()},
                    timeout_ms=_CLOSE_MS,
                )
            except KafkaError as exc:
                lost = "its offsets were not committed, and will be read again"
                raise failure(exc, self._options, what=lost) from None
        self._result.committed = {tp.partition: offset for tp, offset in own.items()}

    def _close(self) -> None:
        from kafka.errors import KafkaError

        with suppress(KafkaError, KeyboardInterrupt):
            self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MS)
