"""Read without a group. Fetched batches go to the sink in the order of arrival, or merged by timestamp."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from kctl.cluster.log_offsets import LogOffsets, read_log_offsets, read_offsets_at
from kctl.model import TopicPartition
from kctl.records.chunk import Chunk
from kctl.records.consume.batches import Decoded, decode
from kctl.records.consume.delivery import Delivery, Sink
from kctl.records.consume.fetcher import Fetched, Fetcher
from kctl.records.consume.leader_query import LeaderQuery
from kctl.records.consume.options import ConsumeOptions
from kctl.records.consume.plan import Answers, ReadPlan, within_logs
from kctl.segment.format.record_columns import MAX_PAYLOAD_BYTES

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.2
_MERGE_BYTES = 32 << 20  # fetched batches of all partitions; as much again is in flight or decompressed
_MIN_FETCH_BYTES = 64 << 10  # per partition and request


class DirectReader:
    """A reader without a group. positions: the next offset of each partition that has not ended."""

    def __init__(
        self, client: ClusterClient, options: ConsumeOptions, plan: ReadPlan, delivery: Delivery, sink: Sink
    ) -> None:
        self._client, self._options, self._sink, self._delivery = client, options, sink, delivery
        self._ends = delivery.ends
        self.positions = {
            tp: offset for tp, offset in plan.starts.items() if tp not in self._ends or offset < self._ends[tp]
        }
        self.skipped = 0
        share = max(_MIN_FETCH_BYTES, min(1 << 20, _MERGE_BYTES // max(1, len(self.positions))))
        follow = not options.finite and options.until_ms is None
        self._resolved: set[TopicPartition] = set()  # partitions whose end is set by --until
        self._displaced: dict[TopicPartition, int] = {}  # positions that are no longer in the log
        self._log_query, self._until_query = LeaderQuery(options, follow=follow), LeaderQuery(options, follow=False)
        self._fetcher = Fetcher(
            client, self.positions, read_committed=options.read_committed, warn=sink.warn,
            timeout_s=options.timeout_s, follow=follow,
            partition_bytes=share if options.merge else 1 << 20,
        )  # fmt: skip

    def run(self) -> str:
        """Read until an end is reached, and return the reason.

        Raises the errors of Fetcher, OperationFailed for a damaged batch, KeyboardInterrupt.
        """
        try:
            rounds = self._merged() if self._options.merge else self._by_arrival()
            while True:
                self._resolve_until()
                self._reposition()
                why = self._delivery.why_ended(lambda: not self.positions)
                if why is not None:
                    return why
                next(rounds)
                self._delivery.flush()
                if self._fetcher.searching or self._log_query.pending:
                    self._delivery.not_idle()
                self._delivery.tick()
        finally:
            self._fetcher.close()

    # --- in the order of arrival ----------------------------------------------------------------------------------

    def _by_arrival(self) -> Iterator[None]:
        while True:
            for fetched in self._fetcher.poll(_POLL_S):
                if fetched.error_code:
                    self._out_of_range(fetched.tp, fetched.position)
                    continue
                for chunk, offset_after in decode(fetched.tp, fetched.data, fetched.position, fetched.aborted):
                    if chunk is not None:
                        self._delivery.take(chunk)
                    if self._delivery.full or self._move(fetched.tp, offset_after):
                        break
                if self._delivery.full:
                    break
                yield
            yield

    def _move(self, tp: TopicPartition, position: int) -> bool:
        """Set the next offset. Return True if it is the partition's end."""
        end = self._ends.get(tp)
        if end is not None and position >= end:
            self.positions.pop(tp, None)
            self._fetcher.drop(tp)
            return True
        self.positions[tp] = position
        return False

    # --- merged by timestamp --------------------------------------------------------------------------------------

    def _merged(self) -> Iterator[None]:
        """Repeatedly write the earliest of the next records of all partitions.

        Wait for a partition that has more records in its log, but not for one that is caught up.
        """
        share = max(_MIN_FETCH_BYTES, min(MAX_PAYLOAD_BYTES, _MERGE_BYTES // max(1, len(self.positions))))
        heads = {tp: _MergeHead(tp, share) for tp in self.positions}
        while True:
            for fetched in self._fetcher.poll(_POLL_S if not self._write_merged(heads) else 0.0):
                self._queue(heads[fetched.tp], fetched)
            yield

    def _queue(self, head: _MergeHead, fetched: Fetched) -> None:
        if fetched.error_code:
            self._out_of_range(fetched.tp, fetched.position)
            return
        head.caught_up = fetched.next_position >= fetched.end
        if fetched.data:
            head.waiting.append(fetched)
            self._fetcher.pause(fetched.tp)

    def _write_merged(self, heads: Mapping[TopicPartition, _MergeHead]) -> bool:
        """Write records until the merge must wait for a partition. Return True if anything was written."""
        for tp in list(self.positions):
            self._fill(heads[tp])
        if any(heads[tp].awaited for tp in self.positions):
            return False
        queue = [(heads[tp].timestamp, tp) for tp in self.positions if heads[tp].chunk is not None]
        heapify(queue)
        written = bool(queue)
        while queue:
            head = heads[heappop(queue)[1]]
            self._delivery.take(head.cut(queue[0][0] if queue else None))
            if self._delivery.full:
                break
            self._fill(head)
            if head.tp not in self.positions:
                continue
            if head.chunk is not None:
                heappush(queue, (head.timestamp, head.tp))
            elif head.awaited:
                break
        return written

    def _fill(self, head: _MergeHead) -> None:
        """Put the next fetched record at the head; resume fetching once the last batch is used up."""
        while head.chunk is None and head.tp in self.positions:
            step = head.step()
            if step is None:
                self._fetcher.resume(head.tp)
                return
            if step.chunk is not None:
                head.chunk, head.index = step.chunk, 0
            past_end = head.chunk is None or head.chunk.offsets[0] >= self._ends.get(head.tp, 1 << 63)
            if past_end and self._move(head.tp, step.next_offset):
                head.chunk = None

    # --- changes of the logs --------------------------------------------------------------------------------------

    def _out_of_range(self, tp: TopicPartition, position: int) -> None:
        """Handle a position outside the log: records were deleted, or the log was truncated (unclean election)."""
        self._displaced[tp] = position
        self._reposition()

    def _reposition(self) -> None:
        """Move positions back into the logs.

        These partitions are not fetched until their leaders return the log offsets.
        """
        if not self._displaced or not self._log_query.due:
            return
        logs = self._log_query.ask(partial(read_log_offsets, self._client), sorted(self._displaced))
        for tp, log in logs.items():
            position, skipped = clamp_to_log(tp, self._displaced.pop(tp), log, self._sink)
            self.skipped += skipped
            self._fetcher.seek(tp, position)
            self._move(tp, position)

    def _resolve_until(self) -> None:
        """Set the ends of the partitions once --until, a time in the future, has passed."""
        until = self._options.until_ms
        if until is None or self._options.exit_eof or time.time() * 1000 < until or not self._until_query.due:
            return
        by_offset = self._options.until_offset is not None
        partitions = self.positions.keys() - (self._resolved if by_offset else self._ends.keys())
        if not partitions:
            return
        ask = partial(_ends_at, self._client, time_ms=until, read_committed=self._options.read_committed)
        ends = self._until_query.ask(ask, sorted(partitions))
        for tp, end in ends.items():
            self._resolved.add(tp)
            self._ends[tp] = min(end, self._ends.get(tp, end))
            self._move(tp, self.positions[tp])


def _ends_at(
    client: ClusterClient, partitions: list[TopicPartition], *, time_ms: int, read_committed: bool
) -> Answers[int]:
    """Return the first offset of each partition whose record is not older than time_ms."""
    log, missing, failures = read_log_offsets(client, partitions, read_committed=read_committed)
    offsets, more_missing, more_failures = read_offsets_at(client, sorted(log), time_ms)
    return within_logs(offsets, log), missing | more_missing, failures | more_failures


def clamp_to_log(tp: TopicPartition, position: int, log: LogOffsets, sink: Sink) -> tuple[int, int]:
    """Return the offset to continue at, and how many records were skipped. Warns if `position` is outside the log."""
    if position < log.start:
        sink.warn(f"{tp}: offsets {position} to {log.start - 1} were deleted before they were read")
        return log.start, log.start - position
    if position > log.end:
        sink.warn(f"{tp}: the log ends at {log.end}, before the position {position}: the log was truncated")
        return log.end, 0
    return position, 0


class _MergeHead:
    """The next records of a partition in a merge.

    max_bytes: the largest batch that is decompressed at once. caught_up: the last response reached the end of the log,
    so the merge does not wait for this partition.
    """

    def __init__(self, tp: TopicPartition, max_bytes: int) -> None:
        self.tp, self._max_bytes = tp, max_bytes
        self.waiting: deque[Fetched] = deque()
        self._steps: Iterator[Decoded] | None = None
        self.chunk: Chunk | None = None
        self.index = 0
        self.caught_up = False

    @property
    def awaited(self) -> bool:
        """Return True if the log has more records, and none was fetched yet."""
        return self.chunk is None and not self.caught_up

    @property
    def timestamp(self) -> int:
        assert self.chunk is not None
        return self.chunk.timestamps[self.index]

    def step(self) -> Decoded | None:
        """Return the next decoding step of the fetched batches; None if they are used up."""
        while True:
            if self._steps is None:
                if not self.waiting:
                    return None
                fetched = self.waiting.popleft()
                self._steps = decode(
                    fetched.tp, fetched.data, fetched.position, fetched.aborted, max_bytes=self._max_bytes
                )
            step = next(self._steps, None)
            if step is not None:
                return step
            self._steps = None

    def cut(self, limit: int | None) -> Chunk:
        """Remove and return the first record, and the following records up to one that is later than `limit`."""
        assert self.chunk is not None
        chunk, begin, end = self.chunk, self.index, self.index + 1
        if limit is None:
            end = chunk.size
        else:
            times, count = chunk.timestamps, chunk.size
            while end < count and times[end] <= limit:
                end += 1
        self.chunk, self.index = (None, 0) if end == chunk.size else (chunk, end)
        return chunk.part(begin, end)
