"""The batches on their way to one partition, in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

from kctl.records.produce.batch import ClosedBatch, OpenBatch
from kctl.segment.format.batch import NO_SEQUENCE, increment_sequence

_LARGE_REQUEST = 99 << 20  # bytes; brokers accept 100 MiB by default (SocketServerConfigs)


class PartitionQueue:
    """The batches of one partition: open, waiting, in flight, and to be retried.

    Order is kept because nothing new is sent while a batch has to be retried, and retries go first. leader: -1 for
    none. progress: when a batch was last acknowledged (monotonic). held: the time until which its batches only waited
    behind others on a working connection. tries: failed attempts since a batch was last acknowledged. rejected: a
    broker has definitely rejected a batch, so the batches after it can never be in the log. epoch: how often the
    sequence numbers were reset.
    """

    def __init__(self, partition: int, leader: int) -> None:
        self.partition = partition
        self.leader = leader
        self.open: OpenBatch | None = None
        self.waiting: deque[ClosedBatch] = deque()
        self.in_flight: list[ClosedBatch] = []
        self.retries: list[ClosedBatch] = []
        self.node = -1  # the broker that in-flight batches were sent to
        self.not_before = 0.0
        self.progress = self.held = 0.0
        self.tries = 0
        self.rejected = False
        self.epoch = 0
        self._next_sequence = 0
        self._next_turn = 0

    @property
    def busy(self) -> bool:
        return bool(self.open or self.waiting or self.in_flight or self.retries)

    @property
    def length(self) -> int:
        """Return the number of unacknowledged batches."""
        return len(self.waiting) + len(self.in_flight) + len(self.retries)

    @property
    def created(self) -> float:
        """Return when the oldest record was added."""
        oldest = self.in_flight or self.retries or self.waiting
        if oldest:
            return min(batch.created for batch in (oldest[0], *self.retries[:1]))
        return self.open.created if self.open else float("inf")

    @property
    def size_hint(self) -> str | None:
        """Return a hint for a batch so large that brokers close the connection; None if there is none."""
        largest = max((batch.wire_bytes for batch in (*self.in_flight, *self.retries)), default=0)
        if largest < _LARGE_REQUEST:
            return None
        return f"the request has {largest:,} bytes: check the brokers' socket.request.max.bytes (default: 100 MiB)"

    def may_send(self, max_in_flight: int) -> bool:
        """Return True if order allows sending the next batch now. Requeues batches to retry."""
        if self.in_flight:
            return not self.retries and len(self.in_flight) < max_in_flight and self.node == self.leader
        if self.retries:
            self.retries.sort(key=lambda batch: batch.turn)
            self.waiting.extendleft(reversed(self.retries))
            self.retries.clear()
        return True

    def send_next(self, node: int, *, idempotent: bool) -> ClosedBatch:
        """Return the first waiting batch, now in flight. A retried batch keeps its sequence number."""
        batch = self.waiting.popleft()
        if not batch.sent:
            batch.sent = True
            batch.turn = self._next_turn
            self._next_turn += 1
            if idempotent:
                batch.sequence, batch.epoch = self._next_sequence, self.epoch
                self._next_sequence = increment_sequence(self._next_sequence, batch.count)
        assert (batch.sequence != NO_SEQUENCE) == idempotent
        self.in_flight.append(batch)
        self.node = node
        return batch

    def drop_unsent(self) -> Iterator[ClosedBatch]:
        """Remove the batches that were never sent."""
        dropped = [batch for batch in self.waiting if not batch.sent]
        self.waiting = deque(batch for batch in self.waiting if batch.sent)
        yield from dropped

    def drop_sent(self) -> list[ClosedBatch]:
        """Remove the batches that were sent; those in flight may be in the log."""
        unsent = [batch for batch in self.waiting if not batch.sent]
        self.waiting = deque(batch for batch in self.waiting if batch.sent)
        dropped = self.drop_all()
        self.waiting = deque(unsent)
        return dropped

    def restart(self) -> None:
        """Restart sequence numbers at 0 in a new epoch, with one batch at a time at first."""
        self.epoch += 1
        self._next_sequence = 0
        self.progress, self.held, self.tries, self.rejected = 0.0, time.monotonic(), 0, False

    def drop_all(self) -> list[ClosedBatch]:
        """Remove all batches but the open one; those in flight may be in the log."""
        for batch in self.in_flight:
            batch.perhaps_written = True
        dropped = [*self.in_flight, *self.retries, *self.waiting]
        self.in_flight, self.retries, self.waiting = [], [], deque()
        return dropped
