"""Read the cluster during a rolling restart, even if any one broker is down."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from kctl.base.outcomes import ItemResult
from kctl.cluster.controller import read_controller, read_epoch
from kctl.cluster.membership import BrokerView, down_brokers, fenced_brokers, read_views
from kctl.cluster.rights import may_describe_all_topics
from kctl.errors import (
    AuthenticationFailed,
    CertificateRejected,
    ConnectionFailed,
    KctlError,
    NameNotResolved,
    NotKafka,
    TlsMismatch,
)
from kctl.health.brokers import silent_voters
from kctl.health.collect import adding_replicas, min_isr_of
from kctl.health.partitions import partitions_of
from kctl.model import Broker, ClusterState, TopicPartition
from kctl.protocol.active_controller import describe_quorum
from kctl.protocol.client import connect
from kctl.protocol.dialer import Dialer
from kctl.protocol.quorum import Quorum, responding_controllers
from kctl.protocol.target import Target
from kctl.restart.snapshot import GateSnapshot

if TYPE_CHECKING:
    from kctl.base.address import Address
    from kctl.protocol.client import ClusterClient

_TIMEOUT_S = 10.0
_WATCH_S = 0.25
_CONTROLLER_S = 2.0
_CAUGHT_UP_LAG = 100  # records of the metadata log; a follower is a few behind all the time
# Errors that a stopped broker does not cause (wrong login, certificate or host name, not Kafka): brokers may be up.
_NOT_DOWN = (AuthenticationFailed, CertificateRejected, TlsMismatch, NotKafka, NameNotResolved)


def may_be_down(error: ConnectionFailed) -> bool:
    """Return True if servers that failed with this error may be down, e.g. the connection was refused or timed out."""
    return not isinstance(error, _NOT_DOWN)


class Cluster(Protocol):
    """The cluster under restart. Methods raise subclasses of ConnectionFailed if no broker responds."""

    def snapshot(self, brokers: Collection[int]) -> GateSnapshot:
        """Read what the gate checks on `brokers`; if empty, read only the state of all partitions."""

    def hides_topics(self) -> bool:
        """Return True if the user may not describe all topics, so that a snapshot may miss some."""

    def registered(self) -> frozenset[int]:
        """Return the brokers that are up; none if no broker responds and the last read listed at most one.

        Raises subclasses of ConnectionFailed if it listed more, and for errors that a stopped broker does not cause.
        """

    def answers(self, broker: int) -> bool:
        """Return True if the broker responds and knows a controller and all other brokers that are up."""

    def controller(self) -> int | None:
        """Return the id of the controller; None if there is none or it cannot be read."""

    def elect(self) -> RestartElection:
        """Elect preferred leaders where another replica leads."""

    def why_no_election(self) -> str | None:
        """Return why the brokers do not support `elect`; None if they do."""

    def watch(self, brokers: Collection[int]) -> ReplicaWatch:
        """Start to watch the partitions of `brokers`. Returns after the first read."""


class ReplicaWatch(Protocol):
    def end(self) -> int | None:
        """Stop. Return the longest time (ms) that a partition's ISR was smaller than before; None without a read."""


@dataclass(frozen=True, slots=True)
class RestartElection:
    """The result of the election at the end of a restart.

    elected: number of partitions. not_elected: "topic-partition: reason" for those not led by their preferred replica.
    """

    elected: int
    not_elected: tuple[str, ...] = ()


class LiveCluster:
    """The cluster, over a connection that is reopened to any broker that is up. `with` closes it."""

    def __init__(
        self, target: Target, brokers: Collection[Broker] = (), controllers: Mapping[int, Address] | None = None
    ) -> None:
        self._target = target
        self._controllers = controllers or {}
        self._client: ClusterClient | None = None
        self._last: frozenset[int] = frozenset()
        self.add_servers(brokers)

    def __enter__(self) -> LiveCluster:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def add_servers(self, brokers: Collection[Broker]) -> None:
        """Also try these brokers for new connections: the only bootstrap server may be the one that restarts."""
        addresses = [f"{b.host}:{b.port}" for b in brokers if b.host]
        servers = tuple(dict.fromkeys((*self._target.bootstrap_servers, *addresses)))
        self._target = replace(self._target, bootstrap_servers=servers)

    def client(self) -> ClusterClient:
        """Return the open client, or a new one."""
        if self._client is None:
            self._client = connect(self._target, timeout_s=_TIMEOUT_S)
        return self._client

    def down(self) -> dict[int, Broker]:
        """Return the brokers that are down, known from replicas or KRaft; host "" if the address is unknown."""
        client = self.client()
        fenced = fenced_brokers(client)
        fenced_by_id = {} if isinstance(fenced, KctlError) else fenced
        return {node: fenced_by_id.get(node, Broker(node, "", -1, None)) for node in down_brokers(client)}

    def snapshot(self, brokers: Collection[int]) -> GateSnapshot:
        client = self.client()
        state = client.metadata()
        self._last = frozenset(state.brokers)
        zookeeper = self._zookeeper() if brokers else None
        if zookeeper is not None:  # without ZooKeeper, brokers do not report configs and reassignments either
            return GateSnapshot(state, {}, None, zookeeper=zookeeper)
        controllers = self._live_controllers()
        broker_ids = set(brokers)
        topics = {p.topic for p in partitions_of(state) if broker_ids.intersection(p.replicas)}
        adding = adding_replicas(client, state)
        if not broker_ids:
            return GateSnapshot(state, {}, adding, controllers=controllers)
        least, quorum = min_isr_of(client, topics, state.brokers), _quorum(client)
        views = read_views(client, state.brokers)  # last: a broker that responds now was up when the ISRs were read
        silent = {node: view.message for node, view in views.items() if isinstance(view, KctlError)}
        return GateSnapshot(state, least, adding, quorum, silent=silent, controllers=controllers)

    def hides_topics(self) -> bool:
        return may_describe_all_topics(self.client()) is False

    def _zookeeper(self) -> str | None:
        """Return why ZooKeeper is unreachable. Without it, a broker may hang when it stops, and cannot start."""
        if self._target.zookeeper is None:
            return None
        try:
            read_epoch(self._target.zookeeper, self._target.zookeeper_security)
        except ConnectionFailed as exc:
            return exc.message
        except KctlError:  # ZooKeeper responds, but denies access
            return None
        return None

    def registered(self) -> frozenset[int]:
        try:
            broker_ids = frozenset(self.client().metadata(()).brokers)
        except ConnectionFailed as exc:
            if len(self._last) > 1 or not may_be_down(exc):  # another broker is up, and only this request failed
                raise
            return frozenset()
        self._last = broker_ids
        return broker_ids | self._live_controllers()

    def _live_controllers(self) -> frozenset[int]:
        if not self._controllers:
            return frozenset()
        dialer = Dialer(self._target.security, controllers=True)
        return responding_controllers(self._controllers, dialer, timeout_s=_CONTROLLER_S)

    def _has_caught_up(self, controller: int) -> bool:
        """Return True if a controller responds, and leads the quorum or follows it closely."""
        if controller not in self._live_controllers():
            return False
        quorum = describe_quorum(self.client())
        if quorum is None or quorum.leader_id is None:
            return False
        silent = {voter.id for voter in silent_voters(quorum)}
        members = (*quorum.voters, *quorum.observers)  # a controller that was removed from the voters is an observer
        lags = [member.lag for member in members if member.id == controller and controller not in silent]
        return controller == quorum.leader_id or any(lag is not None and lag <= _CAUGHT_UP_LAG for lag in lags)

    def answers(self, broker: int) -> bool:
        if broker in self._controllers:
            try:
                return self._has_caught_up(broker)
            except KctlError:
                return False
        try:
            client = self.client()
            live_brokers = set(client.metadata(()).brokers)
            view = read_views(client, [broker]).get(broker)
        except KctlError:
            return False
        is_complete = (
            isinstance(view, BrokerView) and view.controller_id is not None and live_brokers <= set(view.brokers)
        )
        return is_complete and broker in live_brokers

    def controller(self) -> int | None:
        try:
            return read_controller(self.client()).controller_id
        except KctlError:
            return None

    def elect(self) -> RestartElection:
        from kctl.leader.election import carry_out, choose, plan_preferred

        client = self.client()
        state, topics = choose(client)
        rows = carry_out(client, plan_preferred(state, topics))
        not_elected = [f"{row.tp}: {row.reason}" for row in rows if row.result is not ItemResult.ELECTED]
        return RestartElection(sum(row.result is ItemResult.ELECTED for row in rows), tuple(not_elected))

    def why_no_election(self) -> str | None:
        from kctl.topics.elect import why_no_election

        return why_no_election(self.client())

    def watch(self, brokers: Collection[int]) -> ReplicaWatch:
        return LiveReplicaWatch(self._target, brokers)


def _quorum(client: ClusterClient) -> Quorum | KctlError | None:
    try:
        return describe_quorum(client)
    except ConnectionFailed:
        raise
    except KctlError as exc:
        return exc


@dataclass
class IsrGaps:
    """The time that partitions spend with a shrunken ISR. Pure; times in seconds."""

    since: dict[TopicPartition, float] = field(default_factory=dict)
    longest_s: float = 0.0

    def sample(self, lacking: Collection[TopicPartition], at: float) -> None:
        """Add a sample: the partitions whose ISR lacks a replica at this time."""
        for tp in lacking:
            self.longest_s = max(self.longest_s, at - self.since.setdefault(tp, at))
        for tp in self.since.keys() - set(lacking):
            self.longest_s = max(self.longest_s, at - self.since.pop(tp))


def shrunk_isrs(
    state: ClusterState, brokers: Collection[int], before: Mapping[TopicPartition, int]
) -> set[TopicPartition]:
    """Return the partitions on `brokers` with a smaller ISR than before."""
    broker_ids = set(brokers)
    return {
        p.tp
        for p in partitions_of(state)
        if broker_ids.intersection(p.replicas) and len(p.isr) < before.get(p.tp, len(p.replicas))
    }


class LiveReplicaWatch:
    """A thread with its own connection that watches until `end`. The constructor waits for the first read."""

    def __init__(self, target: Target, brokers: Collection[int]) -> None:
        self._target, self._brokers = target, tuple(brokers)
        self._gaps, self._samples = IsrGaps(), 0
        self._stop, self._first_read = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="kctl-restart-watch", daemon=True)
        self._thread.start()
        self._first_read.wait(_TIMEOUT_S)

    def _run(self) -> None:
        before: dict[TopicPartition, int] | None = None
        client: ClusterClient | None = None
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            pause_s = max(pause_s, _WATCH_S)
            began = time.monotonic()
            try:
                client = client or connect(self._target, timeout_s=_TIMEOUT_S)
                state = client.metadata()
            except KctlError:
                if client is not None:
                    client.close()
                client = None
                continue
            pause_s = max(_WATCH_S, 4 * (time.monotonic() - began))  # metadata of a big cluster is costly
            if before is None:
                before = {p.tp: len(p.isr) for p in partitions_of(state)}
            self._gaps.sample(shrunk_isrs(state, self._brokers, before), time.monotonic())
            self._samples += 1
            self._first_read.set()
        if client is not None:
            client.close()

    def end(self) -> int | None:
        self._stop.set()
        self._thread.join(_TIMEOUT_S + 1)
        return round(self._gaps.longest_s * 1000) if self._samples else None
