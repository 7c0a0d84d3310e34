"""Poll every broker ten times a second for the leaders and ISRs of a topic, and for the controller.

One thread per broker, so that a paused or dead broker does not delay the others. Memory: one sample per change.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from kctl.base.deadline import Deadline
from kctl.cluster.topics import known_topics
from kctl.errors import KctlError, NotFound, TimedOut
from kctl.model import Broker, ClusterState
from kctl.protocol.active_controller import describe_quorum
from kctl.protocol.client import connect
from kctl.protocol.codes import ApiKey
from kctl.protocol.connection import Connection
from kctl.protocol.preflight import read_cluster
from kctl.protocol.target import Target
from kctl.validate.report.timeline import ControllerSample, PartitionView, Sample

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

EVERY_S = 0.1
_TIMEOUT_S = 1.0
_RETRY_S = 0.3  # after a failure
_CLOSE_S = 10.0
_START_S = 60.0
_State = TypeVar("_State")


class Sampler:
    """A poller of all brokers, from `start` to `stop`; `with` does both."""

    def __init__(self, target: Target, topic: str, *, every_s: float = EVERY_S) -> None:
        self._target, self._topic, self._every_s = target, topic, every_s
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._threads: list[threading.Thread] = []
        self._views: dict[int, _Changes[dict[int, PartitionView]]] = {}
        self._controllers: _Changes[tuple[int | None, int]] = _Changes()
        self._client: ClusterClient

    def __enter__(self) -> Sampler:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start, and wait until every broker reports a leader for each partition, which takes a moment for a new topic.

        Raises NotFound for an unknown topic, ConnectionFailed, TimedOut.
        """
        self._client = connect(self._target)
        try:
            self._add_brokers(self._brokers())
            self._run(self._follow_controller)
            self._wait(self._all_led_now, _START_S, f"not every broker knew topic {self._topic} within {_START_S:g} s")
        except BaseException:
            self.stop()
            raise

    def _brokers(self) -> Mapping[int, Broker]:
        deadline = Deadline(_START_S)
        while True:
            try:
                return known_topics(self._client, [self._topic]).brokers
            except NotFound:
                if deadline.expired:
                    raise
                time.sleep(self._every_s)

    def _add_brokers(self, brokers: Mapping[int, Broker]) -> None:
        """Start polling new brokers, because a broker may come up later."""
        with self._lock:
            for node in sorted(brokers.keys() - self._views.keys()):
                self._views = {**self._views, node: _Changes()}  # replaced, not changed: other threads iterate over it
                self._run(self._follow_broker, brokers[node])

    def _run(self, work: Callable[..., None], *args: Broker) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """Stop all threads. Does nothing if already stopped."""
        self._stop.set()
        deadline = Deadline(_CLOSE_S)
        for thread in list(self._threads):
            thread.join(deadline.left_s)
        self._client.close()

    # --- samples -------------------------------------------------------------------------------------------------

    @property
    def samples(self) -> list[Sample]:
        """Return the samples of all brokers, by start time."""
        samples = [Sample(node, *row) for node, changes in self._views.items() for row in changes.rows()]
        return sorted(samples, key=lambda sample: sample.at_ns)

    @property
    def controllers(self) -> list[ControllerSample]:
        return [ControllerSample(at, until, *state) for at, until, state in self._controllers.rows()]

    def wait_full_isr(self, timeout_s: float, *, stable_s: float = 1.0) -> None:
        """Wait until every broker reports a leader and a full ISR for each partition, continuously for stable_s.

        A broker that does not respond interrupts this time. Raises TimedOut.
        """
        self._wait(
            self._full_now, timeout_s, f"topic {self._topic} was not fully replicated within {timeout_s:g} s", stable_s
        )

    def _wait(self, holds: Callable[[int], bool], timeout_s: float, message: str, stable_s: float = 0.0) -> None:
        """Wait until a condition holds for stable_s. Raises TimedOut."""
        deadline = Deadline(timeout_s)
        holds_since: float | None = None
        while True:
            now = time.monotonic()
            if not holds(time.monotonic_ns()):
                holds_since = None
            elif holds_since is None:
                holds_since = now
            if holds_since is not None and now - holds_since >= stable_s:
                return
            if deadline.expired:
                raise TimedOut(message, hint="check the brokers with `kctl broker list`")
            time.sleep(self._every_s)

    def _full_now(self, now_ns: int) -> bool:
        return self._all_report(now_ns, lambda view: view.leader >= 0 and view.full)

    def _all_led_now(self, now_ns: int) -> bool:
        return self._all_report(now_ns, lambda view: view.leader >= 0)

    def _all_report(self, now_ns: int, holds: Callable[[PartitionView], bool]) -> bool:
        """Return True if the latest report of every broker is recent and satisfies a condition for all partitions."""
        oldest = now_ns - round((_TIMEOUT_S + self._every_s) * 1e9)
        for changes in self._views.values():
            last = changes.last()
            if last is None or last[1] < oldest or not last[2] or not all(map(holds, last[2].values())):
                return False
        return bool(self._views)

    # --- the threads ----------------------------------------------------------------------------------------------

    def _follow_broker(self, broker: Broker) -> None:
        while not self._stop.is_set():
            with suppress(KctlError, OSError):
                connection = self._client.dial_known([broker], timeout_s=_TIMEOUT_S)[broker.id]
                if not isinstance(connection, KctlError):
                    self._poll(broker.id, connection)
            self._stop.wait(_RETRY_S)

    def _poll(self, node: int, connection: Connection) -> None:
        try:
            while True:
                state = read_cluster(connection, Deadline(_TIMEOUT_S), [self._topic])
                self._views[node].add(views_of(state, self._topic))
                self._add_brokers(state.brokers)
                if self._stop.wait(self._every_s):
                    return
        finally:
            connection.close()

    def _follow_controller(self) -> None:
        while not self._stop.is_set():
            with suppress(KctlError):
                if self._target.zookeeper is not None:
                    self._follow_zookeeper(self._target.zookeeper)
                else:
                    self._follow_quorum()
            self._stop.wait(_RETRY_S)

    def _follow_zookeeper(self, address: str) -> None:
        from kctl.cluster.controller import epoch_in
        from kctl.zookeeper.session import zookeeper

        with zookeeper(address, security=self._target.zookeeper_security, timeout_s=_CLOSE_S / 2) as zk:
            while not self._stop.wait(self._every_s):
                current = epoch_in(zk)
                self._controllers.add((current.controller, -1 if current.epoch is None else current.epoch))

    def _follow_quorum(self) -> None:
        """Follow KRaft's quorum; without KRaft or a ZooKeeper address, follow the controller that a broker reports."""
        with connect(self._target, timeout_s=_TIMEOUT_S * 2) as client:
            while not self._stop.wait(self._every_s):
                if client.api_version(ApiKey.DESCRIBE_QUORUM) is None:
                    self._controllers.add((client.metadata((), timeout_s=_TIMEOUT_S).controller_id, -1))
                    continue
                quorum = describe_quorum(client)
                assert quorum is not None
                if quorum.problem is None:  # otherwise the epoch is unknown
                    self._controllers.add((quorum.leader_id, quorum.leader_epoch))


class _Changes(list[tuple[int, int, _State]]):
    """Rows (from, until, state), one per change. One thread adds, others read."""

    def add(self, state: _State) -> None:
        now = time.monotonic_ns()
        if self and self[-1][2] == state:
            self[-1] = (self[-1][0], now, state)
        else:
            self.append((now, now, state))

    def rows(self) -> list[tuple[int, int, _State]]:
        return list(self)

    def last(self) -> tuple[int, int, _State] | None:
        rows = self[-1:]
        return rows[0] if rows else None


def views_of(state: ClusterState, topic: str) -> dict[int, PartitionView]:
    """Return partition → view; empty if this broker does not know the topic (yet)."""
    description = state.topics.get(topic)
    return {
        each.partition: PartitionView(each.leader, each.leader_epoch, not each.under_replicated)
        for each in (description.partitions if description else ())
    }
