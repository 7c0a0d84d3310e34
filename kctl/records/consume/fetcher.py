"""Fetching from the leaders of many partitions, without a group: one request under way to each leader.

The next request of a leader is sent before its last answer is decoded, so that brokers read while kctl does. An
answer waits in the socket until it is asked for: memory holds one at a time. Leaders that changed, went away or do
not answer are looked up again, and connected to beside the reading, so that a host that swallows everything stops
nobody else's records; what a caller has to decide (an offset out of range) is in the answer.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.base.deadline import Deadline
from kctl.errors import ConnectionFailed, KctlError, NotAuthorized, OperationFailed
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
_PATIENCE_MS = 500
_PARTITION_BYTES, _ANSWER_BYTES = 1 << 20, 8 << 20
_PAUSES_S = (0.05, 0.2, 0.5, 1.0)
_LOOK_S = 5.0  # for an answer to Metadata: the next look may ask another broker
_DIAL_S = 4.0
_REDIAL_S = 1.0  # a broker that could not be reached is left alone for so long
# A new look at the metadata resolves these.
_LOOK_AGAIN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_ID,
    }
)  # fmt: skip


class Fetched(NamedTuple):
    """An answer for one partition. position: what was asked for; next_position: the offset behind it.

    aborted: (producer id, first offset) of each transaction.

    end: what can be read ends there (the high watermark, or the last stable offset). error_code: 0, or
    OFFSET_OUT_OF_RANGE, after which nothing is asked until `seek`.
    """

    tp: TopicPartition
    position: int
    next_position: int
    data: bytes
    aborted: tuple[tuple[int, int], ...]
    end: int
    error_code: int = 0


@dataclass
class _Link:
    """A connection to a leader, and what it was asked."""

    connection: Connection
    pending: Pending | None = None
    asked: dict[TopicPartition, int] = field(default_factory=dict)
    deadline: Deadline = field(default_factory=lambda: Deadline(0))


class Fetcher:
    """Reads on from a position in each partition. For one thread. `close` it.

    tell: is called with a line when somebody should know why nothing comes. follow: without a leader it waits for
    ever; else timeout_s at most.
    """

    def __init__(
        self,
        client: ClusterClient,
        positions: Mapping[TopicPartition, int],
        *,
        read_committed: bool,
        tell: Callable[[str], None],
        timeout_s: float,
        follow: bool = True,
        partition_bytes: int = _PARTITION_BYTES,
    ) -> None:
        self._client, self._read_committed, self._tell = client, read_committed, tell
        self._timeout_s, self._follow, self._partition_bytes = timeout_s, follow, partition_bytes
        self._positions = dict(positions)  # in the order in which they are asked for
        self._leaders: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, str | None] = {}
        self._links: dict[int, _Link] = {}
        self._brokers: dict[int, Broker] = {}
        self._background = Background()  # connections that are being opened, by node
        self._not_before: dict[int, float] = {}  # when a node may be dialled again
        self._absence = Absence()
        self._silent: set[TopicPartition] = set()  # not to be asked for now
        self._failing: dict[TopicPartition, float] = {}  # since when
        self._unread = set(positions)  # nothing has been answered about them yet
        self._told: set[TopicPartition] = set()
        self._next_look, self._looks = 0.0, 0
        self._answered = time.monotonic()

    # --- what to read ---------------------------------------------------------------------------------------------

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Go on at `offset`."""
        if tp not in self._positions:
            self._unread.add(tp)
        self._positions[tp] = offset
        self._silent.discard(tp)

    def drop(self, tp: TopicPartition) -> None:
        """It is read no more."""
        self._positions.pop(tp, None)
        self._silent.discard(tp)
        self._failing.pop(tp, None)
        self._unread.discard(tp)

    def pause(self, tp: TopicPartition) -> None:
        """Do not ask for it until `resume`."""
        self._silent.add(tp)

    def resume(self, tp: TopicPartition) -> None:
        self._silent.discard(tp)

    @property
    def searching(self) -> bool:
        """Leaders are being looked for or do not answer, for no longer than timeout_s: that nothing comes does not
        mean that nothing is there."""
        if self._unread - self._failing.keys():
            return True
        now = time.monotonic()
        if any(now - since <= self._timeout_s for since in self._failing.values()):
            return True
        return any(link.pending and link.deadline.left_s < self._timeout_s - 1 for link in self._links.values())

    # --- reading --------------------------------------------------------------------------------------------------

    def poll(self, timeout_s: float) -> Iterator[Fetched]:
        """What comes within timeout_s, from one leader after the other. Raises NotAuthorized, OperationFailed when a
        topic is gone or stays without a leader, ConnectionFailed when no broker answers."""
        self._take_connections()
        self._find_leaders()
        self._ask()
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
                self._lost(node, ConnectionFailed(f"broker {node} did not answer Fetch in time"))

    def _receive(self, node: int) -> Iterator[Fetched]:
        link = self._links[node]
        assert link.pending
        try:
            response = link.connection.receive_message(link.pending, link.deadline)
        except ConnectionFailed as exc:
            self._lost(node, exc)
            return
        asked, link.pending, link.asked = link.asked, None, {}
        self._answered = time.monotonic()
        found = list(self._parse(response, asked))
        self._ask()  # before these are decoded
        yield from found

    def _parse(self, response: Any, asked: Mapping[TopicPartition, int]) -> Iterator[Fetched]:
        from kctl.protocol.client import error_for

        code = getattr(response, "error_code", 0)
        if code:
            raise error_for(code, None, subject="Fetch")
        for topic in response.responses:
            for row in topic.partitions:
                tp = TopicPartition(topic.topic, row.partition_index)
                position = self._positions.get(tp)
                if position is None or asked.get(tp) != position:
                    continue  # dropped, or moved meanwhile
                if row.error_code in _LOOK_AGAIN:
                    self._fails(tp, error_for(row.error_code, None, subject=f"partition {tp}"))
                elif row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._silent.add(tp)
                    self._unread.discard(tp)
                    yield Fetched(tp, position, position, b"", (), -1, row.error_code)
                elif row.error_code:
                    denied = row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    hint = "ask for the ACL operation Read on the topic" if denied else None
                    raise _final(error_for(row.error_code, None, subject=f"partition {tp}", hint=hint))
                else:
                    self._failing.pop(tp, None)
                    self._unread.discard(tp)
                    self._told.discard(tp)
                    yield self._taken(tp, position, row)

    def _taken(self, tp: TopicPartition, position: int, row: Any) -> Fetched:
        data = bytes(row.records or b"")
        following = next_offset(data, position)
        if data:
            # Behind the others, so that each gets its turn when an answer cannot hold all.
            del self._positions[tp]
            self._positions[tp] = following
        aborted = tuple((each.producer_id, each.first_offset) for each in row.aborted_transactions or ())
        end = row.last_stable_offset if self._read_committed else row.high_watermark
        return Fetched(tp, position, following, data, aborted if self._read_committed else (), end)

    def _ask(self) -> None:
        """Send to each leader that owes no answer what is to be read from it."""
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for tp, offset in self._positions.items():
            leader = self._leaders.get(tp, _NO_LEADER)
            if leader != _NO_LEADER and tp not in self._silent:
                by_leader.setdefault(leader, {})[tp] = offset
        idle = [node for node in by_leader if node not in self._links or self._links[node].pending is None]
        self._connect(idle)
        for node in idle:
            link = self._links.get(node)
            if link is None:
                continue
            request = fetch_request(
                by_leader[node], partition_bytes=self._partition_bytes, max_bytes=_ANSWER_BYTES,
                patience_ms=_PATIENCE_MS, read_committed=self._read_committed,
            )  # fmt: skip
            try:
                from kctl.protocol.brokers import negotiate

                version = negotiate(request, None, link.connection)
                link.deadline = Deadline(self._timeout_s + _PATIENCE_MS / 1000)
                link.connection.step = "the Fetch request"
                link.pending = link.connection.send_message(request, version, link.deadline)
                link.asked = by_leader[node]
            except ConnectionFailed as exc:
                link.asked = by_leader[node]
                self._lost(node, exc)

    def _connect(self, nodes: list[int]) -> None:
        for node in nodes:
            if node in self._links and not self._links[node].connection.usable:  # closed when idle, or login ended
                self._links.pop(node).connection.close()
        now = time.monotonic()
        for node in nodes:
            if node in self._links or now < self._not_before.get(node, 0.0):
                continue
            if node in self._brokers:
                self._background.start(node, partial(self._dial, self._brokers[node]))
            else:
                self._unreached(node, ConnectionFailed(f"no address of broker {node} is known"))

    def _dial(self, broker: Broker) -> Connection:
        outcome = self._client.dial_known([broker], timeout_s=_DIAL_S)[broker.id]
        if isinstance(outcome, KctlError):
            raise outcome
        return outcome

    def _take_connections(self) -> None:
        for node, outcome in self._background.finished():
            self._dialled(node, outcome)

    def _dialled(self, node: Any, outcome: Any) -> None:
        if isinstance(outcome, KctlError):
            self._unreached(node, outcome)
        else:
            self._links[node] = _Link(outcome)

    def _unreached(self, node: int, why: KctlError) -> None:
        self._not_before[node] = time.monotonic() + _REDIAL_S
        for tp in [tp for tp, leader in self._leaders.items() if leader == node]:
            self._fails(tp, why)

    # --- leaders --------------------------------------------------------------------------------------------------

    def _find_leaders(self) -> None:
        lost = {tp for tp in self._positions if self._leaders.get(tp, _NO_LEADER) == _NO_LEADER}
        if not lost or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _PAUSES_S[min(self._looks, len(_PAUSES_S) - 1)]
        self._looks += 1
        try:
            state = self._client.metadata({tp.topic for tp in lost}, timeout_s=_LOOK_S)
        except ConnectionFailed:
            if time.monotonic() - self._answered > self._timeout_s:
                raise
            return
        self._answered = time.monotonic()
        self._brokers |= state.brokers
        self._check_topics(state.topics, {tp.topic for tp in lost})
        leaders = {each.tp: each.leader for topic in state.topics.values() for each in topic.partitions}
        for tp in sorted(lost):
            if tp.topic not in state.topics:
                continue
            self._leaders[tp] = leaders.get(tp, _NO_LEADER)
            if self._leaders[tp] == _NO_LEADER:
                self._fails(tp, OperationFailed(f"{tp} has no leader"))
                if tp not in self._told:
                    self._told.add(tp)
                    self._tell(f"{tp} has no leader; waiting for one")
        if not lost & self._failing.keys() and not self._absence:
            self._looks = 0

    def _check_topics(self, found: Mapping[str, TopicState], asked: Collection[str]) -> None:
        """Raises OperationFailed when one is not there any more, or is another one of the same name."""
        for name in sorted(asked):
            topic = found.get(name)
            if self._absence.lasts(name, missing=topic is None):
                raise OperationFailed(f"topic {name} was deleted while it was read")
            if topic is not None and self._topic_ids.setdefault(name, topic.topic_id) != topic.topic_id:
                raise OperationFailed(f"topic {name} was deleted and made anew while it was read")

    def _fails(self, tp: TopicPartition, why: KctlError) -> None:
        """It cannot be read just now. Raises when that has been so for too long."""
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
        if waited > 5 and tp not in self._told:
            self._told.add(tp)
            self._tell(f"{tp} cannot be read at the moment: {why.message}")

    def _lost(self, node: int, why: KctlError) -> None:
        link = self._links.pop(node)
        link.connection.close()
        for tp in link.asked:
            self._fails(tp, why)

    def close(self) -> None:
        """Close its connections; answers and connections under way are not waited for."""
        for link in self._links.values():
            link.connection.close()
        self._links.clear()
        for _, outcome in self._background.close(0.0):
            if not isinstance(outcome, KctlError):
                outcome.close()


def _final(error: KctlError) -> KctlError:
    """An error of a partition that no waiting mends."""
    if isinstance(error, NotAuthorized):
        return error
    return OperationFailed(error.message, hint=error.hint)
