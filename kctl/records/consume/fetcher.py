"""Fetch from the leaders of many partitions, without a group: one request in flight for each leader.

The next request is sent to a leader before its last response is decoded, so that brokers read while kctl decodes. A
response stays in the socket until it is read: memory holds one at a time. Leaders that changed, stopped or do not
respond are looked up again. Connections are opened in the background, so that an unresponsive host does not delay the
records of other leaders. An offset out of range is returned to the caller, which decides.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.base.deadline import Deadline
from kctl.errors import ConnectionFailed, ConnectionReason, KctlError, NotAuthorized, OperationFailed
from kctl.model import Broker, TopicPartition, TopicState
from kctl.protocol.codes import ErrorCode
from kctl.protocol.connection import Connection, Pending
from kctl.protocol.fetch import fetch_request
from kctl.records.background import Background
from kctl.records.consume.absence import Absence
from kctl.records.consume.batches import next_offset

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_NO_LEADER = -1
_MAX_WAIT_MS = 500
_PARTITION_BYTES, _RESPONSE_BYTES = 1 << 20, 8 << 20
_PAUSES_S = (0.05, 0.2, 0.5, 1.0)
_LOOKUP_S = 5.0  # for a Metadata response: the next lookup may use another broker
_DIAL_S = 4.0
_REDIAL_S = 1.0  # pause after a failed connection to a broker
# A new lookup of the metadata resolves these.
_RETRIABLE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_ID,
    }
)  # fmt: skip


class Fetched(NamedTuple):
    """A response for one partition.

    position: the requested offset; next_position: the offset after the data. aborted: the producer id and first offset
    of each aborted transaction. end: the end of the readable log (the high watermark, or the last stable offset).
    error_code: 0, or OFFSET_OUT_OF_RANGE, after which the partition is not fetched until `seek`.
    """

    tp: TopicPartition
    position: int
    next_position: int
    data: bytes
    aborted: tuple[tuple[int, int], ...]
    end: int
    error_code: int = 0


@dataclass
class _LeaderConnection:
    """A connection to a leader, and its request in flight. requested: the offset of each partition."""

    connection: Connection
    pending: Pending | None = None
    requested: dict[TopicPartition, int] = field(default_factory=dict)
    deadline: Deadline = field(default_factory=lambda: Deadline(0))


class Fetcher:
    """A reader of many partitions, each from a position. Not thread-safe. `close` it.

    warn: called with a line if records cannot be read for now, e.g. because a partition has no leader. follow: wait for
    a leader without a limit; otherwise for at most timeout_s.
    """

    def __init__(
        self,
        client: ClusterClient,
        positions: Mapping[TopicPartition, int],
        *,
        read_committed: bool,
        warn: Callable[[str], None],
        timeout_s: float,
        follow: bool = True,
        partition_bytes: int = _PARTITION_BYTES,
    ) -> None:
        self._client, self._read_committed, self._warn = client, read_committed, warn
        self._timeout_s, self._follow, self._partition_bytes = timeout_s, follow, partition_bytes
        self._positions = dict(positions)  # in the order of requests
        self._leaders: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, str | None] = {}
        self._links: dict[int, _LeaderConnection] = {}
        self._brokers: dict[int, Broker] = {}
        self._background = Background()  # connections that are being opened, by node
        self._not_before: dict[int, float] = {}  # when a node may be dialed again
        self._absence = Absence()
        self._paused: set[TopicPartition] = set()  # not to be requested for now
        self._failing: dict[TopicPartition, float] = {}  # since this time
        self._unanswered = set(positions)  # without any response yet
        self._warned: set[TopicPartition] = set()
        self._next_lookup, self._lookups = 0.0, 0
        self._last_response = time.monotonic()

    # --- what to read ---------------------------------------------------------------------------------------------

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Continue at `offset`."""
        if tp not in self._positions:
            self._unanswered.add(tp)
        self._positions[tp] = offset
        self._paused.discard(tp)

    def drop(self, tp: TopicPartition) -> None:
        """Stop reading the partition."""
        self._positions.pop(tp, None)
        self._paused.discard(tp)
        self._failing.pop(tp, None)
        self._unanswered.discard(tp)

    def pause(self, tp: TopicPartition) -> None:
        """Do not request the partition until `resume`."""
        self._paused.add(tp)

    def resume(self, tp: TopicPartition) -> None:
        self._paused.discard(tp)

    @property
    def searching(self) -> bool:
        """Return True while leaders are looked up or do not respond, for at most timeout_s.

        The logs may have more records although none arrive.
        """
        if self._unanswered - self._failing.keys():
            return True
        now = time.monotonic()
        if any(now - since <= self._timeout_s for since in self._failing.values()):
            return True
        return any(link.pending and link.deadline.left_s < self._timeout_s - 1 for link in self._links.values())

    # --- reading --------------------------------------------------------------------------------------------------

    def poll(self, timeout_s: float) -> Iterator[Fetched]:
        """Yield the responses that arrive within timeout_s, leader by leader.

        Raises NotAuthorized, OperationFailed if a topic was deleted or remains without a leader, ConnectionFailed if
        no broker responds.
        """
        self._adopt_connections()
        self._find_leaders()
        self._send()
        waiting = {link.connection.fileno(): node for node, link in self._links.items() if link.pending}
        poll = select.poll()
        poll.register(self._background.fd, select.POLLIN)
        for descriptor in waiting:
            poll.register(descriptor, select.POLLIN | select.POLLHUP)
        ready = poll.poll((timeout_s if waiting else min(timeout_s, 0.05)) * 1000)
        for descriptor, _ in ready:
            if descriptor in waiting:
                yield from self._receive(waiting[descriptor])
        for node in waiting.values():
            link = self._links.get(node)
            if link is not None and link.pending is not None and link.deadline.expired:
                late = ConnectionFailed(
                    f"broker {node} did not respond to Fetch in time", reason=ConnectionReason.NO_RESPONSE
                )
                self._close_link(node, late)

    def _receive(self, node: int) -> Iterator[Fetched]:
        link = self._links[node]
        assert link.pending
        try:
            response = link.connection.receive_message(link.pending, link.deadline)
        except ConnectionFailed as exc:
            self._close_link(node, exc)
            return
        requested, link.pending, link.requested = link.requested, None, {}
        self._last_response = time.monotonic()
        results = list(self._parse(response, requested))
        self._send()  # before these are decoded
        yield from results

    def _parse(self, response: Any, requested: Mapping[TopicPartition, int]) -> Iterator[Fetched]:
        from kctl.protocol.client import error_for

        code = getattr(response, "error_code", 0)
        if code:
            raise error_for(code, None, subject="Fetch")
        for topic in response.responses:
            for row in topic.partitions:
                tp = TopicPartition(topic.topic, row.partition_index)
                position = self._positions.get(tp)
                if position is None or requested.get(tp) != position:
                    continue  # dropped or moved in the meantime
                if row.error_code in _RETRIABLE:
                    self._mark_failing(tp, error_for(row.error_code, None, subject=f"partition {tp}"))
                elif row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._paused.add(tp)
                    self._unanswered.discard(tp)
                    yield Fetched(tp, position, position, b"", (), -1, row.error_code)
                elif row.error_code:
                    denied = row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    hint = "ask for the ACL operation Read on the topic" if denied else None
                    raise _final(error_for(row.error_code, None, subject=f"partition {tp}", hint=hint))
                else:
                    self._failing.pop(tp, None)
                    self._unanswered.discard(tp)
                    self._warned.discard(tp)
                    yield self._fetched(tp, position, row)

    def _fetched(self, tp: TopicPartition, position: int, row: Any) -> Fetched:
        data = bytes(row.records or b"")
        offset_after = next_offset(data, position)
        if data:
            # Moved to the end, so that every partition gets its turn if a response cannot hold all of them.
            del self._positions[tp]
            self._positions[tp] = offset_after
        aborted = tuple((each.producer_id, each.first_offset) for each in row.aborted_transactions or ())
        end = row.last_stable_offset if self._read_committed else row.high_watermark
        return Fetched(tp, position, offset_after, data, aborted if self._read_committed else (), end)

    def _send(self) -> None:
        """Send a request to each leader without one in flight."""
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for tp, offset in self._positions.items():
            leader = self._leaders.get(tp, _NO_LEADER)
            if leader != _NO_LEADER and tp not in self._paused:
                by_leader.setdefault(leader, {})[tp] = offset
        idle = [node for node in by_leader if node not in self._links or self._links[node].pending is None]
        self._connect(idle)
        for node in idle:
            link = self._links.get(node)
            if link is None:
                continue
            request = fetch_request(
                by_leader[node], partition_bytes=self._partition_bytes, max_bytes=_RESPONSE_BYTES,
                max_wait_ms=_MAX_WAIT_MS, read_committed=self._read_committed,
            )  # fmt: skip
            try:
                from kctl.protocol.request_version import negotiate

                version = negotiate(request, None, link.connection)
                link.deadline = Deadline(self._timeout_s + _MAX_WAIT_MS / 1000)
                link.connection.step = "the Fetch request"
                link.pending = link.connection.send_message(request, version, link.deadline)
                link.requested = by_leader[node]
            except ConnectionFailed as exc:
                link.requested = by_leader[node]
                self._close_link(node, exc)

    def _connect(self, nodes: list[int]) -> None:
        for node in nodes:
            if node in self._links and not self._links[node].connection.usable:  # idle too long, or the login expired
                self._links.pop(node).connection.close()
        now = time.monotonic()
        for node in nodes:
            if node in self._links or now < self._not_before.get(node, 0.0):
                continue
            if node in self._brokers:
                self._background.start(node, partial(self._dial, self._brokers[node]))
            else:
                self._mark_unreachable(node, ConnectionFailed(f"the address of broker {node} is unknown"))

    def _dial(self, broker: Broker) -> Connection:
        outcome = self._client.dial_known([broker], timeout_s=_DIAL_S)[broker.id]
        if isinstance(outcome, KctlError):
            raise outcome
        return outcome

    def _adopt_connections(self) -> None:
        for node, outcome in self._background.finished():
            self._adopt(node, outcome)

    def _adopt(self, node: Any, outcome: Any) -> None:
        if isinstance(outcome, KctlError):
            self._mark_unreachable(node, outcome)
        else:
            self._links[node] = _LeaderConnection(outcome)

    def _mark_unreachable(self, node: int, why: KctlError) -> None:
        self._not_before[node] = time.monotonic() + _REDIAL_S
        for tp in [tp for tp, leader in self._leaders.items() if leader == node]:
            self._mark_failing(tp, why)

    # --- leaders --------------------------------------------------------------------------------------------------

    def _find_leaders(self) -> None:
        leaderless = {tp for tp in self._positions if self._leaders.get(tp, _NO_LEADER) == _NO_LEADER}
        if not leaderless or time.monotonic() < self._next_lookup:
            return
        self._next_lookup = time.monotonic() + _PAUSES_S[min(self._lookups, len(_PAUSES_S) - 1)]
        self._lookups += 1
        try:
            state = self._client.metadata({tp.topic for tp in leaderless}, timeout_s=_LOOKUP_S)
        except ConnectionFailed:
            if time.monotonic() - self._last_response > self._timeout_s:
                raise
            return
        self._last_response = time.monotonic()
        self._brokers |= state.brokers
        self._check_topics(state.topics, {tp.topic for tp in leaderless})
        leaders = {each.tp: each.leader for topic in state.topics.values() for each in topic.partitions}
        for tp in sorted(leaderless):
            if tp.topic not in state.topics:
                continue
            self._leaders[tp] = leaders.get(tp, _NO_LEADER)
            if self._leaders[tp] == _NO_LEADER:
                self._mark_failing(tp, OperationFailed(f"{tp} has no leader"))
                if tp not in self._warned:
                    self._warned.add(tp)
                    self._warn(f"{tp} has no leader; waiting for one")
        if not leaderless & self._failing.keys() and not self._absence:
            self._lookups = 0

    def _check_topics(self, topics: Mapping[str, TopicState], names: Collection[str]) -> None:
        """Raise OperationFailed if a topic was deleted or recreated."""
        for name in sorted(names):
            topic = topics.get(name)
            if self._absence.lasts(name, missing=topic is None):
                raise OperationFailed(f"topic {name} was deleted while it was read")
            if topic is not None and self._topic_ids.setdefault(name, topic.topic_id) != topic.topic_id:
                raise OperationFailed(f"topic {name} was deleted and recreated while it was read")

    def _mark_failing(self, tp: TopicPartition, why: KctlError) -> None:
        """Record that the partition is unreadable for now. Raises the error after timeout_s."""
        if isinstance(why, NotAuthorized):
            raise why
        self._leaders[tp] = _NO_LEADER
        if tp not in self._positions:
            return
        since = self._failing.setdefault(tp, time.monotonic())
        waited = time.monotonic() - since
        if waited > self._timeout_s and not self._follow:
            raise OperationFailed(
                f"partition {tp} could not be read for {self._timeout_s:g} s: {why.message}", hint=why.hint
            )
        if waited > 5 and tp not in self._warned:
            self._warned.add(tp)
            self._warn(f"{tp} cannot be read at the moment: {why.message}")

    def _close_link(self, node: int, why: KctlError) -> None:
        link = self._links.pop(node)
        link.connection.close()
        for tp in link.requested:
            self._mark_failing(tp, why)

    def close(self) -> None:
        """Close all connections, without waiting for responses or for connections being opened."""
        for link in self._links.values():
            link.connection.close()
        self._links.clear()
        for _, outcome in self._background.close(0.0):
            if not isinstance(outcome, KctlError):
                outcome.close()


def _final(error: KctlError) -> KctlError:
    """Return a partition's error that waiting does not resolve."""
    if isinstance(error, NotAuthorized):
        return error
    return OperationFailed(error.message, hint=error.hint)
