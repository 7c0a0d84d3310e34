"""Reading as a member of a group, by kafka-python's consumer: it joins, shares the partitions and leaves.

Offsets are committed only for records that were handed over and flushed. Where a group goes on whose offset is not in
the log any more, and where it begins, is decided here and said: the consumer itself jumps nowhere.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kctl.errors import ConnectionFailed, KctlError, OperationFailed
from kctl.lag.collect import LogOffsets
from kctl.model import TopicPartition
from kctl.records.absence import Absence
from kctl.records.chunk import Chunk
from kctl.records.consume_plan import Plan, log_offsets
from kctl.records.consumer import (
    POLL_RECORDS,
    failure,
    joined,
    open_consumer,
    ours,
    positions,
    subscribe,
    theirs,
    unstick,
)
from kctl.records.delivery import Delivery, Sink
from kctl.records.direct import moved_into
from kctl.records.options import EARLIEST, LATEST, ConsumeOptions
from kctl.segment.record import Header

if TYPE_CHECKING:
    from kctl.client import ClusterClient

_POLL_MS = 200
_LOOK_AROUND_S = 5.0  # with nothing to read: are topic and brokers still there?
_LOOK_AGAIN_S = 0.5
_CLOSE_MS = 5000
_FLUSH_BYTES = 2048  # less than stdout buffers: what a reader that goes away (`| head`) has got is known
_ASSIGNED_S = 3.0  # a group without others has assigned its partitions by then


class GroupReader:
    """One reading. skipped: records that were deleted before they were read; committed: next offsets, at the end."""

    def __init__(
        self, client: ClusterClient, options: ConsumeOptions, plan: Plan, delivery: Delivery, sink: Sink
    ) -> None:
        self._client, self._options, self._plan, self._sink, self._delivery = client, options, plan, sink, delivery
        self._consumer = open_consumer(client, options)
        self._unflushed: dict[TopicPartition, int] = {}  # the next offset after what was written
        # Where the group goes on, of partitions that are its own: behind what was flushed, before what was not. Never
        # the consumer's position alone: that stands behind what a poll returned, shown or not.
        self._goes_on: dict[TopicPartition, int] = {}
        self.skipped = 0
        self.committed: dict[TopicPartition, int] = {}
        now = time.monotonic()
        self._started = self._last_look = self._last_answer = now
        self._joined = now  # or when it last was a member that has been told its partitions
        self._absence = Absence()
        self._waiting_told = False
        self._leaderless: set[TopicPartition] = set()

    def run(self) -> str:
        """Read until it ends: why it did; then commit what was delivered, and leave the group."""
        try:
            try:
                subscribe(self._consumer, self._plan.topics, self._no_longer_ours)
                while (why := self._delivery.why_ended(self._at_the_end)) is None:
                    self._poll()
                    self._delivery.tick()
            except KeyboardInterrupt:
                why = "interrupted"
                self._flush()
            except BrokenPipeError:  # `| head` has seen enough: what was flushed before was handed over
                self._commit()
                raise
            except KctlError:  # what was shown before the damage is not shown again
                self._flush()
                with suppress(KctlError):
                    self._commit()
                raise
            self._commit()
        finally:
            self._close()
        return why

    def _at_the_end(self) -> bool:
        """Every assigned partition has reached the end that its log had at the start."""
        if not self._options.exit_eof:
            return False
        assigned = [ours(tp) for tp in self._consumer.assignment()]
        return bool(assigned) and all(self._goes_on.get(tp, -1) >= self._plan.ends.get(tp, 0) for tp in assigned)

    def _position(self, tp: TopicPartition) -> int:
        from kafka.errors import KafkaError

        with suppress(KafkaError):
            position = self._consumer.position(theirs(tp), timeout_ms=_POLL_MS)
            if position is not None:
                return int(position)
        return -1

    def _poll(self) -> None:
        returned = self._fetched()
        now = time.monotonic()
        if returned:
            self._last_look = self._last_answer = now
            for tp, messages in returned.items():
                self._deliver(tp, messages)
            self._flush()
        elif now - self._last_look > (_LOOK_AGAIN_S if self._absence else _LOOK_AROUND_S):
            self._look_around()
        self._say_waiting()
        if joined(self._consumer):
            self._joined = now
        elif now - self._joined <= self._options.timeout_s:
            self._delivery.not_idle()  # it may not read yet

    def _fetched(self) -> dict[TopicPartition, list[Any]]:
        """What the consumer's poll returns; its position is behind that already."""
        from kafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError

        limit = POLL_RECORDS
        if self._options.max_messages is not None and self._options.selection.everything:
            limit = min(limit, self._options.max_messages - self._delivery.records)
        unstick(self._consumer)
        try:
            batches = self._consumer.poll(timeout_ms=_POLL_MS, max_records=limit)
        except NoOffsetForPartitionError as exc:
            self._first_offsets([ours(tp) for tp in exc.args[0]])
        except OffsetOutOfRangeError as exc:
            self._out_of_range({ours(tp): offset for tp, offset in exc.args[0].items()})
        except KafkaError as exc:
            raise failure(exc, self._options) from None
        except Exception as exc:
            raise self._undecodable(exc) from exc
        else:
            returned = {ours(tp): messages for tp, messages in batches.items()}
            self._goes_on |= {tp: at for tp, at in positions(self._consumer).items() if tp not in returned}
            self._goes_on |= {tp: messages[0].offset for tp, messages in returned.items()}
            return returned
        return {}

    def _say_waiting(self) -> None:
        """Once: why a member of a group gets nothing."""
        if self._waiting_told or self._delivery.records:
            return
        if time.monotonic() - self._started > _ASSIGNED_S and not self._consumer.assignment():
            self._waiting_told = True
            self._sink.warn(
                f"group {self._options.group} has assigned nothing yet: it waits for its other members,"
                " and for the session of one that died to end"
            )

    def _undecodable(self, exc: Exception) -> KctlError:
        """kafka-python lets what a codec or its own parser raises pass, and does not tell where the batch is."""
        at = [f"{tp}:{self._position(tp)}" for tp in map(ours, sorted(self._consumer.assignment()))]
        return OperationFailed(
            f"{self._subject}: a record batch cannot be decoded ({type(exc).__name__}: {exc})",
            hint=f"it stands at or after one of these positions (partition:offset): {' '.join(at[:20])};"
            " `kctl consume` without --group says where, and `kctl group reset-offsets` moves the group behind it",
        )

    @property
    def _subject(self) -> str:
        return f"topic {self._plan.topics[0]}" if len(self._plan.topics) == 1 else f"group {self._options.group}"

    def _deliver(self, tp: TopicPartition, messages: list[Any]) -> None:
        """Some at a time, each flushed before the next."""
        begin = 0
        while begin < len(messages) and not self._delivery.full:
            end, size = begin, 0
            while end < len(messages) and size <= _FLUSH_BYTES:
                size += len(messages[end].key or b"") + len(messages[end].value or b"")
                end += 1
            chunk = _chunk(tp, messages[begin:end])
            dealt = self._delivery.take(chunk)
            if dealt:
                self._unflushed[tp] = chunk.offsets[dealt - 1] + 1
                self._flush()
            begin = end
        last = self._delivery.ends.get(tp)
        if last is not None and messages[-1].offset >= last and not self._delivery.full:
            # What lies behind its end was not shown, so that its position must not stay there.
            self._go_on_at(tp, last)
            self._consumer.pause(theirs(tp))

    def _go_on_at(self, tp: TopicPartition, offset: int) -> None:
        self._consumer.seek(theirs(tp), offset)
        self._goes_on[tp] = offset

    def _no_longer_ours(self, partitions: Collection[TopicPartition]) -> None:
        """A rebalance: another member may read on, and its offsets must not be taken back later."""
        for tp in partitions:
            self._unflushed.pop(tp, None)
            self._goes_on.pop(tp, None)

    def _flush(self) -> None:
        self._delivery.flush()
        self._goes_on |= self._unflushed
        self._unflushed.clear()

    def _first_offsets(self, partitions: Collection[TopicPartition]) -> None:
        """A group that has committed nothing starts where the options say."""
        options = self._options
        earliest = options.offset_reset == EARLIEST or options.from_beginning
        for tp, log in log_offsets(self._client, sorted(partitions), read_committed=options.read_committed).items():
            self._go_on_at(tp, log.start if earliest else log.end)

    def _out_of_range(self, asked: Mapping[TopicPartition, int]) -> None:
        """The log was cut under the reader: deleted in front, or truncated behind (unclean election)."""
        for tp, log in log_offsets(self._client, sorted(asked), read_committed=False).items():
            self._go_on_at(tp, self._moved(tp, asked[tp], log))

    def _moved(self, tp: TopicPartition, position: int, log: LogOffsets) -> int:
        if log.start <= position <= log.end:
            return position
        if self._options.offset_reset == LATEST:
            self.skipped += max(0, log.end - max(position, log.start)) + max(0, log.start - position)
            self._sink.warn(f"{tp}: offset {position} is not in the log any more; it goes on at the end, {log.end}")
            return log.end
        if self._options.offset_reset == EARLIEST and position > log.end:
            self._sink.warn(f"{tp}: the log ends at {log.end}, before the position {position}; it begins anew")
            return log.start
        offset, lost = moved_into(tp, position, log, self._sink)
        self.skipped += lost
        return offset

    def _look_around(self) -> None:
        """Nothing came for a while: say why, or fail, rather than wait for what cannot come."""
        self._last_look = time.monotonic()
        try:
            topics = self._client.metadata(self._plan.topics).topics
        except ConnectionFailed:
            if time.monotonic() - self._last_answer > self._options.timeout_s:
                raise
            return
        self._last_answer = time.monotonic()
        for name in self._plan.topics:
            if self._absence.lasts(name, missing=name not in topics):
                raise OperationFailed(f"topic {name} was deleted while it was read")
        assigned = {ours(tp) for tp in self._consumer.assignment()}
        every = [each for topic in topics.values() for each in topic.partitions]
        leaderless = {each.tp for each in every if each.offline and each.tp in assigned}
        for tp in sorted(leaderless - self._leaderless):
            self._sink.warn(f"{tp} has no leader; waiting for one")
        self._leaderless = leaderless

    def _commit(self) -> None:
        """Where it goes on in the partitions that are still its own, those in which nothing came as well, as Java's
        consumers commit it: an unread partition has a lag, too."""
        from kafka.errors import KafkaError
        from kafka.structs import OffsetAndMetadata

        assigned = {ours(tp) for tp in self._consumer.assignment()}
        own = {tp: offset for tp, offset in sorted(self._goes_on.items()) if tp in assigned}
        if own:
            try:
                self._consumer.commit(
                    {theirs(tp): OffsetAndMetadata(offset, "", -1) for tp, offset in own.items()},
                    timeout_ms=_CLOSE_MS,
                )
            except KafkaError as exc:
                lost = "its offsets were not committed, and will be read again"
                raise failure(exc, self._options, what=lost) from None
        self.committed = own

    def _close(self) -> None:
        from kafka.errors import KafkaError

        with suppress(KafkaError, KeyboardInterrupt):
            self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MS)


def _chunk(tp: TopicPartition, messages: list[Any]) -> Chunk:
    """kafka-python's ConsumerRecords as columns."""
    headers: dict[int, tuple[Header, ...]] = {}
    for index, message in enumerate(messages):
        if message.headers:
            headers[index] = tuple((name.encode("utf-8", "surrogateescape"), data) for name, data in message.headers)
    times = [-1 if message.timestamp is None else message.timestamp for message in messages]
    return Chunk(
        tp, [message.offset for message in messages], times, [message.key for message in messages],
        [message.value for message in messages], headers,
    )  # fmt: skip
