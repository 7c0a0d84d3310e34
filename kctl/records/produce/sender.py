"""Send batches to the leaders of a topic's partitions, with a known outcome for each batch.

One non-blocking loop: connections and metadata lookups run in the background (kctl.records.background). The rules:

- The batches of a partition stay in order (`partition_queue`). With idempotence, up to five are in flight, and the
  broker recognizes retried batches (KIP-98). Without it, one is in flight, and a batch whose response was lost is not
  retried.
- After a transient error (a leader moved, a broker stopped), a batch is retried until the partition has made no
  progress for timeout_s. Waiting behind other batches on a working connection does not count. Then a batch that was
  sent without a response is unknown; a batch that brokers rejected or never received has failed.
- After the first lost batch, nothing new is sent; batches in flight are completed. With `continue_after_loss`, the
  partition's next batches follow in the producer's next epoch, as in Java's producer (KIP-360).
- The bytes of unacknowledged batches are bounded (`has_room`).
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kctl.errors import KctlError, NotFound, OperationFailed
from kctl.protocol.error_meanings import error_for
from kctl.records.background import Background
from kctl.records.produce import wire as produce_wire
from kctl.records.produce.accumulator import RecordAccumulator
from kctl.records.produce.batch import ClosedBatch
from kctl.records.produce.leaders import Leaders
from kctl.records.produce.link import MAX_REQUESTS, Link, LinkBroken, Request
from kctl.records.produce.options import SenderOptions
from kctl.records.produce.partition_queue import PartitionQueue

if TYPE_CHECKING:
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient

MAX_BYTES = 32 << 20
_REQUEST_BYTES = 1 << 20
_BACKOFF_S, _MAX_BACKOFF_S = 0.05, 1.0
_LAST_EPOCH = 32_767
_BLOCKED_S = 0.05  # retry interval for a due batch that cannot be sent

ACKNOWLEDGED, FAILED, UNKNOWN = "acknowledged", "failed", "unknown"
Done = Callable[[ClosedBatch, str, "KctlError | None"], None]


class Sender:
    """A sender of records, driven by calls of `step`. done: called once for each batch, with its outcome."""

    def __init__(
        self, client: ClusterClient, options: SenderOptions, state: ClusterState, done: Done, background: Background
    ) -> None:
        self._options, self._done, self._background = options, done, background
        self._leaders = Leaders(client, options.topic, state, background, codec=options.codec, acks=options.acks)
        self._records = RecordAccumulator(options, state.topics[options.topic].partitions)
        self._queues, self._busy = self._records.queues, self._records.busy
        # Bound here to save a call per record.
        self.add, self.add_values = self._records.add, self._records.add_values
        self._request_s = max(1.0, min(options.timeout_s / 2, 15.0))  # how long the broker may wait for other replicas
        self._silent_s = self._request_s + min(5.0, self._request_s / 2)
        self._resends_lost = options.producer is not None or options.resend
        self._max_in_flight = MAX_REQUESTS if self._resends_lost or options.acks == 0 else 1
        self.flushing = False
        self.stopped: KctlError | None = None

    # --- input ----------------------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        return self._records.bytes < MAX_BYTES

    @property
    def idle(self) -> bool:
        """Return True if every record has its outcome."""
        return not self._busy

    @property
    def partitions(self) -> int:
        return len(self._queues)

    def add_batch(self, batch: ClosedBatch) -> None:
        """Add a complete batch, which is sent unchanged. A partition gets either batches or single records."""
        self._records.add_batch(batch)

    # --- the loop -------------------------------------------------------------------------------------------------

    def step(self, wait_s: float, readable: int | None = None) -> bool:
        """Send due batches, wait at most wait_s for events, and handle them. Return True if `readable` has data.

        readable: a descriptor that also ends the wait.
        """
        now = time.monotonic()
        self._check_links(now)
        self._send(now)
        poll = select.poll()
        for node, link in list(self._leaders.links.items()):
            if link.wants_to_write:
                self._write(node, link)
        for link in self._leaders.links.values():
            poll.register(link.socket, select.POLLIN | (select.POLLOUT if link.wants_to_write else 0))
        poll.register(self._background.fd, select.POLLIN)
        if readable is not None:
            poll.register(readable, select.POLLIN)
        events = dict(poll.poll(max(0, math.ceil(min(wait_s, self._next_due_s(now)) * 1000))))
        for node, link in list(self._leaders.links.items()):
            event = events.get(link.socket.fileno(), 0)
            if event & select.POLLOUT:
                self._write(node, link)
            if event & ~select.POLLOUT and node in self._leaders.links:
                self._read(node, link)
        self._update_leaders()
        return readable is not None and readable in events

    def _next_due_s(self, now: float) -> float:
        wait = 0.2 if self._busy else 1.0
        for queue in self._busy.values():
            if queue.open is not None and not queue.waiting and len(queue.in_flight) < self._limit(queue):
                due_s = queue.open.created + self._options.linger_s - now
                wait = min(wait, max(0.001, due_s) if due_s > 0 else max(_BLOCKED_S, queue.not_before - now))
            elif queue.not_before > now:
                wait = min(wait, queue.not_before - now)
        return wait

    def _check_links(self, now: float) -> None:
        for node, link in list(self._leaders.links.items()):
            if link.waited_s > self._silent_s:
                self._broke(node, link, f"no response within {self._silent_s:g} s")
            elif link.worn_out:
                self._leaders.links.pop(node).close()
        self._leaders.keep_fresh(now)
        for queue in list(self._busy.values()):
            busy_link = self._leaders.links.get(queue.node if queue.in_flight else queue.leader)
            if busy_link is not None and not queue.tries:
                queue.held = max(queue.held, busy_link.life)
            if now - max(queue.created, queue.progress, queue.held) > self._options.timeout_s:
                self._give_up(queue, self._no_progress(queue))

    def _no_progress(self, queue: PartitionQueue) -> KctlError:
        place = f"partition {self._options.topic}-{queue.partition}"
        why = f"{place} accepted nothing for {self._options.timeout_s:g} s"
        if self._leaders.trouble is None:
            return OperationFailed(why, hint="check its leader, or raise --timeout")
        reason = self._leaders.trouble.message.removeprefix(f"{place}: ")
        return OperationFailed(f"{why}: {reason}", hint=queue.size_hint or self._leaders.trouble.hint)

    def _limit(self, queue: PartitionQueue) -> int:
        """Return how many batches may be in flight: at first and after an error, one until a batch is acknowledged.

        A broker without state of this producer accepts any sequence number (ProducerAppendInfo.checkSequence), so a
        later batch could be written first.
        """
        return self._max_in_flight if queue.progress and not queue.tries else 1

    def _send(self, now: float) -> None:
        by_leader: dict[int, list[PartitionQueue]] = {}
        for queue in self._busy.values():
            if now < queue.not_before or not queue.may_send(self._limit(queue)) or not self._is_due(queue, now):
                continue
            if queue.leader < 0:
                queue.not_before = now + self._backoff(queue)
                self._leaders.look_up(now)
            else:
                by_leader.setdefault(queue.leader, []).append(queue)
        for node, queues in by_leader.items():
            link = self._leaders.links.get(node)
            if link is None:
                self._leaders.dial(node, now)
                continue
            ready = queues
            while ready and link.has_room:
                count = self._send_request(link, ready)
                waiting = [*ready[count:], *ready[:count]]  # queues that did not fit come first in the next request
                ready = [queue for queue in waiting if queue.may_send(self._limit(queue)) and self._is_due(queue, now)]

    def _is_due(self, queue: PartitionQueue, now: float) -> bool:
        if queue.waiting:
            return True
        batch = queue.open
        return batch is not None and (self.flushing or batch.full or now - batch.created >= self._options.linger_s)

    def _send_request(self, link: Link, queues: Sequence[PartitionQueue]) -> int:
        """Send one batch of each queue, as many as fit into a request. Return their number."""
        batches: list[ClosedBatch] = []
        size = 0
        for queue in queues:
            if not queue.waiting:
                self._records.close_batch(queue)
            size += queue.waiting[0].wire_bytes
            if batches and size > _REQUEST_BYTES:
                break
            batches.append(queue.send_next(link.node, idempotent=self._options.producer is not None))
            self._busy[queue.partition] = self._busy.pop(queue.partition)  # other queues come first next time
        timeout_ms = round(self._request_s * 1000)
        link.send(self._options.topic, timeout_ms, batches, self._options.producer or (-1, -1))
        return len(batches)

    # --- responses ------------------------------------------------------------------------------------------------

    def _write(self, node: int, link: Link) -> None:
        try:
            for batch in link.write():  # with acks=0 there is no response
                queue = self._queues[batch.partition]
                if batch not in queue.in_flight:
                    continue  # given up before
                queue.in_flight.remove(batch)
                queue.progress, queue.tries = time.monotonic(), 0
                self._finish(batch, ACKNOWLEDGED, None)
        except LinkBroken as exc:
            self._read(node, link)  # responses received before the failure
            if self._leaders.links.get(node) is link:
                self._broke(node, link, str(exc))

    def _read(self, node: int, link: Link) -> None:
        for request, answers in link.read():
            self._handle(request, answers)
        if link.ended is not None:
            self._broke(node, link, link.ended)

    def _handle(self, request: Request, answers: Sequence[produce_wire.Answer]) -> None:
        by_partition = {answer.partition: answer for answer in answers}
        for batch in request.batches:
            queue = self._queues[batch.partition]
            if batch not in queue.in_flight:
                continue  # given up before
            queue.in_flight.remove(batch)
            answer = by_partition.get(batch.partition)
            if answer is None:
                self._answer_lost(queue, batch)
            else:
                self._judge(queue, batch, answer)

    def _judge(self, queue: PartitionQueue, batch: ClosedBatch, answer: produce_wire.Answer) -> None:
        if answer.in_log:
            queue.progress, queue.tries = time.monotonic(), 0
            batch.base_offset = answer.base_offset
            self._finish(batch, ACKNOWLEDGED, None)
            return
        if answer.out_of_sequence and queue.retries:
            queue.retries.append(batch)  # an earlier batch is retried first
            return
        error = error_for(
            answer.error_code, answer.message, subject=f"partition {self._options.topic}-{queue.partition}"
        )
        batch.perhaps_written |= answer.perhaps_in_log
        if answer.leader_moved or answer.transient:
            self._leaders.trouble = error
            if batch.perhaps_written and not self._resends_lost:
                self._lose(queue, batch, error)
                return
            self._send_again(queue, batch)
            if answer.leader_moved:
                self._leaders.look_up(time.monotonic())
            return
        if answer.out_of_sequence and queue.rejected:  # it followed a rejected batch, so it was never written
            batch.perhaps_written = False
        queue.rejected = not batch.perhaps_written
        self._lose(queue, batch, error)

    def _answer_lost(self, queue: PartitionQueue, batch: ClosedBatch) -> None:
        batch.perhaps_written = True
        if self._resends_lost:
            self._send_again(queue, batch)
        else:
            self._lose(queue, batch, None)

    def _send_again(self, queue: PartitionQueue, batch: ClosedBatch) -> None:
        queue.retries.append(batch)
        queue.not_before = time.monotonic() + self._backoff(queue)

    def _backoff(self, queue: PartitionQueue) -> float:
        queue.tries += 1
        return float(min(_MAX_BACKOFF_S, _BACKOFF_S * 2 ** min(queue.tries - 1, 10)))

    def _broke(self, node: int, link: Link, why: str) -> None:
        """Handle a broken connection or a silent broker: the responses of the batches in flight are lost."""
        self._leaders.broke(node, link, why)
        for request in link.requests:
            for batch in request.batches:
                queue = self._queues[batch.partition]
                if batch not in queue.in_flight:
                    continue
                queue.in_flight.remove(batch)
                if link.is_written(request):
                    self._answer_lost(queue, batch)
                else:
                    self._send_again(queue, batch)
        self._leaders.look_up(time.monotonic())

    # --- outcomes -------------------------------------------------------------------------------------------------

    def _finish(self, batch: ClosedBatch, outcome: str, error: KctlError | None) -> None:
        self._records.release(batch)
        self._done(batch, outcome, error)

    def _lose(self, queue: PartitionQueue, batch: ClosedBatch, error: KctlError | None) -> None:
        error = error or OperationFailed(
            f"partition {self._options.topic}-{queue.partition}: the connection broke before a response arrived",
            hint="without idempotence the batch is not retried, because it may be in the log",
        )
        self._finish(batch, UNKNOWN if batch.perhaps_written else FAILED, error)
        if not self._options.continue_after_loss:
            self.stop(error)
        elif self._options.producer is not None:
            self._restart(queue, queue.drop_sent(), error)

    def _give_up(self, queue: PartitionQueue, error: KctlError) -> None:
        if queue.open is not None:
            self._records.close_batch(queue)
        self._restart(queue, queue.drop_all(), error)
        if not self._options.continue_after_loss:
            self.stop(error)

    def _restart(self, queue: PartitionQueue, batches: Sequence[ClosedBatch], error: KctlError) -> None:
        """Start a new epoch: the broker rejects sequence numbers after a gap. batches: the lost ones."""
        for batch in batches:
            self._finish(batch, UNKNOWN if batch.perhaps_written else FAILED, error)
        queue.restart()
        if self._options.producer is not None and self._options.producer[1] + queue.epoch > _LAST_EPOCH:
            self.stop(OperationFailed(f"{self._options.topic}-{queue.partition}: too many batches were lost"))

    def stop(self, error: KctlError) -> None:
        """Send nothing new; batches that were never sent have failed."""
        if self.stopped is None:
            self.stopped = error
        for queue in list(self._busy.values()):
            if queue.open is not None:
                self._records.close_batch(queue)
            for batch in queue.drop_unsent():
                self._finish(batch, FAILED, None)

    def abandon(self) -> None:
        """Set the outcome of all remaining batches: failed or unknown."""
        error = OperationFailed("the run ended before a response arrived")
        for queue in list(self._busy.values()):
            self._give_up(queue, error)

    def close(self, *, at_once: bool = False) -> None:
        """Close all connections, with requests in flight. at_once: do not wait for background calls."""
        self._leaders.close(at_once=at_once)

    # --- brokers --------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Connect to the leaders before there is anything to send. Raises an error if none is reachable."""
        self._leaders.connect({queue.leader for queue in self._queues})

    def _update_leaders(self) -> None:
        """Adopt the current leaders; give up if the topic was deleted."""
        for topic in self._leaders.updates():
            if isinstance(topic, NotFound):
                self.stop(topic)
                for queue in list(self._busy.values()):
                    self._give_up(queue, topic)
                continue
            for state in topic.partitions[: len(self._queues)]:
                queue = self._queues[state.partition]
                if queue.leader != state.leader:
                    queue.leader = state.leader
                    queue.not_before = 0.0
