"""Sending batches to the leaders of a topic's partitions, and knowing what became of each.

One loop, nothing blocks: connections and metadata are looked up beside it (kctl.records.background). The rules:

- Each partition's batches stay in order (kctl.records.produce_lane). With idempotence up to five are under way and the
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
import random
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kctl.errors import ConnectionFailed, KctlError, NotFound, NotSupported, OperationFailed
from kctl.protocol_errors import error_for
from kctl.records import produce_wire
from kctl.records.absence import GONE_S
from kctl.records.background import Background
from kctl.records.outgoing import Outgoing
from kctl.records.partitioner import partition_of
from kctl.records.produce_batch import ClosedBatch, Compress, OpenBatch
from kctl.records.produce_lane import Lane
from kctl.records.produce_link import MAX_REQUESTS, Broken, Link, Request

if TYPE_CHECKING:
    from kctl.client import ClusterClient
    from kctl.connection import Connection
    from kctl.model import Broker, ClusterState

MAX_BYTES = 32 << 20
_REQUEST_BYTES = 1 << 20
_BACKOFF_S, _MOST_BACKOFF_S = 0.05, 1.0
_METADATA_AGE_S = 60.0
_LOOK_S = 5.0
_DIAL_S = 4.0
_SEQUENCE_GAP, _DUPLICATE = 45, 46
_STORAGE_ERROR = 56
# Sent again: after these the leader is looked up anew …
_MOVED = frozenset({3, 5, 6, 8, 9, 13, _STORAGE_ERROR, 72, 74, 75, 80, 100})
# … and these pass by themselves.
_PASSING = frozenset({2, 7, 14, 19, 20, 89})
# Whatever offset they come with: the leader has it (7, 20), or its disk may.
_PERHAPS_WRITTEN = frozenset({-1, 7, 20, _STORAGE_ERROR})
_LAST_EPOCH = 32_767
_BLOCKED_S = 0.05  # how soon to look again at a batch that is due and has nowhere to go

ACKNOWLEDGED, FAILED, UNKNOWN = "acknowledged", "failed", "unknown"
Done = Callable[[ClosedBatch, str, "KctlError | None"], None]


@dataclass(frozen=True, slots=True)
class SenderOptions:
    """acks: −1 for all in-sync replicas, 1, 0. producer: id and epoch for idempotence. batch_bytes: the size when full.

    linger_s: how long a batch waits to be filled. timeout_s: how long a partition may make no progress. go_on: send on
    after a batch is lost. resend: without idempotence, send as producers with retries do: five batches under way, and
    again what got no answer. That duplicates and reorders.
    """

    topic: str
    acks: int
    producer: tuple[int, int] | None
    codec: str
    compress: Compress | None
    batch_bytes: int
    linger_s: float
    timeout_s: float
    go_on: bool = False
    resend: bool = False


class Sender:
    """Takes records and sends them while `step` is called. done: told of each batch once, with its outcome."""

    def __init__(
        self, client: ClusterClient, options: SenderOptions, state: ClusterState, done: Done, background: Background
    ) -> None:
        self._client, self._options, self._done, self._background = client, options, done, background
        self._topic_id = state.topics[options.topic].topic_id
        self._lanes = [Lane(p.partition, p.leader) for p in state.topics[options.topic].partitions]
        self._brokers = dict(state.brokers)
        self._links: dict[int, Link] = {}
        self._undialled: dict[int, float] = {}  # node → not to be tried before
        self._busy: dict[int, Lane] = {}
        self._sticky: Lane | None = None
        self._bytes = 0
        self._looked = time.monotonic()
        self._gone_since: float | None = None
        self._trouble: KctlError | None = None
        self._request_s = max(1.0, min(options.timeout_s / 2, 15.0))  # what the broker may wait for other replicas
        self._silent_s = self._request_s + min(5.0, self._request_s / 2)
        self._repeats = options.producer is not None or options.resend
        self._most_under_way = MAX_REQUESTS if self._repeats or options.acks == 0 else 1
        self.flushing = False
        self.stopped: KctlError | None = None

    # --- what is given --------------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        return self._bytes < MAX_BYTES

    @property
    def idle(self) -> bool:
        """Whether everything that was given has its outcome."""
        return not self._busy

    @property
    def partitions(self) -> int:
        return len(self._lanes)

    def add(self, record: Outgoing, number: int) -> None:
        """Take a record. Its partition, when it names one, is one that the topic has."""
        if record.partition is not None:
            lane = self._lanes[record.partition]
        elif record.key is not None:
            lane = self._lanes[partition_of(record.key, len(self._lanes))]
        else:
            lane = self._sticky_lane()
        batch = self._open_batch(lane)
        before = batch.size
        if not batch.add(record, number):
            self._close_batch(lane)
            batch = self._open_batch(lane)
            before = batch.size
            batch.add(record, number)
        self._bytes += batch.size - before
        if batch.full:
            self._close_batch(lane)

    def add_values(self, values: Sequence[bytes], start: int, end: int, number: int, partition: int | None) -> None:
        """Take values[start:end] as records without keys; `number` is that of the first."""
        while start < end:
            lane = self._sticky_lane() if partition is None else self._lanes[partition]
            batch = self._open_batch(lane)
            before = batch.size
            behind = batch.add_values(values, start, end, number)
            self._bytes += batch.size - before
            number, start = number + behind - start, behind
            if start < end or batch.full:
                self._close_batch(lane)

    def _open_batch(self, lane: Lane) -> OpenBatch:
        if lane.open is None:
            lane.open = OpenBatch(lane.partition, self._options.batch_bytes)
            self._bytes += lane.open.size
            self._busy[lane.partition] = lane
        return lane.open

    def _close_batch(self, lane: Lane) -> None:
        assert lane.open is not None
        lane.waiting.append(lane.open.close(self._options.codec, self._options.compress))
        lane.open = None
        if lane is self._sticky:
            self._sticky = None

    def _sticky_lane(self) -> Lane:
        """Records without a key fill one batch after the other (KIP-480), where the least waits and a leader is."""
        if self._sticky is None or (self._sticky.open is None and self._sticky.leader < 0):
            able = [lane for lane in self._lanes if lane.leader >= 0] or self._lanes
            least = min(lane.length for lane in able)
            self._sticky = random.choice([lane for lane in able if lane.length == least])  # noqa: S311 - no secret
        return self._sticky

    # --- the loop -------------------------------------------------------------------------------------------------

    def step(self, wait_s: float, readable: int | None = None) -> bool:
        """Send what is due, wait at most so long for something to happen, and deal with it.

        readable: a descriptor that also ends the wait; whether it has something to read.
        """
        now = time.monotonic()
        self._look_around(now)
        self._send(now)
        poll = select.poll()
        for node, link in list(self._links.items()):
            if link.wants_to_write:
                self._write(node, link)
        for link in self._links.values():
            poll.register(link.socket, select.POLLIN | (select.POLLOUT if link.wants_to_write else 0))
        poll.register(self._background.fd, select.POLLIN)
        if readable is not None:
            poll.register(readable, select.POLLIN)
        events = dict(poll.poll(max(0, math.ceil(min(wait_s, self._next_due_s(now)) * 1000))))
        for node, link in list(self._links.items()):
            seen = events.get(link.socket.fileno(), 0)
            if seen & select.POLLOUT:
                self._write(node, link)
            if seen & ~select.POLLOUT and node in self._links:
                self._read(node, link)
        for kind, outcome in self._background.finished():
            self._learned(kind, outcome)
        return readable is not None and readable in events

    def _next_due_s(self, now: float) -> float:
        wait = 0.2 if self._busy else 1.0
        for lane in self._busy.values():
            if lane.open is not None and not lane.waiting and len(lane.under_way) < self._most(lane):
                due_s = lane.open.begun + self._options.linger_s - now
                wait = min(wait, max(0.001, due_s) if due_s > 0 else max(_BLOCKED_S, lane.not_before - now))
            elif lane.not_before > now:
                wait = min(wait, lane.not_before - now)
        return wait

    def _look_around(self, now: float) -> None:
        for node, link in list(self._links.items()):
            if link.waited_s > self._silent_s:
                self._broke(node, link, f"it was silent for {self._silent_s:g} s")
            elif link.worn_out:
                self._links.pop(node).close()
        if now - self._looked > _METADATA_AGE_S:
            self._look_up(now)
        for lane in list(self._busy.values()):
            busy_link = self._links.get(lane.node if lane.under_way else lane.leader)
            if busy_link is not None and not lane.tries:
                lane.held = max(lane.held, busy_link.life)
            if now - max(lane.begun, lane.progress, lane.held) > self._options.timeout_s:
                self._give_up(lane, self._no_progress(lane))

    def _no_progress(self, lane: Lane) -> KctlError:
        why = f"partition {self._options.topic}-{lane.partition} took nothing for {self._options.timeout_s:g} s"
        if self._trouble is None:
            return OperationFailed(why, hint="is its leader up? --timeout waits longer")
        return OperationFailed(f"{why}: {self._trouble.message}", hint=self._trouble.hint)

    def _most(self, lane: Lane) -> int:
        """One at a time until a first one is acknowledged, also behind an error: a broker that knows nothing of this
        producer takes any sequence number (ProducerAppendInfo.checkSequence), so that a later batch could get in first.
        """
        return self._most_under_way if lane.progress and not lane.tries else 1

    def _send(self, now: float) -> None:
        by_leader: dict[int, list[Lane]] = {}
        for lane in self._busy.values():
            if now < lane.not_before or not lane.may_send(self._most(lane)) or not self._is_due(lane, now):
                continue
            if lane.leader < 0:
                lane.not_before = now + self._backoff(lane)
                self._look_up(now)
            else:
                by_leader.setdefault(lane.leader, []).append(lane)
        for node, lanes in by_leader.items():
            link = self._links.get(node)
            if link is None:
                self._dial(node, now)
                continue
            ready = lanes
            while ready and link.has_room:
                count = self._send_request(link, ready)
                waiting = [*ready[count:], *ready[:count]]  # those that had no room in it are first in the next
                ready = [lane for lane in waiting if lane.may_send(self._most(lane)) and self._is_due(lane, now)]

    def _is_due(self, lane: Lane, now: float) -> bool:
        if lane.waiting:
            return True
        batch = lane.open
        return batch is not None and (self.flushing or batch.full or now - batch.begun >= self._options.linger_s)

    def _send_request(self, link: Link, lanes: Sequence[Lane]) -> int:
        """Send a batch of each, as far as they fit into a request; of how many."""
        batches: list[ClosedBatch] = []
        size = 0
        for lane in lanes:
            if not lane.waiting:
                self._close_batch(lane)
            size += lane.waiting[0].wire_bytes
            if batches and size > _REQUEST_BYTES:
                break
            batches.append(lane.send_next(link.node, idempotent=self._options.producer is not None))
            self._busy[lane.partition] = self._busy.pop(lane.partition)  # the others first the next time
        timeout_ms = round(self._request_s * 1000)
        link.send(self._options.topic, timeout_ms, batches, self._options.producer or (-1, -1))
        return len(batches)

    # --- answers --------------------------------------------------------------------------------------------------

    def _write(self, node: int, link: Link) -> None:
        try:
            for batch in link.write():  # with acks=0 that is all there is to know
                lane = self._lanes[batch.partition]
                if batch not in lane.under_way:
                    continue  # given up before
                lane.under_way.remove(batch)
                lane.progress, lane.tries = time.monotonic(), 0
                self._finish(batch, ACKNOWLEDGED, None)
        except Broken as exc:
            self._read(node, link)  # what it answered before
            if self._links.get(node) is link:
                self._broke(node, link, str(exc))

    def _read(self, node: int, link: Link) -> None:
        for request, answers in link.read():
            self._answered(request, answers)
        if link.ended is not None:
            self._broke(node, link, link.ended)

    def _answered(self, request: Request, answers: Sequence[produce_wire.Answer]) -> None:
        by_partition = {answer.partition: answer for answer in answers}
        for batch in request.batches:
            lane = self._lanes[batch.partition]
            if batch not in lane.under_way:
                continue  # given up before
            lane.under_way.remove(batch)
            answer = by_partition.get(batch.partition)
            if answer is None:
                self._answer_lost(lane, batch)
            else:
                self._judge(lane, batch, answer)

    def _judge(self, lane: Lane, batch: ClosedBatch, answer: produce_wire.Answer) -> None:
        code = answer.error_code
        if code in (0, _DUPLICATE):
            lane.progress, lane.tries = time.monotonic(), 0
            batch.base_offset = answer.base_offset
            self._finish(batch, ACKNOWLEDGED, None)
            return
        if code == _SEQUENCE_GAP and lane.again:
            lane.again.append(batch)  # an earlier one has to be sent again, and this one behind it
            return
        error = error_for(code, answer.message, subject=f"partition {self._options.topic}-{lane.partition}")
        batch.perhaps_written |= code in _PERHAPS_WRITTEN or answer.base_offset >= 0
        if code in _MOVED or code in _PASSING:
            self._trouble = error
            if batch.perhaps_written and not self._repeats:
                self._lose(lane, batch, error)
                return
            self._send_again(lane, batch)
            if code in _MOVED:
                self._look_up(time.monotonic())
            return
        if code == _SEQUENCE_GAP and lane.refused:  # it stood behind one that was refused, so it never was written
            batch.perhaps_written = False
        lane.refused = not batch.perhaps_written
        self._lose(lane, batch, error)

    def _answer_lost(self, lane: Lane, batch: ClosedBatch) -> None:
        batch.perhaps_written = True
        if self._repeats:
            self._send_again(lane, batch)
        else:
            self._lose(lane, batch, None)

    def _send_again(self, lane: Lane, batch: ClosedBatch) -> None:
        lane.again.append(batch)
        lane.not_before = time.monotonic() + self._backoff(lane)

    def _backoff(self, lane: Lane) -> float:
        lane.tries += 1
        return float(min(_MOST_BACKOFF_S, _BACKOFF_S * 2 ** min(lane.tries - 1, 10)))

    def _broke(self, node: int, link: Link, why: str) -> None:
        """The connection is gone, or a broker stays silent: what is under way there has lost its answer."""
        if link.requests:
            self._trouble = ConnectionFailed(f"the connection to broker {node} broke: {why}")
        link.close()
        self._links.pop(node, None)
        self._undialled[node] = time.monotonic() + _BACKOFF_S
        for request in link.requests:
            for batch in request.batches:
                lane = self._lanes[batch.partition]
                if batch not in lane.under_way:
                    continue
                lane.under_way.remove(batch)
                if link.is_written(request):
                    self._answer_lost(lane, batch)
                else:
                    self._send_again(lane, batch)
        self._look_up(time.monotonic())

    # --- outcomes -------------------------------------------------------------------------------------------------

    def _finish(self, batch: ClosedBatch, outcome: str, error: KctlError | None) -> None:
        self._bytes -= batch.size
        lane = self._lanes[batch.partition]
        if not lane.busy:
            self._busy.pop(batch.partition, None)
        self._done(batch, outcome, error)

    def _lose(self, lane: Lane, batch: ClosedBatch, error: KctlError | None) -> None:
        error = error or OperationFailed(
            f"partition {self._options.topic}-{lane.partition}: the connection broke before an answer came",
            hint="without idempotence it is not sent again, because it may be in the log",
        )
        self._finish(batch, UNKNOWN if batch.perhaps_written else FAILED, error)
        if not self._options.go_on:
            self.stop(error)
        elif self._options.producer is not None:
            self._begin_anew(lane, lane.drop_sent(), error)

    def _give_up(self, lane: Lane, error: KctlError) -> None:
        if lane.open is not None:
            self._close_batch(lane)
        self._begin_anew(lane, lane.drop_all(), error)
        if not self._options.go_on:
            self.stop(error)

    def _begin_anew(self, lane: Lane, lost: Sequence[ClosedBatch], error: KctlError) -> None:
        """The broker takes no sequence number behind one that is missing, but the first one of a new epoch."""
        for batch in lost:
            self._finish(batch, UNKNOWN if batch.perhaps_written else FAILED, error)
        lane.begin_anew()
        if self._options.producer is not None and self._options.producer[1] + lane.epoch > _LAST_EPOCH:
            self.stop(OperationFailed(f"{self._options.topic}-{lane.partition}: too many batches were lost"))

    def stop(self, error: KctlError) -> None:
        """Send nothing new any more; what no broker has seen yet has failed."""
        if self.stopped is None:
            self.stopped = error
        for lane in list(self._busy.values()):
            if lane.open is not None:
                self._close_batch(lane)
            for batch in lane.drop_unsent():
                self._finish(batch, FAILED, None)

    def abandon(self) -> None:
        """Everything that has no outcome yet has one now: failed or unknown."""
        error = OperationFailed("it was ended before an answer came")
        for lane in list(self._busy.values()):
            self._give_up(lane, error)

    def close(self, *, at_once: bool = False) -> None:
        """Close all connections; what is on its way is abandoned. at_once: wait for no call that runs beside it."""
        for link in self._links.values():
            link.close()
        self._links.clear()
        for kind, outcome in self._background.close(0 if at_once else _LOOK_S + 1):
            if kind != "metadata" and not isinstance(outcome, KctlError):
                outcome.close()

    # --- brokers --------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Connect to the leaders, before there is anything to send. Raises why, when none can be reached."""
        leaders = {lane.leader for lane in self._lanes} & self._brokers.keys()
        opened = self._client.dial_known([self._brokers[node] for node in leaders], timeout_s=_DIAL_S)
        for node, outcome in opened.items():
            self._connected(node, outcome)
        if self._trouble is not None and (isinstance(self._trouble, NotSupported) or (leaders and not self._links)):
            raise self._trouble

    def _dial(self, node: int, now: float) -> None:
        broker = self._brokers.get(node)
        if broker is None:
            self._look_up(now)
        elif self._undialled.get(node, 0.0) <= now:
            self._background.start(node, partial(self._dial_one, broker))

    def _dial_one(self, broker: Broker) -> Connection:
        try:
            outcome = self._client.dial_known([broker], timeout_s=_DIAL_S)[broker.id]
        except OSError as exc:  # no file descriptor left, and the like
            raise ConnectionFailed(f"broker {broker.id} cannot be reached: {exc.strerror}") from None
        if isinstance(outcome, KctlError):
            raise outcome
        return outcome

    def _connected(self, node: int, outcome: Connection | KctlError) -> None:
        if isinstance(outcome, KctlError):
            self._trouble = outcome
            self._undialled[node] = time.monotonic() + _MOST_BACKOFF_S / 2
            self._look_up(time.monotonic())
            return
        version = produce_wire.version_for(outcome.api_versions.get(produce_wire.PRODUCE), self._options.codec)
        if version is None:
            outcome.close()
            self._trouble = NotSupported(
                f"broker {node} does not take batches of format 2 with codec {self._options.codec}",
                hint="Kafka 0.11 or newer is needed, for zstd 2.1",
            )
            self._undialled[node] = float("inf")
            return
        self._links[node] = Link(node, outcome, version, self._options.acks)

    def _look_up(self, now: float) -> None:
        """Ask for the leaders anew, unless that is under way or was a moment ago."""
        if now - self._looked < _BACKOFF_S:
            return
        self._looked = now
        topic = self._options.topic
        self._background.start("metadata", lambda: self._client.metadata([topic], timeout_s=_LOOK_S))

    def _learned(self, kind: Any, outcome: Any) -> None:
        if kind != "metadata":
            self._connected(kind, outcome)
            return
        self._looked = time.monotonic()
        if isinstance(outcome, KctlError):
            self._trouble = outcome
            return
        self._brokers = dict(outcome.brokers)
        found = outcome.topics.get(self._options.topic)
        if found is None or (self._topic_id and found.topic_id != self._topic_id):
            self._missing(again=found is not None)
            return
        self._gone_since = None
        for state in found.partitions[: len(self._lanes)]:
            lane = self._lanes[state.partition]
            if lane.leader != state.leader:
                lane.leader = state.leader
                lane.not_before = 0.0

    def _missing(self, *, again: bool) -> None:
        now = time.monotonic()
        self._gone_since = now if self._gone_since is None else self._gone_since
        if not again and now - self._gone_since < GONE_S:
            return
        how = "was deleted and created again" if again else "was deleted"
        error = NotFound(f"topic {self._options.topic} {how} meanwhile")
        self.stop(error)
        for lane in list(self._busy.values()):
            self._give_up(lane, error)
