"""Reading as a member of a group: kafka-python's consumer is the member, and our fetcher reads what it was given.

Offsets are committed only for records that were handed over and flushed. Where a group goes on whose offset is not in
the log any more, and where it begins, is decided here and said: the consumer itself jumps nowhere.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kctl.cluster.log_offsets import LogOffsets, read_log_offsets
from kctl.errors import ConnectionFailed, KctlError, OperationFailed
from kctl.model import TopicPartition
from kctl.protocol.connection import UNREADABLE
from kctl.records.chunk import Chunk
from kctl.records.consume.absence import Absence
from kctl.records.consume.asking import Question
from kctl.records.consume.batches import Decoded, decode
from kctl.records.consume.consumer import (
    Ownership,
    failure,
    open_consumer,
    ours,
    positions,
    set_position,
    settled,
    theirs,
    unstick,
)
from kctl.records.consume.delivery import Delivery, Sink
from kctl.records.consume.direct import moved_into
from kctl.records.consume.fetcher import Fetched, Fetcher
from kctl.records.consume.joining import Joining
from kctl.records.consume.options import EARLIEST, LATEST, ConsumeOptions
from kctl.records.consume.plan import Plan, log_offsets

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.2
_SERVE_EVERY_S = 0.1  # poll() of the consumer, which notices rebalances and commits
_JOIN_MS, _REBALANCE_MS = (
    50,
    200,
)  # how long it may wait; the latter also for the commit before it gives partitions away
_LOOK_AROUND_S = 5.0  # with nothing to read: are topic and brokers still there?
_LOOK_AGAIN_S = 0.5
_CLOSE_MS = 5000
# Shown between two flushes. Few bytes at first, less than stdout buffers: what a reader that goes away (`| head`) has
# got is known.
_FLUSH_BYTES, _MOST_FLUSH_BYTES = 2 << 10, 16 << 10
_ASSIGNED_S = 3.0  # a group without others has assigned its partitions by then
_NO_END = 1 << 63


class GroupReader:
    """One reading. skipped: records that were deleted before they were read; committed: next offsets, at the end."""

    def __init__(
        self, client: ClusterClient, options: ConsumeOptions, plan: Plan, delivery: Delivery, sink: Sink
    ) -> None:
        self._client, self._options, self._plan, self._sink, self._delivery = client, options, plan, sink, delivery
        self._consumer = open_consumer(client, options)
        self._ownership = Ownership()
        self._fetcher = Fetcher(
            client, {}, read_committed=options.read_committed, tell=sink.warn, timeout_s=options.timeout_s,
            follow=not options.finite,
        )  # fmt: skip
        self._positions: dict[TopicPartition, int] = {}  # of what is its own: the next offset after what was flushed
        self._unflushed: dict[TopicPartition, int] = {}  # and after what was written
        self._advanced: set[TopicPartition] = set()  # the consumer does not know their position yet
        self._flush_bytes = _FLUSH_BYTES
        self.skipped = 0
        self.committed: dict[TopicPartition, int] = {}
        now = time.monotonic()
        self._started = self._last_look = self._last_answer = now
        self._served = 0.0
        self._joined = now  # when it last was a member that has been told its partitions
        self._absence = Absence()
        self._cut: dict[TopicPartition, int] = {}  # positions that are not in the log any more
        self._places = Question(options, follow=not options.finite)
        self._waiting_told = False
        self._joining = Joining(client, options.group or "", options.timeout_s)

    def run(self) -> str:
        """Read until it ends: why it did; then commit what was delivered, and leave the group."""
        try:
            try:
                self._consumer.subscribe(list(self._plan.topics), listener=self._ownership.listener(self._consumer))
                while (why := self._delivery.why_ended(self._at_the_end)) is None:
                    self._round()
            except KeyboardInterrupt:
                self._flush()
                self._commit_interrupted()
                return "interrupted"
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
        owned = self._ownership.owned
        return bool(owned) and all(self._positions.get(tp, -1) >= self._plan.ends.get(tp, 0) for tp in owned)

    # --- the member -----------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Be a member: what is new of it happens in here. Commits are of what the consumer has as its positions."""
        calm = settled(self._consumer) and self._ownership.owned <= self._positions.keys()
        if calm and time.monotonic() - self._served < _SERVE_EVERY_S:
            return
        self._hand_over()
        unstick(self._consumer)
        wait_ms = 0 if calm else _REBALANCE_MS if self._ownership.owned else _JOIN_MS
        self._poll(wait_ms)
        self._take_up()
        self._served = time.monotonic()
        self._say_waiting()

    def _poll(self, wait_ms: int) -> None:
        from kafka.errors import KafkaError, NoOffsetForPartitionError

        try:
            self._consumer.poll(timeout_ms=wait_ms)
        except NoOffsetForPartitionError as exc:
            self._first_offsets([ours(tp) for tp in exc.args[0]])
        except KafkaError as exc:
            raise failure(exc, self._options) from None
        except UNREADABLE as exc:
            raise ConnectionFailed(
                f"group {self._options.group}: cannot parse a response of the coordinator ({type(exc).__name__})"
            ) from None

    def _hand_over(self) -> None:
        """Let the consumer know what was delivered."""
        for tp in self._advanced:
            set_position(self._consumer, tp, self._positions[tp])
        self._advanced.clear()

    def _take_up(self) -> None:
        """Read what was given, from where the group stands; throw away what is on its way of what was taken."""
        for tp in self._ownership.changes():
            self._fetcher.drop(tp)
            self._positions.pop(tp, None)
            self._cut.pop(tp, None)
            self._advanced.discard(tp)
        new = self._ownership.owned - self._positions.keys()
        if new:
            for tp, offset in positions(self._consumer).items():
                if tp in new:
                    self._positions[tp] = offset
                    if offset < self._plan.ends.get(tp, _NO_END):
                        self._fetcher.seek(tp, offset)

    def _say_waiting(self) -> None:
        """Once: why a member of a group gets nothing."""
        if self._waiting_told or self._delivery.records:
            return
        if time.monotonic() - self._started > _ASSIGNED_S and not self._consumer.assignment():
            self._waiting_told = True
            self._sink.warn(
                f"group {self._options.group} has assigned nothing yet: its coordinator may just have begun,"
                " or waits for other members, or for the session of one that died to end"
            )

    def _first_offsets(self, partitions: Collection[TopicPartition]) -> None:
        """A group that has committed nothing starts where the options say."""
        options = self._options
        earliest = options.offset_reset == EARLIEST or options.from_beginning
        for tp, log in log_offsets(self._client, sorted(partitions), read_committed=options.read_committed).items():
            set_position(self._consumer, tp, log.start if earliest else log.end)

    # --- its records ----------------------------------------------------------------------------------------------

    def _round(self) -> None:
        self._serve()
        self._joining.check(is_member=settled(self._consumer))
        came = False
        for fetched in self._fetcher.poll(_POLL_S):
            position = self._positions.get(fetched.tp)
            if position is None:
                continue
            if fetched.position != position:  # it was given anew while this was on its way
                self._fetcher.seek(fetched.tp, position)
            elif fetched.error_code:
                self._cut[fetched.tp] = position
            elif fetched.data:
                came = True
                self._read(fetched)
                self._delivery.tick()
                if self._delivery.full:
                    break
        self._out_of_range()
        if came:
            self._last_look = self._last_answer = time.monotonic()
        elif time.monotonic() - self._last_look > (_LOOK_AGAIN_S if self._absence else _LOOK_AROUND_S):
            self._look_around()
        if self._searching():
            self._delivery.not_idle()
        self._delivery.tick()

    def _searching(self) -> bool:
        """It may not or cannot read just now, for no longer than timeout_s."""
        now = time.monotonic()
        if settled(self._consumer):
            self._joined = now
        joining = self._joined < now <= self._joined + self._options.timeout_s
        return joining or self._fetcher.searching or self._places.asking

    def _read(self, fetched: Fetched) -> None:
        """Up to the partition's end, --max-messages, or until it is taken away."""
        tp = fetched.tp
        for chunk, following in self._decoded(fetched):
            if chunk is not None and not self._deliver(chunk):
                return
            if self._go_on(tp, following):
                return

    def _go_on(self, tp: TopicPartition, offset: int) -> bool:
        """All before `offset` was delivered; whether the partition's end is reached, behind which nothing is."""
        end = self._plan.ends.get(tp, _NO_END)
        self._positions[tp] = min(offset, max(end, self._positions[tp]))
        self._advanced.add(tp)
        if offset < end:
            return False
        self._fetcher.drop(tp)
        return True

    def _decoded(self, fetched: Fetched) -> Iterator[Decoded]:
        try:
            yield from decode(fetched.tp, fetched.data, fetched.position, fetched.aborted)
        except OperationFailed as exc:
            behind = exc.details.get("next_offset", "N")
            hint = (
                f"`kctl group reset-offsets {self._options.group} --topic {fetched.tp.topic}:{fetched.tp.partition}"
                f" --to-offset {behind}` moves the group behind it"
            )
            raise OperationFailed(exc.message, hint=hint, details=exc.details) from None

    def _deliver(self, chunk: Chunk) -> bool:
        """Some at a time, each flushed before the next; whether more of the partition is to be read."""
        begin, average = 0, max(1, chunk.size_bytes // chunk.size)
        while begin < chunk.size:
            count = max(1, self._flush_bytes // average)
            self._flush_bytes = min(2 * self._flush_bytes, _MOST_FLUSH_BYTES)
            part = chunk.part(begin, begin + count)
            dealt = self._delivery.take(part)
            if dealt:
                self._unflushed[chunk.tp] = part.offsets[dealt - 1] + 1
                self._flush()
            if self._delivery.full:
                return False
            if dealt < part.size:  # its end
                return True
            begin += count
            if time.monotonic() - self._served >= _SERVE_EVERY_S:
                self._serve()
                if self._positions.get(chunk.tp) != part.offsets[-1] + 1:  # it was taken away
                    return False
        return True

    def _flush(self) -> None:
        self._delivery.flush()
        self._positions |= self._unflushed
        self._advanced |= self._unflushed.keys()
        self._unflushed.clear()

    def _out_of_range(self) -> None:
        """Logs were cut under the reader: deleted in front, or truncated behind (unclean election). Until their
        leaders say where, nothing is asked of these partitions."""
        if not self._cut or not self._places.due:
            return
        for tp, log in self._places.ask(partial(read_log_offsets, self._client), sorted(self._cut)).items():
            self._positions[tp] = self._moved(tp, self._cut.pop(tp), log)
            self._fetcher.seek(tp, self._positions[tp])
            self._go_on(tp, self._positions[tp])

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
        """Nothing came for a while: fail rather than wait for what cannot come."""
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

    # --- the end --------------------------------------------------------------------------------------------------

    def _commit(self) -> None:
        """The offsets after what was delivered, of partitions that are still its own.

        Where nothing came it is the position, as Java's consumers commit it: an unread partition has a lag, too.
        """
        from kafka.errors import KafkaError
        from kafka.structs import OffsetAndMetadata

        for tp in self._ownership.changes():  # a poll() that was interrupted: its positions count
            self._positions.pop(tp, None)
            self._advanced.discard(tp)
        self._hand_over()
        own = dict(sorted(positions(self._consumer).items()))
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

    def _commit_interrupted(self) -> None:
        """Commit after Ctrl-C. A failure is a warning: in a rebalance, the coordinator may refuse the commit."""
        try:
            self._commit()
        except KctlError as exc:
            self._sink.warn(exc.message)

    def _close(self) -> None:
        from kafka.errors import KafkaError

        self._fetcher.close()
        with suppress(KafkaError, KeyboardInterrupt):
            self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MS)
