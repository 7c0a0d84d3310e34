"""Sending batches to the leaders of a topic's partitions, and knowing what became of each.

One loop, nothing blocks: connections and metadata are looked up beside it (kctl.records.background). The rules:

- Each partition's batches stay in order (`partition_queue`). With idempotence up to five are under way and the
  broker puts a repeated one right (KIP-98); without it only one, and one whose answer was lost is never sent again.
- After an error that passes (a leader moved, a broker went away) a batch is sent again until the partition has made no
  progress for timeout_s; the time that it stands behind others on a connection that works does not count. What
  was sent and never answered is then unknown, what a broker refused or never got, failed.
- After the first batch that is lost nothing new is sent; what had been sent before is brought to its end. With `go_on`
  the partition's next batches follow: under the producer's next epoch, as Java's producer does (KIP-360).
- What is not acknowledged is bounded in bytes (`has_room`).
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
from kctl.records.produce.link import MAX_REQUESTS, Broken, Link, Request
from kctl.records.produce.options import SenderOptions
from kctl.records.produce.partition_queue import PartitionQueue

if TYPE_CHECKING:
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient

MAX_BYTES = 32 << 20
_REQUEST_BYTES = 1 << 20
_BACKOFF_S, _MOST_BACKOFF_S = 0.05, 1.0
_LAST_EPOCH = 32_767
_BLOCKED_S = 0.05  # how soon to look again at a batch that is due and has nowhere to go

ACKNOWLEDGED, FAILED, UNKNOWN = "acknowledged", "failed", "unknown"
Done = Callable[[ClosedBatch, str, "KctlError | None"], None]


class Sender:
    """Takes records and sends them while `step` is called. done: told of each batch once, with its outcome."""

    def __init__(
        self, client: ClusterClient, options: SenderOptions, state: ClusterState, done: Done, background: Background
    ) -> None:
        self._options, self._done, self._background = options, done, background
        self._leaders = Leaders(client, options.topic, state, background, codec=options.codec, acks=options.acks)
        self._records = RecordAccumulator(options, state.topics[options.topic].partitions)
        self._queues, self._busy = self._records.queues, self._records.busy
        # Bound here, so that a record costs no further call.
        self.add, self.add_values = self._records.add, self._records.add_values
        self._request_s = max(1.0, min(options.timeout_s / 2, 15.0))  # what the broker may wait for other replicas
        self._silent_s = self._request_s + min(5.0, self._request_s / 2)
        self._repeats = options.producer is not None or options.resend
        self._most_under_way = MAX_REQUESTS if self._repeats or options.acks == 0 else 1
        self.flushing = False
        self.stopped: KctlError | None = None

    # --- what is given --------------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        return self._records.bytes < MAX_BYTES

    @property
    def idle(self) -> bool:
        """Whether everything that was given has its outcome."""
        return not self._busy

    @property
    def partitions(self) -> int:
        return len(self._queues)

    def add_batch(self, batch: ClosedBatch) -> None:
        """Take a whole batch, which is sent as it is. A partition gets either batches or single records."""
        self._records.add_batch(batch)

    # --- the loop -------------------------------------------------------------------------------------------------

    def step(self, wait_s: float, readable: int | None = None) -> bool:
        """Send what is due, wait at most so long for something to happen, and deal with it.

        readable: a descriptor that also ends the wait; whether it has something to read.
        """
        now = time.monotonic()
        self._look_around(now)
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
            seen = events.get(link.socket.fileno(), 0)
            if seen & select.POLLOUT:
                self._write(node, link)
            if seen & ~select.POLLOUT and node in self._leaders.links:
                self._read(node, link)
        self._learn()
        return readable is not None and readable in events

    def _next_due_s(self, now: float) -> float:
        wait = 0.2 if self._busy else 1.0
        for queue in self._busy.values():
            if queue.open is not None and not queue.waiting and len(queue.under_way) < self._most(queue):
                due_s = queue.open.begun + self._options.linger_s - now
                wait = min(wait, max(0.001, due_s) if due_s > 0 else max(_BLOCKED_S, queue.not_before - now))
            elif queue.not_before > now:
                wait = min(wait, queue.not_before - now)
        return wait

    def _look_around(self, now: float) -> None:
        for node, link in list(self._leaders.links.items()):
            if link.waited_s > self._silent_s:
                self._broke(node, link, f"it was silent for {self._silent_s:g} s")
            elif link.worn_out:
                self._leaders.links.pop(node).close()
        self._leaders.keep_fresh(now)
        for queue in list(self._busy.values()):
            busy_link = self._leaders.links.get(queue.node if queue.under_way else queue.leader)
            if busy_link is not None and not queue.tries:
                queue.held = max(queue.held, busy_link.life)
            if now - max(queue.begun, queue.progress, queue.held) > self._options.timeout_s:
                self._give_up(queue, self._no_progress(queue))

    def _no_progress(self, queue: PartitionQueue) -> KctlError:
        place = f"partition {self._options.topic}-{queue.partition}"
        why = f"{place} took nothing for {self._options.timeout_s:g} s"
        if self._leaders.trouble is None:
            return OperationFailed(why, hint="is its leader up? --timeout waits longer")
        reason = self._leaders.trouble.message.removeprefix(f"{place}: ")
        return OperationFailed(f"{why}: {reason}", hint=queue.size_hint or self._leaders.trouble.hint)

    def _most(self, queue: PartitionQueue) -> int:
        """One at a time until a first one is acknowledged, also behind an error: a broker that knows nothing of this
        producer takes any sequence number (ProducerAppendInfo.checkSequence), so that a later batch could get in first.
        """
        return self._most_under_way if queue.progress and not queue.tries else 1

    def _send(self, now: float) -> None:
        by_leader: dict[int, list[PartitionQueue]] = {}
        for queue in self._busy.values():
            if now < queue.not_before or not queue.may_send(self._most(queue)) or not self._is_due(queue, now):
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
                waiting = [*ready[count:], *ready[:count]]  # those that had no room in it are first in the next
                ready = [queue for queue in waiting if queue.may_send(self._most(queue)) and self._is_due(queue, now)]

    def _is_due(self, queue: PartitionQueue, now: float) -> bool:
        if queue.waiting:
            return True
        batch = queue.open
        return batch is not None and (self.flushing or batch.full or now - batch.begun >= self._options.linger_s)

    def _send_request(self, link: Link, queues: Sequence[PartitionQueue]) -> int:
        """Send a batch of each, as far as they fit into a request; of how many."""
        batches: list[ClosedBatch] = []
        size = 0
        for queue in queues:
            if not queue.waiting:
                self._records.close_batch(queue)
            size += queue.waiting[0].wire_bytes
            if batches and size > _REQUEST_BYTES:
                break
            batches.append(queue.send_next(link.node, idempotent=self._options.producer is not None))
            self._busy[queue.partition] = self._busy.pop(queue.partition)  # the others first the next time
        timeout_ms = round(self._request_s * 1000)
        link.send(self._options.topic, timeout_ms, batches, self._options.producer or (-1, -1))
        return len(batches)

    # --- answers --------------------------------------------------------------------------------------------------

    def _write(self, node: int, link: Link) -> None:
        try:
            for batch in link.write():  # with acks=0 that is all there is to know
                queue = self._queues[batch.partition]
                if batch not in queue.under_way:
                    continue  # given up before
                queue.under_way.remove(batch)
                queue.progress, queue.tries = time.monotonic(), 0
                self._finish(batch, ACKNOWLEDGED, None)
        except Broken as exc:
            self._read(node, link)  # what it answered before
            if self._leaders.links.get(node) is link:
                self._broke(node, link, str(exc))

    def _read(self, node: int, link: Link) -> None:
        for request, answers in link.read():
            self._answered(request, answers)
        if link.ended is not None:
            self._broke(node, link, link.ended)

    def _answered(self, request: Request, answers: Sequence[produce_wire.Answer]) -> None:
        by_partition = {answer.partition: answer for answer in answers}
        for batch in request.batches:
            queue = self._queues[batch.partition]
            if batch not in queue.under_way:
                continue  # given up before
            queue.under_way.remove(batch)
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
        if answer.out_of_sequence and queue.again:
            queue.again.append(batch)  # an earlier one has to be sent again, and this one behind it
            return
        error = error_for(
            answer.error_code, answer.message, subject=f"partition {self._options.topic}-{queue.partition}"
        )
        batch.perhaps_written |= answer.perhaps_in_log
        if answer.leader_moved or answer.transient:
            self._leaders.trouble = error
            if batch.perhaps_written and not self._repeats:
                self._lose(queue, batch, error)
                return
            self._send_again(queue, batch)
            if answer.leader_moved:
                self._leaders.look_up(time.monotonic())
            return
        if answer.out_of_sequence and queue.refused:  # it stood behind one that was refused, so it never was written
            batch.perhaps_written = False
        queue.refused = not batch.perhaps_written
        self._lose(queue, batch, error)

    def _answer_lost(self, queue: PartitionQueue, batch: ClosedBatch) -> None:
        batch.perhaps_written = True
        if self._repeats:
            self._send_again(queue, batch)
        else:
            self._lose(queue, batch, None)

    def _send_again(self, queue: PartitionQueue, batch: ClosedBatch) -> None:
        queue.again.append(batch)
        queue.not_before = time.monotonic() + self._backoff(queue)

    def _backoff(self, queue: PartitionQueue) -> float:
        queue.tries += 1
        return float(min(_MOST_BACKOFF_S, _BACKOFF_S * 2 ** min(queue.tries - 1, 10)))

    def _broke(self, node: int, link: Link, why: str) -> None:
        """The connection is gone, or a broker stays silent: what is under way there has lost its answer."""
        self._leaders.broke(node, link, why)
        for request in link.requests:
            for batch in request.batches:
                queue = self._queues[batch.partition]
                if batch not in queue.under_way:
                    continue
                queue.under_way.remove(batch)
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
            f"partition {self._options.topic}-{queue.partition}: the connection broke before an answer came",
            hint="without idempotence it is not sent again, because it may be in the log",
        )
        self._finish(batch, UNKNOWN if batch.perhaps_written else FAILED, error)
        if not self._options.go_on:
            self.stop(error)
        elif self._options.producer is not None:
            self._begin_anew(queue, queue.drop_sent(), error)

    def _give_up(self, queue: PartitionQueue, error: KctlError) -> None:
        if queue.open is not None:
            self._records.close_batch(queue)
        self._begin_anew(queue, queue.drop_all(), error)
        if not self._options.go_on:
            self.stop(error)

    def _begin_anew(self, queue: PartitionQueue, lost: Sequence[ClosedBatch], error: KctlError) -> None:
        """The broker takes no sequence number behind one that is missing, but the first one of a new epoch."""
        for batch in lost:
            self._finish(batch, UNKNOWN if batch.perhaps_written else FAILED, error)
        queue.begin_anew()
        if self._options.producer is not None and self._options.producer[1] + queue.epoch > _LAST_EPOCH:
            self.stop(OperationFailed(f"{self._options.topic}-{queue.partition}: too many batches were lost"))

    def stop(self, error: KctlError) -> None:
        """Send nothing new any more; what no broker has seen yet has failed."""
        if self.stopped is None:
            self.stopped = error
        for queue in list(self._busy.values()):
            if queue.open is not None:
                self._records.close_batch(queue)
            for batch in queue.drop_unsent():
                self._finish(batch, FAILED, None)

    def abandon(self) -> None:
        """Everything that has no outcome yet has one now: failed or unknown."""
        error = OperationFailed("it was ended before an answer came")
        for queue in list(self._busy.values()):
            self._give_up(queue, error)

    def close(self, *, at_once: bool = False) -> None:
        """Close all connections; what is on its way is abandoned. at_once: wait for no call that runs beside it."""
        self._leaders.close(at_once=at_once)

    # --- brokers --------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Connect to the leaders, before there is anything to send. Raises why, when none can be reached."""
        self._leaders.connect({queue.leader for queue in self._queues})

    def _learn(self) -> None:
        """Send to the leaders that there are now; a topic that is gone takes nothing more."""
        for topic in self._leaders.learned():
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
