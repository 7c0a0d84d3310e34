"""Asking every broker ten times a second for the leaders and ISRs of a topic, and who the controller is.

A thread for each broker, so that one which is paused or dead keeps nobody else waiting. Memory: a sample for each
change of what a broker says.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from kctl.base.deadline import Deadline
from kctl.cluster.quorum import DESCRIBE_QUORUM, describe_quorum
from kctl.cluster.topics import known_topics
from kctl.errors import KctlError, NotFound, TimedOut
from kctl.model import Broker, ClusterState
from kctl.protocol.client import connect
from kctl.protocol.connection import Connection
from kctl.protocol.preflight import read_cluster
from kctl.protocol.target import Target
from kctl.validate.report.timeline import ControllerSample, PartitionView, Sample

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

EVERY_S = 0.1
_ANSWER_S = 1.0
_AGAIN_S = 0.3  # after a failure
_CLOSE_S = 10.0
_KNOWN_S = 60.0
_State = TypeVar("_State")


class Sampler:
    """Samples from `start` to `stop`; `with` does both."""

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
        """Return when every broker knows the topic, and leaders of all its partitions: one that was just made is not
        known everywhere at once, and whoever asks next may ask any of them.

        Raises NotFound for an unknown topic, ConnectionFailed, TimedOut.
        """
        self._client = connect(self._target)
        try:
            self._meet(self._brokers())
            self._run(self._follow_controller)
            self._wait(self._known_now, _KNOWN_S, f"not every broker knew topic {self._topic} within {_KNOWN_S:g} s")
        except BaseException:
            self.stop()
            raise

    def _brokers(self) -> Mapping[int, Broker]:
        deadline = Deadline(_KNOWN_S)
        while True:
            try:
                return known_topics(self._client, [self._topic]).brokers
            except NotFound:
                if deadline.expired:
                    raise
                time.sleep(self._every_s)

    def _meet(self, brokers: Mapping[int, Broker]) -> None:
        """Ask those from now on that are not asked yet: a broker may come up later."""
        with self._lock:
            for node in sorted(brokers.keys() - self._views.keys()):
                self._views = {**self._views, node: _Changes()}  # others look through it meanwhile
                self._run(self._follow_broker, brokers[node])

    def _run(self, work: Callable[..., None], *args: Broker) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """Harmless when it is stopped."""
        self._stop.set()
        deadline = Deadline(_CLOSE_S)
        for thread in list(self._threads):
            thread.join(deadline.left_s)
        self._client.close()

    # --- what was seen --------------------------------------------------------------------------------------------

    @property
    def samples(self) -> list[Sample]:
        """Of all brokers, in the order of their beginnings."""
        found = [Sample(node, *row) for node, changes in self._views.items() for row in changes.rows()]
        return sorted(found, key=lambda sample: sample.at_ns)

    @property
    def controllers(self) -> list[ControllerSample]:
        return [ControllerSample(at, until, *said) for at, until, said in self._controllers.rows()]

    def wait_full_isr(self, timeout_s: float, *, stable_s: float = 1.0) -> None:
        """Until all brokers have said for stable_s that all partitions have a leader and all their replicas in sync.

        A broker that does not answer keeps it from being so. Raises TimedOut.
        """
        self._wait(
            self._full_now, timeout_s, f"topic {self._topic} was not fully replicated within {timeout_s:g} s", stable_s
        )

    def _wait(self, good: Callable[[int], bool], timeout_s: float, failed: str, stable_s: float = 0.0) -> None:
        """Until it was so for stable_s. Raises TimedOut."""
        deadline = Deadline(timeout_s)
        good_since: float | None = None
        while True:
            now = time.monotonic()
            if not good(time.monotonic_ns()):
                good_since = None
            elif good_since is None:
                good_since = now
            if good_since is not None and now - good_since >= stable_s:
                return
            if deadline.expired:
                raise TimedOut(failed, hint="are all brokers up?")
            time.sleep(self._every_s)

    def _full_now(self, now_ns: int) -> bool:
        return self._all_say(now_ns, lambda view: view.leader >= 0 and view.full)

    def _known_now(self, now_ns: int) -> bool:
        return self._all_say(now_ns, lambda view: view.leader >= 0)

    def _all_say(self, now_ns: int, good: Callable[[PartitionView], bool]) -> bool:
        """Every broker has just said so of all partitions."""
        oldest = now_ns - round((_ANSWER_S + self._every_s) * 1e9)
        for changes in self._views.values():
            last = changes.last()
            if last is None or last[1] < oldest or not last[2] or not all(map(good, last[2].values())):
                return False
        return bool(self._views)

    # --- the threads ----------------------------------------------------------------------------------------------

    def _follow_broker(self, broker: Broker) -> None:
        while not self._stop.is_set():
            with suppress(KctlError, OSError):
                connection = self._client.dial_known([broker], timeout_s=_ANSWER_S)[broker.id]
                if not isinstance(connection, KctlError):
                    self._ask(broker.id, connection)
            self._stop.wait(_AGAIN_S)

    def _ask(self, node: int, connection: Connection) -> None:
        try:
            while True:
                state = read_cluster(connection, Deadline(_ANSWER_S), [self._topic])
                self._views[node].add(views_of(state, self._topic))
                self._meet(state.brokers)
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
            self._stop.wait(_AGAIN_S)

    def _follow_zookeeper(self, address: str) -> None:
        from kctl.cluster.controller import epoch_in
        from kctl.zookeeper.session import zookeeper

        with zookeeper(address, security=self._target.zookeeper_security, timeout_s=_CLOSE_S / 2) as zk:
            while not self._stop.wait(self._every_s):
                found = epoch_in(zk)
                self._controllers.add((found.controller, -1 if found.epoch is None else found.epoch))

    def _follow_quorum(self) -> None:
        """KRaft's quorum; without one, and without ZooKeeper's address, what a broker says."""
        with connect(self._target, timeout_s=_ANSWER_S * 2) as client:
            while not self._stop.wait(self._every_s):
                if client.api_version(DESCRIBE_QUORUM) is None:
                    self._controllers.add((client.metadata((), timeout_s=_ANSWER_S).controller_id, -1))
                    continue
                quorum = describe_quorum(client)
                assert quorum is not None
                self._controllers.add((quorum.leader_id, quorum.leader_epoch))


class _Changes(list[tuple[int, int, _State]]):
    """(from, until, what was said): an entry for each change. One thread adds, others read."""

    def add(self, said: _State) -> None:
        now = time.monotonic_ns()
        if self and self[-1][2] == said:
            self[-1] = (self[-1][0], now, said)
        else:
            self.append((now, now, said))

    def rows(self) -> list[tuple[int, int, _State]]:
        return list(self)

    def last(self) -> tuple[int, int, _State] | None:
        rows = self[-1:]
        return rows[0] if rows else None


def views_of(state: ClusterState, topic: str) -> dict[int, PartitionView]:
    """By partition; empty for a topic that this broker does not know (yet)."""
    found = state.topics.get(topic)
    return {
        each.partition: PartitionView(each.leader, each.leader_epoch, not each.under_replicated)
        for each in (found.partitions if found else ())
    }
