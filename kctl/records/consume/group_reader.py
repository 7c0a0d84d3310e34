"""Read as a member of a group. kafka-python's consumer is the member; kctl's fetcher reads its partitions.

Offsets are committed only for records that were delivered and flushed. The start of a new group, and of a group whose
offset is no longer in the log, is chosen and reported here: the consumer itself never resets its position.
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
from kctl.records.consume.batches import Decoded, decode
from kctl.records.consume.consumer import (
    Ownership,
    failure,
    from_kafka,
    is_settled,
    open_consumer,
    positions,
    set_position,
    to_kafka,
    unstick,
)
from kctl.records.consume.delivery import Delivery, Sink
from kctl.records.consume.direct import clamp_to_log
from kctl.records.consume.fetcher import Fetched, Fetcher
from kctl.records.consume.joining import Joining
from kctl.records.consume.leader_query import LeaderQuery
from kctl.records.consume.options import EARLIEST, LATEST, ConsumeOptions
from kctl.records.consume.plan import ReadPlan, log_offsets

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.2
_SERVE_EVERY_S = 0.1  # between calls of the consumer's poll(), which handles rebalances and commits
# How long poll() may wait; the second also covers the commit before partitions are revoked.
_JOIN_MS, _REBALANCE_MS = 50, 200
_CHECK_EVERY_S = 5.0  # while no records arrive: do the topics and brokers still exist?
_RECHECK_S = 0.5
_CLOSE_MS = 5000
# Bytes written between two flushes: few at first, fewer than stdout buffers, so that kctl knows what a reader that
# exits (`| head`) has received.
_FLUSH_BYTES, _MAX_FLUSH_BYTES = 2 << 10, 16 << 10
_ASSIGNED_S = 3.0  # a group without other members has assigned its partitions by then
_NO_END = 1 << 63


class GroupReader:
    """A reader as a group member.

    skipped: records that were deleted before they were read. committed: the offsets committed at the end.
    """

    def __init__(
        self, client: ClusterClient, options: ConsumeOptions, plan: ReadPlan, delivery: Delivery, sink: Sink
    ) -> None:
        self._client, self._options, self._plan, self._sink, self._delivery = client, options, plan, sink, delivery
        self._consumer = open_consumer(client, options)
        self._ownership = Ownership()
        self._fetcher = Fetcher(
            client, {}, read_committed=options.read_committed, warn=sink.warn, timeout_s=options.timeout_s,
            follow=not options.finite,
        )  # fmt: skip
        self._positions: dict[TopicPartition, int] = {}  # of owned partitions: the offset after the flushed records
        self._unflushed: dict[TopicPartition, int] = {}  # the offset after the written records
        self._advanced: set[TopicPartition] = set()  # partitions whose positions are not yet set on the consumer
        self._flush_bytes = _FLUSH_BYTES
        self.skipped = 0
        self.committed: dict[TopicPartition, int] = {}
        now = time.monotonic()
        self._started = self._last_check = self._last_response = now
        self._served = 0.0
        self._joined = now  # when this member was last settled
        self._absence = Absence()
        self._out_of_range: dict[TopicPartition, int] = {}  # positions that are no longer in the log
        self._log_query = LeaderQuery(options, follow=not options.finite)
        self._wait_reported = False
        self._joining = Joining(client, options.group or "", options.timeout_s)

    def run(self) -> str:
        """Read until an end is reached, commit the delivered records, leave the group, and return the reason."""
        try:
            try:
                self._consumer.subscribe(list(self._plan.topics), listener=self._ownership.listener(self._consumer))
                while (reason := self._delivery.why_ended(self._at_end)) is None:
                    self._round()
            except KeyboardInterrupt:
                self._flush()
                self._commit_interrupted()
                return "interrupted"
            except BrokenPipeError:  # `| head` exited: everything flushed before was delivered
                self._commit()
                raise
            except KctlError:  # records delivered before the failure are not delivered again
                self._flush()
                with suppress(KctlError):
                    self._commit()
                raise
            self._commit()
        finally:
            self._close()
        return reason

    def _at_end(self) -> bool:
        """Return True if every assigned partition has reached the end that its log had at the start."""
        if not self._options.exit_eof:
            return False
        owned = self._ownership.owned
        return bool(owned) and all(self._positions.get(tp, -1) >= self._plan.ends.get(tp, 0) for tp in owned)

    # --- the member -----------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Run the consumer's poll(), and adopt changes to the assignment. poll() commits the consumer's positions."""
        settled = is_settled(self._consumer) and self._ownership.owned <= self._positions.keys()
        if settled and time.monotonic() - self._served < _SERVE_EVERY_S:
            return
        self._sync_positions()
        unstick(self._consumer)
        wait_ms = 0 if settled else _REBALANCE_MS if self._ownership.owned else _JOIN_MS
        self._poll(wait_ms)
        self._adopt_assignment()
        self._served = time.monotonic()
        self._report_wait()

    def _poll(self, wait_ms: int) -> None:
        from kafka.errors import KafkaError, NoOffsetForPartitionError

        try:
            self._consumer.poll(timeout_ms=wait_ms)
        except NoOffsetForPartitionError as exc:
            self._first_offsets([from_kafka(tp) for tp in exc.args[0]])
        except KafkaError as exc:
            raise failure(exc, self._options) from None
        except UNREADABLE as exc:
            raise ConnectionFailed(
                f"group {self._options.group}: cannot parse a response of the coordinator ({type(exc).__name__})"
            ) from None

    def _sync_positions(self) -> None:
        """Set the consumer's positions to the delivered offsets."""
        for tp in self._advanced:
            set_position(self._consumer, tp, self._positions[tp])
        self._advanced.clear()

    def _adopt_assignment(self) -> None:
        """Fetch new partitions from the group's offsets, and drop the responses of revoked partitions."""
        for tp in self._ownership.changes():
            self._fetcher.drop(tp)
            self._positions.pop(tp, None)
            self._out_of_range.pop(tp, None)
            self._advanced.discard(tp)
        new = self._ownership.owned - self._positions.keys()
        if new:
            for tp, offset in positions(self._consumer).items():
                if tp in new:
                    self._positions[tp] = offset
                    if offset < self._plan.ends.get(tp, _NO_END):
                        self._fetcher.seek(tp, offset)

    def _report_wait(self) -> None:
        """Warn once if the group assigns no partitions."""
        if self._wait_reported or self._delivery.records:
            return
        if time.monotonic() - self._started > _ASSIGNED_S and not self._consumer.assignment():
            self._wait_reported = True
            self._sink.warn(
                f"group {self._options.group} has not assigned partitions yet: its coordinator may have just started,"
                " or is waiting for other members, or for the session of a dead member to expire"
            )

    def _first_offsets(self, partitions: Collection[TopicPartition]) -> None:
        """Set the start position of partitions for which the group has committed nothing, according to the options."""
        options = self._options
        earliest = options.offset_reset == EARLIEST or options.from_beginning
        for tp, log in log_offsets(self._client, sorted(partitions), read_committed=options.read_committed).items():
            set_position(self._consumer, tp, log.start if earliest else log.end)

    # --- the records ----------------------------------------------------------------------------------------------

    def _round(self) -> None:
        self._serve()
        self._joining.check(is_member=is_settled(self._consumer))
        received = False
        for fetched in self._fetcher.poll(_POLL_S):
            position = self._positions.get(fetched.tp)
            if position is None:
                continue
            if fetched.position != position:  # the partition was reassigned while the response was in flight
                self._fetcher.seek(fetched.tp, position)
            elif fetched.error_code:
                self._out_of_range[fetched.tp] = position
            elif fetched.data:
                received = True
                self._read(fetched)
                self._delivery.tick()
                if self._delivery.full:
                    break
        self._reposition()
        if received:
            self._last_check = self._last_response = time.monotonic()
        elif time.monotonic() - self._last_check > (_RECHECK_S if self._absence else _CHECK_EVERY_S):
            self._check_topics()
        if self._searching():
            self._delivery.not_idle()
        self._delivery.tick()

    def _searching(self) -> bool:
        """Return True while joining the group or searching for leaders, for at most timeout_s."""
        now = time.monotonic()
        if is_settled(self._consumer):
            self._joined = now
        joining = self._joined < now <= self._joined + self._options.timeout_s
        return joining or self._fetcher.searching or self._log_query.pending

    def _read(self, fetched: Fetched) -> None:
        """Deliver the records, up to the partition's end or --max-messages, or until the partition is revoked."""
        tp = fetched.tp
        for chunk, next_offset in self._decoded(fetched):
            if chunk is not None and not self._deliver(chunk):
                return
            if self._advance(tp, next_offset):
                return

    def _advance(self, tp: TopicPartition, offset: int) -> bool:
        """Set the position: all records before `offset` were delivered. Return True at the partition's end."""
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
            next_offset = exc.details.get("next_offset", "N")
            hint = (
                f"skip it with `kctl group reset-offsets {self._options.group} --topic"
                f" {fetched.tp.topic}:{fetched.tp.partition} --to-offset {next_offset}`"
            )
            raise exc.reworded(exc.message, hint=hint) from None

    def _deliver(self, chunk: Chunk) -> bool:
        """Write and flush the chunk in parts. Return True to continue reading the partition."""
        begin, average = 0, max(1, chunk.size_bytes // chunk.size)
        while begin < chunk.size:
            count = max(1, self._flush_bytes // average)
            self._flush_bytes = min(2 * self._flush_bytes, _MAX_FLUSH_BYTES)
            part = chunk.part(begin, begin + count)
            handled = self._delivery.take(part)
            if handled:
                self._unflushed[chunk.tp] = part.offsets[handled - 1] + 1
                self._flush()
            if self._delivery.full:
                return False
            if handled < part.size:  # the partition's end
                return True
            begin += count
            if time.monotonic() - self._served >= _SERVE_EVERY_S:
                self._serve()
                if self._positions.get(chunk.tp) != part.offsets[-1] + 1:  # revoked
                    return False
        return True

    def _flush(self) -> None:
        self._delivery.flush()
        self._positions |= self._unflushed
        self._advanced |= self._unflushed.keys()
        self._unflushed.clear()

    def _reposition(self) -> None:
        """Move positions back into the log after records were deleted or the log was truncated (unclean election).

        These partitions are not fetched until their leaders return the log offsets.
        """
        if not self._out_of_range or not self._log_query.due:
            return
        logs = self._log_query.ask(partial(read_log_offsets, self._client), sorted(self._out_of_range))
        for tp, log in logs.items():
            self._positions[tp] = self._position_in_log(tp, self._out_of_range.pop(tp), log)
            self._fetcher.seek(tp, self._positions[tp])
            self._advance(tp, self._positions[tp])

    def _position_in_log(self, tp: TopicPartition, position: int, log: LogOffsets) -> int:
        if log.start <= position <= log.end:
            return position
        if self._options.offset_reset == LATEST:
            self.skipped += max(0, log.end - max(position, log.start)) + max(0, log.start - position)
            self._sink.warn(f"{tp}: offset {position} is no longer in the log; continuing at the end, {log.end}")
            return log.end
        if self._options.offset_reset == EARLIEST and position > log.end:
            self._sink.warn(
                f"{tp}: the log ends at {log.end}, before the position {position}; continuing at its start, {log.start}"
            )
            return log.start
        offset, skipped = clamp_to_log(tp, position, log, self._sink)
        self.skipped += skipped
        return offset

    def _check_topics(self) -> None:
        """Raise an error if a topic was deleted or no broker responds, instead of waiting forever."""
        self._last_check = time.monotonic()
        try:
            topics = self._client.metadata(self._plan.topics).topics
        except ConnectionFailed:
            if time.monotonic() - self._last_response > self._options.timeout_s:
                raise
            return
        self._last_response = time.monotonic()
        for name in self._plan.topics:
            if self._absence.lasts(name, missing=name not in topics):
                raise OperationFailed(f"topic {name} was deleted while it was read")

    # --- the end --------------------------------------------------------------------------------------------------

    def _commit(self) -> None:
        """Commit the offsets after the delivered records, for partitions that are still owned.

        A partition without records commits its position, as Java's consumers do, so that its lag is known.
        """
        from kafka.errors import KafkaError
        from kafka.structs import OffsetAndMetadata

        for tp in self._ownership.changes():  # from an interrupted poll(): the consumer's positions apply
            self._positions.pop(tp, None)
            self._advanced.discard(tp)
        self._sync_positions()
        offsets = dict(sorted(positions(self._consumer).items()))
        if offsets:
            try:
                self._consumer.commit(
                    {to_kafka(tp): OffsetAndMetadata(offset, "", -1) for tp, offset in offsets.items()},
                    timeout_ms=_CLOSE_MS,
                )
            except KafkaError as exc:
                consequence = "the offsets were not committed, so the records will be read again"
                raise failure(exc, self._options, what=consequence) from None
        self.committed = offsets

    def _commit_interrupted(self) -> None:
        """Commit after Ctrl-C. A failure is a warning: in a rebalance, the coordinator may reject the commit."""
        try:
            self._commit()
        except KctlError as exc:
            self._sink.warn(exc.message)

    def _close(self) -> None:
        from kafka.errors import KafkaError

        self._fetcher.close()
        with suppress(KafkaError, KeyboardInterrupt):
            self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MS)
