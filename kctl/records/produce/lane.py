"""What is on its way to one partition, in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

from kctl.records.produce.batch import ClosedBatch, OpenBatch
from kctl.segment.format.batch import NO_SEQUENCE, increment_sequence

_LARGE_REQUEST = 99 << 20  # bytes; brokers take 100 MiB unless told otherwise (SocketServerConfigs)


class Lane:
    """One partition: the batch being filled, those that wait, those under way, and those to be sent again.

    Order is kept because nothing new is sent while a batch has to be sent again, and what is sent again goes first.
    leader: −1 for none. progress: when a batch was last acknowledged (monotonic). held: until when its batches only
    stood behind others on a connection that works. tries: sendings without success since then. refused:
    a broker has definitely refused a batch, so that those behind it can never be in the log. epoch: how often the
    sequence numbers began anew.
    """

    def __init__(self, partition: int, leader: int) -> None:
        self.partition = partition
        self.leader = leader
        self.open: OpenBatch | None = None
        self.waiting: deque[ClosedBatch] = deque()
        self.under_way: list[ClosedBatch] = []
        self.again: list[ClosedBatch] = []
        self.node = -1  # where those under way went
        self.not_before = 0.0
        self.progress = self.held = 0.0
        self.tries = 0
        self.refused = False
        self.epoch = 0
        self._next_sequence = 0
        self._next_turn = 0

    @property
    def busy(self) -> bool:
        return bool(self.open or self.waiting or self.under_way or self.again)

    @property
    def length(self) -> int:
        """Batches that are not acknowledged."""
        return len(self.waiting) + len(self.under_way) + len(self.again)

    @property
    def begun(self) -> float:
        """When the oldest record was taken."""
        oldest = self.under_way or self.again or self.waiting
        if oldest:
            return min(batch.begun for batch in (oldest[0], *self.again[:1]))
        return self.open.begun if self.open else float("inf")

    @property
    def size_hint(self) -> str | None:
        """What to do about a batch for which brokers close the connection; None where none is as large."""
        largest = max((batch.wire_bytes for batch in (*self.under_way, *self.again)), default=0)
        if largest < _LARGE_REQUEST:
            return None
        return f"the request has {largest:,} bytes: does it exceed the brokers' socket.request.max.bytes (100 MiB)?"

    def may_send(self, most_under_way: int) -> bool:
        """Whether order allows to send the next batch now; puts back what is to be sent again."""
        if self.under_way:
            return not self.again and len(self.under_way) < most_under_way and self.node == self.leader
        if self.again:
            self.again.sort(key=lambda batch: batch.turn)
            self.waiting.extendleft(reversed(self.again))
            self.again.clear()
        return True

    def send_next(self, node: int, *, idempotent: bool) -> ClosedBatch:
        """The first of those that wait, now under way. A batch keeps the sequence number that it got first."""
        batch = self.waiting.popleft()
        if not batch.sent:
            batch.sent = True
            batch.turn = self._next_turn
            self._next_turn += 1
            if idempotent:
                batch.sequence, batch.epoch = self._next_sequence, self.epoch
                self._next_sequence = increment_sequence(self._next_sequence, batch.count)
        assert (batch.sequence != NO_SEQUENCE) == idempotent
        self.under_way.append(batch)
        self.node = node
        return batch

    def drop_unsent(self) -> Iterator[ClosedBatch]:
        """Take out what no broker has ever seen."""
        kept = [batch for batch in self.waiting if batch.sent]
        dropped = [batch for batch in self.waiting if not batch.sent]
        self.waiting = deque(kept)
        yield from dropped

    def drop_sent(self) -> list[ClosedBatch]:
        """Take out what a broker may have seen; what is under way may be in the log."""
        unsent = [batch for batch in self.waiting if not batch.sent]
        self.waiting = deque(batch for batch in self.waiting if batch.sent)
        found = self.drop_all()
        self.waiting = deque(unsent)
        return found

    def begin_anew(self) -> None:
        """Sequence numbers from 0 in a new epoch, one batch at a time at first; what waits has waited for others."""
        self.epoch += 1
        self._next_sequence = 0
        self.progress, self.held, self.tries, self.refused = 0.0, time.monotonic(), 0, False

    def drop_all(self) -> list[ClosedBatch]:
        """Take out everything but what is being filled; what is under way may be in the log."""
        for batch in self.under_way:
            batch.perhaps_written = True
        found = [*self.under_way, *self.again, *self.waiting]
        self.under_way, self.again, self.waiting = [], [], deque()
        return found
