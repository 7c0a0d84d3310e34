"""What a rolling restart sees of the cluster, whichever of its brokers is down at the moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from kctl.base.outcomes import ItemResult
from kctl.cluster.controller import read_controller, read_epoch
from kctl.cluster.membership import BrokerView, down_brokers, fenced_brokers, read_views
from kctl.cluster.quorum import Quorum, describe_quorum
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
from kctl.health.collect import adding_replicas, min_isr_of
from kctl.health.partitions import partitions_of
from kctl.model import Broker, ClusterState, TopicPartition
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.restart.seen import Seen

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_ASK_S = 10.0
_WATCH_S = 0.25
# What no broker that is down gives: something is wrong here, or with the network, and nothing is known of brokers.
_NOT_DOWN = (AuthenticationFailed, CertificateRejected, TlsMismatch, NotKafka, NameNotResolved)


def may_be_down(error: ConnectionFailed) -> bool:
    """Whether servers that failed like this may simply not run: refused, silent, or their machines are off."""
    return not isinstance(error, _NOT_DOWN)


class Cluster(Protocol):
    """The cluster under restart. Raises ConnectionFailed's subclasses when no broker answers, unless it says else."""

    def look(self, brokers: Collection[int]) -> Seen:
        """All that the gate needs of what these host; with none of them only the partitions' state."""

    def hides_topics(self) -> bool:
        """Whether there may be topics that this user may not describe, and that no look shows."""

    def registered(self) -> frozenset[int]:
        """The brokers that are there; none when the only one does not answer, or nobody has yet. Raises
        ConnectionFailed's subclasses where that tells nothing of brokers: a login that is wrong, a name, a network."""

    def answers(self, broker: int) -> bool:
        """It answers itself, knows a controller and every other broker that is there."""

    def controller(self) -> int | None:
        """The broker that is controller; None when none is, or nobody tells."""

    def elect(self) -> Elected:
        """Preferred leaders, where another leads."""

    def why_no_election(self) -> str | None:
        """Return why the brokers do not support `elect`; None if they do."""

    def watch(self, brokers: Collection[int]) -> Watch:
        """Begin to watch what these host: it has seen it once when this returns."""


class Watch(Protocol):
    def end(self) -> int | None:
        """The longest time in ms that one partition lacked a replica in its ISR; None when it could not be seen."""


@dataclass(frozen=True, slots=True)
class Elected:
    """The election at the end. elected: partitions; left: «topic-partition: why not», for those that are not led by
    their preferred replica."""

    elected: int
    left: tuple[str, ...] = ()


class LiveCluster:
    """Over a connection that is made again, to whichever broker is up. `with` closes it."""

    def __init__(self, target: Target, brokers: Collection[Broker] = ()) -> None:
        self._target = target
        self._client: ClusterClient | None = None
        self._last: frozenset[int] = frozenset()
        self.know(brokers)

    def __enter__(self) -> LiveCluster:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def know(self, brokers: Collection[Broker]) -> None:
        """Connections that are made from now on try these as well: the only bootstrap server may be the one that is
        restarted."""
        known = [f"{b.host}:{b.port}" for b in brokers if b.host]
        servers = tuple(dict.fromkeys((*self._target.bootstrap_servers, *known)))
        self._target = replace(self._target, bootstrap_servers=servers)

    def client(self) -> ClusterClient:
        """The one that is there, or a new one."""
        if self._client is None:
            self._client = connect(self._target, timeout_s=_ASK_S)
        return self._client

    def down(self) -> dict[int, Broker]:
        """Brokers that are not there and known of, by their replicas or by KRaft: host "" where nobody tells it."""
        client = self.client()
        fenced = fenced_brokers(client)
        told = {} if isinstance(fenced, KctlError) else fenced
        return {node: told.get(node, Broker(node, "", -1, None)) for node in down_brokers(client)}

    def look(self, brokers: Collection[int]) -> Seen:
        client = self.client()
        state = client.metadata()
        self._last = frozenset(state.brokers)
        zookeeper = self._zookeeper() if brokers else None
        if zookeeper is not None:  # without it brokers do not tell configs and reassignments either
            return Seen(state, {}, None, zookeeper=zookeeper)
        wanted = set(brokers)
        topics = {p.topic for p in partitions_of(state) if wanted.intersection(p.replicas)}
        adding = adding_replicas(client, state)
        if not wanted:
            return Seen(state, {}, adding)
        least, quorum = min_isr_of(client, topics, state.brokers), _quorum(client)
        views = read_views(client, state.brokers)  # the last of all: who answers now was there when the ISRs were told
        silent = {node: view.message for node, view in views.items() if isinstance(view, KctlError)}
        return Seen(state, least, adding, quorum, silent=silent)

    def hides_topics(self) -> bool:
        return may_describe_all_topics(self.client()) is False

    def _zookeeper(self) -> str | None:
        """A broker that stops while ZooKeeper is away may hang, and cannot start."""
        if self._target.zookeeper is None:
            return None
        try:
            read_epoch(self._target.zookeeper, self._target.zookeeper_security)
        except ConnectionFailed as exc:
            return exc.message
        except KctlError:  # it answers, and does not tell this to everybody
            return None
        return None

    def registered(self) -> frozenset[int]:
        try:
            found = frozenset(self.client().metadata(()).brokers)
        except ConnectionFailed as exc:
            if len(self._last) > 1 or not may_be_down(exc):  # another one is there, and only does not answer now
                raise
            return frozenset()
        self._last = found
        return found

    def answers(self, broker: int) -> bool:
        try:
            client = self.client()
            there = set(client.metadata(()).brokers)
            view = read_views(client, [broker]).get(broker)
        except KctlError:
            return False
        known = isinstance(view, BrokerView) and view.controller_id is not None and there <= set(view.brokers)
        return known and broker in there

    def controller(self) -> int | None:
        try:
            return read_controller(self.client()).controller_id
        except KctlError:
            return None

    def elect(self) -> Elected:
        from kctl.leader.election import carry_out, choose, plan_preferred

        client = self.client()
        state, chosen = choose(client)
        rows = carry_out(client, plan_preferred(state, chosen))
        left = [f"{row.tp}: {row.reason}" for row in rows if row.result is not ItemResult.ELECTED]
        return Elected(sum(row.result is ItemResult.ELECTED for row in rows), tuple(left))

    def why_no_election(self) -> str | None:
        from kctl.topics.elect import why_no_election

        return why_no_election(self.client())

    def watch(self, brokers: Collection[int]) -> Watch:
        return LiveWatch(self._target, brokers)


def _quorum(client: ClusterClient) -> Quorum | KctlError | None:
    try:
        return describe_quorum(client)
    except ConnectionFailed:
        raise
    except KctlError as exc:
        return exc


@dataclass
class Lacking:
    """For how long partitions lack replicas in their ISR. Pure; times in seconds."""

    since: dict[TopicPartition, float] = field(default_factory=dict)
    longest_s: float = 0.0

    def sample(self, lacking: Collection[TopicPartition], at: float) -> None:
        """What lacks a replica at this time."""
        for tp in lacking:
            self.longest_s = max(self.longest_s, at - self.since.setdefault(tp, at))
        for tp in self.since.keys() - set(lacking):
            self.longest_s = max(self.longest_s, at - self.since.pop(tp))


def lacking(state: ClusterState, brokers: Collection[int], before: Mapping[TopicPartition, int]) -> set[TopicPartition]:
    """Partitions on `brokers` with fewer replicas in sync than before."""
    wanted = set(brokers)
    return {
        p.tp
        for p in partitions_of(state)
        if wanted.intersection(p.replicas) and len(p.isr) < before.get(p.tp, len(p.replicas))
    }


class LiveWatch:
    """A thread with a connection of its own, from now until `end`. Made, it has looked once, if anybody answered."""

    def __init__(self, target: Target, brokers: Collection[int]) -> None:
        self._target, self._brokers = target, tuple(brokers)
        self._found, self._samples = Lacking(), 0
        self._stop, self._looked = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="kctl-restart-watch", daemon=True)
        self._thread.start()
        self._looked.wait(_ASK_S)

    def _run(self) -> None:
        before: dict[TopicPartition, int] | None = None
        client: ClusterClient | None = None
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            pause_s = max(pause_s, _WATCH_S)
            began = time.monotonic()
            try:
                client = client or connect(self._target, timeout_s=_ASK_S)
                state = client.metadata()
            except KctlError:
                if client is not None:
                    client.close()
                client = None
                continue
            pause_s = max(_WATCH_S, 4 * (time.monotonic() - began))  # a big cluster's metadata cost a broker something
            if before is None:
                before = {p.tp: len(p.isr) for p in partitions_of(state)}
            self._found.sample(lacking(state, self._brokers, before), time.monotonic())
            self._samples += 1
            self._looked.set()
        if client is not None:
            client.close()

    def end(self) -> int | None:
        self._stop.set()
        self._thread.join(_ASK_S + 1)
        return round(self._found.longest_s * 1000) if self._samples else None
