"""Reading without a group: from fetched batches to the sink, partition by partition as they come, or merged by time."""

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
from kctl.records.consume.asking import Question
from kctl.records.consume.batches import Decoded, decode
from kctl.records.consume.delivery import Delivery, Sink
from kctl.records.consume.fetcher import Fetched, Fetcher
from kctl.records.consume.options import ConsumeOptions
from kctl.records.consume.plan import Plan, Read, within_logs
from kctl.segment.format.record_columns import MAX_PAYLOAD_BYTES

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.2
_MERGE_BYTES = 32 << 20  # of fetched batches, in all partitions; as much again is on its way, and is decompressed
_LEAST_BYTES = 64 << 10  # that a partition is asked for at once


class Direct:
    """One reading. positions: where each partition that has not ended goes on."""

    def __init__(
        self, client: ClusterClient, options: ConsumeOptions, plan: Plan, delivery: Delivery, sink: Sink
    ) -> None:
        self._client, self._options, self._sink, self._delivery = client, options, sink, delivery
        self._ends = delivery.ends
        self.positions = {
            tp: offset for tp, offset in plan.starts.items() if tp not in self._ends or offset < self._ends[tp]
        }
        self.skipped = 0
        share = max(_LEAST_BYTES, min(1 << 20, _MERGE_BYTES // max(1, len(self.positions))))
        follow = not options.finite and options.until_ms is None
        self._ended: set[TopicPartition] = set()  # by --until
        self._displaced: dict[TopicPartition, int] = {}  # positions that are not in the log any more
        self._places, self._until = Question(options, follow=follow), Question(options, follow=False)
        self._fetcher = Fetcher(
            client, self.positions, read_committed=options.read_committed, tell=sink.warn,
            timeout_s=options.timeout_s, follow=follow,
            partition_bytes=share if options.merge else 1 << 20,
        )  # fmt: skip

    def run(self) -> str:
        """Read until it ends: why it did. Raises what Fetcher does, OperationFailed at damage, KeyboardInterrupt."""
        try:
            rounds = self._merged() if self._options.merge else self._as_they_come()
            while True:
                self._passed_until()
                self._find_places()
                why = self._delivery.why_ended(lambda: not self.positions)
                if why is not None:
                    return why
                next(rounds)
                self._delivery.flush()
                if self._fetcher.searching or self._places.asking:
                    self._delivery.not_idle()
                self._delivery.tick()
        finally:
            self._fetcher.close()

    # --- partition by partition -----------------------------------------------------------------------------------

    def _as_they_come(self) -> Iterator[None]:
        while True:
            for fetched in self._fetcher.poll(_POLL_S):
                if fetched.error_code:
                    self._out_of_range(fetched.tp, fetched.position)
                    continue
                for chunk, following in decode(fetched.tp, fetched.data, fetched.position, fetched.aborted):
                    if chunk is not None:
                        self._delivery.take(chunk)
                    if self._delivery.full or self._move(fetched.tp, following):
                        break
                if self._delivery.full:
                    break
                yield
            yield

    def _move(self, tp: TopicPartition, position: int) -> bool:
        """It has been read up to there; whether that is its end."""
        end = self._ends.get(tp)
        if end is not None and position >= end:
            self.positions.pop(tp, None)
            self._fetcher.drop(tp)
            return True
        self.positions[tp] = position
        return False

    # --- merged by time -------------------------------------------------------------------------------------------

    def _merged(self) -> Iterator[None]:
        """The earliest of what is next in each partition, again and again. A partition that has nothing more for now
        is not waited for; one of which more is to come is."""
        share = max(_LEAST_BYTES, min(MAX_PAYLOAD_BYTES, _MERGE_BYTES // max(1, len(self.positions))))
        heads = {tp: _Head(tp, share) for tp in self.positions}
        while True:
            for fetched in self._fetcher.poll(_POLL_S if not self._show(heads) else 0.0):
                self._keep(heads[fetched.tp], fetched)
            yield

    def _keep(self, head: _Head, fetched: Fetched) -> None:
        if fetched.error_code:
            self._out_of_range(fetched.tp, fetched.position)
            return
        head.caught_up = fetched.next_position >= fetched.end
        if fetched.data:
            head.waiting.append(fetched)
            self._fetcher.pause(fetched.tp)

    def _show(self, heads: Mapping[TopicPartition, _Head]) -> bool:
        """Write while every partition has a record to compare with; whether anything was."""
        for tp in list(self.positions):
            self._fill(heads[tp])
        if any(heads[tp].awaited for tp in self.positions):
            return False
        coming = [(heads[tp].timestamp, tp) for tp in self.positions if heads[tp].chunk is not None]
        heapify(coming)
        written = bool(coming)
        while coming:
            head = heads[heappop(coming)[1]]
            self._delivery.take(head.cut(coming[0][0] if coming else None))
            if self._delivery.full:
                break
            self._fill(head)
            if head.tp not in self.positions:
                continue
            if head.chunk is not None:
                heappush(coming, (head.timestamp, head.tp))
            elif head.awaited:
                break
        return written

    def _fill(self, head: _Head) -> None:
        """Have a record at the head, when one was fetched; ask for more when the last batch is begun."""
        while head.chunk is None and head.tp in self.positions:
            step = head.step()
            if step is None:
                self._fetcher.resume(head.tp)
                return
            if step.chunk is not None:
                head.chunk, head.index = step.chunk, 0
            behind = head.chunk is None or head.chunk.offsets[0] >= self._ends.get(head.tp, 1 << 63)
            if behind and self._move(head.tp, step.next_offset):
                head.chunk = None

    # --- what happens meanwhile -----------------------------------------------------------------------------------

    def _out_of_range(self, tp: TopicPartition, position: int) -> None:
        """The log was cut under the reader: deleted in front, or truncated behind (unclean election)."""
        self._displaced[tp] = position
        self._find_places()

    def _find_places(self) -> None:
        """Go on in the logs that were cut. Until their leaders say where, nothing is asked of these partitions."""
        if not self._displaced or not self._places.due:
            return
        logs = self._places.ask(partial(read_log_offsets, self._client), sorted(self._displaced))
        for tp, log in logs.items():
            position, lost = moved_into(tp, self._displaced.pop(tp), log, self._sink)
            self.skipped += lost
            self._fetcher.seek(tp, position)
            self._move(tp, position)

    def _passed_until(self) -> None:
        """--until lay in the future and has come: what is in the logs now is the end."""
        until = self._options.until_ms
        if until is None or self._options.exit_eof or time.time() * 1000 < until or not self._until.due:
            return
        by_offset = self._options.until_offset is not None
        wanted = self.positions.keys() - (self._ended if by_offset else self._ends.keys())
        if not wanted:
            return
        ask = partial(_ends_at, self._client, time_ms=until, read_committed=self._options.read_committed)
        ends = self._until.ask(ask, sorted(wanted))
        for tp, end in ends.items():
            self._ended.add(tp)
            self._ends[tp] = min(end, self._ends.get(tp, end))
            self._move(tp, self.positions[tp])


def _ends_at(client: ClusterClient, wanted: list[TopicPartition], *, time_ms: int, read_committed: bool) -> Read[int]:
    """What is not older than time_ms begins there."""
    log, gone, unread = read_log_offsets(client, wanted, read_committed=read_committed)
    found, gone_since, unread_since = read_offsets_at(client, sorted(log), time_ms)
    return within_logs(found, log), gone | gone_since, unread | unread_since


def moved_into(tp: TopicPartition, position: int, log: LogOffsets, sink: Sink) -> tuple[int, int]:
    """Where to go on when `position` is not in the log any more, and how many records were lost; says so."""
    if position < log.start:
        sink.warn(f"{tp}: offsets {position} to {log.start - 1} were deleted before they were read")
        return log.start, log.start - position
    if position > log.end:
        sink.warn(f"{tp}: the log ends at {log.end}, before the position {position}: it was truncated")
        return log.end, 0
    return position, 0


class _Head:
    """What is next of a partition in a merge. most_bytes: of a batch that is decompressed at once. caught_up: its last
    answer had all that there was, so that it is not waited for."""

    def __init__(self, tp: TopicPartition, max_bytes: int) -> None:
        self.tp, self._most_bytes = tp, max_bytes
        self.waiting: deque[Fetched] = deque()
        self._steps: Iterator[Decoded] | None = None
        self.chunk: Chunk | None = None
        self.index = 0
        self.caught_up = False

    @property
    def awaited(self) -> bool:
        """More is there, and nothing of it is known yet."""
        return self.chunk is None and not self.caught_up

    @property
    def timestamp(self) -> int:
        assert self.chunk is not None
        return self.chunk.timestamps[self.index]

    def step(self) -> Decoded | None:
        """What decoding gives next of what was fetched; None when that is used up."""
        while True:
            if self._steps is None:
                if not self.waiting:
                    return None
                fetched = self.waiting.popleft()
                self._steps = decode(
                    fetched.tp, fetched.data, fetched.position, fetched.aborted, max_bytes=self._most_bytes
                )
            found = next(self._steps, None)
            if found is not None:
                return found
            self._steps = None

    def cut(self, limit: int | None) -> Chunk:
        """The records from the head on up to the first one that is later than `limit`: at least one."""
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
