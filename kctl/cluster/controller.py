"""The active controller, its epoch and its election time, from the metadata quorum or from ZooKeeper.

With ZooKeeper, the znode /controller (kafka.zk.ControllerZNode) is ephemeral: its creation time is the time of the
election. /controller_epoch counts elections.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from kctl.cluster.membership import BrokerView, read_views
from kctl.errors import KctlError, NotHealthy, OperationFailed
from kctl.model import ClusterState
from kctl.protocol.active_controller import describe_quorum
from kctl.protocol.controllers import controller_settings, quorum_of_migration
from kctl.protocol.quorum import NO_CONTROLLER_HINT, Quorum, QuorumNode, QuorumReplica

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kctl.protocol.client import ClusterClient
    from kctl.protocol.security import Security
    from kctl.zookeeper.client import ZooKeeper


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter or observer of the metadata quorum; see QuorumReplica. host, port: address of the controller listener."""

    node_id: int
    role: str
    directory_id: str | None
    host: str | None
    port: int | None
    log_end_offset: int | None
    lag: int | None
    last_fetch: datetime | None
    last_caught_up: datetime | None


@dataclass(frozen=True, slots=True)
class Controller:
    """The active controller.

    metadata: "zookeeper" or "kraft". controller_id: None if there is none. host, port: None if brokers do not report
    them. epoch, since: from ZooKeeper, None if no ZooKeeper is configured; with KRaft, the leader epoch, and since is
    None. named_by: broker → the controller that it names (ZooKeeper only). failures: what could not be read. problem:
    why there is no active controller (KRaft only); then `voters` has the known controllers, voters or not.
    """

    metadata: str
    controller_id: int | None
    host: str | None
    port: int | None
    epoch: int | None
    since: datetime | None
    high_watermark: int | None
    named_by: dict[int, int | None]
    voters: tuple[Voter, ...]
    observers: tuple[Voter, ...]
    failures: tuple[str, ...]
    problem: str | None = None

    @property
    def agreed(self) -> bool:
        """Return True if there is a controller, and every broker that responded names it."""
        return self.controller_id is not None and set(self.named_by.values()) <= {self.controller_id}

    def require_healthy(self) -> None:
        """Raise NotHealthy if there is no controller, or brokers name different ones."""
        if self.controller_id is None and self.metadata == "kraft":
            raise NotHealthy(self.problem or "no active controller", hint=NO_CONTROLLER_HINT)
        if self.controller_id is None:
            raise NotHealthy("there is no controller", hint="start ZooKeeper servers until a majority is up")
        if not self.agreed:
            others = "; ".join(
                f"broker {node}: {'none' if named is None else named}"
                for node, named in self.named_by.items()
                if named != self.controller_id
            )
            raise NotHealthy(f"broker {self.controller_id} is the controller, but other brokers disagree ({others})")


def read_controller(client: ClusterClient) -> Controller:
    """Return the controller. Raises NotAuthorized if the quorum is not readable, subclasses of ConnectionFailed."""
    quorum = describe_quorum(client)
    if quorum is not None:
        return of_quorum(quorum if quorum.nodes else replace(quorum, nodes=_configured_nodes(client)))
    state = client.metadata(())
    views = read_views(client, state.brokers)
    epoch: Epoch | None = None
    failures = [view.message for view in views.values() if isinstance(view, KctlError)]
    target = client.target
    if target.zookeeper is not None:
        try:
            epoch = read_epoch(target.zookeeper, target.zookeeper_security)
        except KctlError as exc:
            failures.append(exc.message)
    if _is_unlike_zookeeper(state, views, epoch):
        quorum = quorum_of_migration(client)
        if quorum is not None:
            return of_quorum(quorum)
    return of_views(state, views, epoch, failures)


def _configured_nodes(client: ClusterClient) -> tuple[QuorumNode, ...]:
    """Return the controllers' addresses from the brokers' settings, for brokers before 3.9; () if unreadable."""
    try:
        settings = controller_settings(client)
    except KctlError:
        return ()
    return () if settings is None else settings.nodes


def _is_unlike_zookeeper(state: ClusterState, views: Mapping[int, BrokerView | KctlError], epoch: Epoch | None) -> bool:
    """Return True if the brokers may migrate to KRaft: the controller is no broker, or brokers name different ones."""
    named = {view.controller_id for view in views.values() if isinstance(view, BrokerView)}
    return len(named) > 1 or (epoch is not None and epoch.controller not in {None, *state.brokers})


def of_quorum(quorum: Quorum) -> Controller:
    """Return the controller of a KRaft cluster. Pure."""
    nodes = {node.id: node for node in reversed(quorum.nodes)}  # use the first listener of each controller
    leader = nodes.get(-1 if quorum.leader_id is None else quorum.leader_id)

    def row(replica: QuorumReplica, role: str) -> Voter:
        node = nodes.get(replica.id)
        return Voter(
            node_id=replica.id,
            role="leader" if replica.id == quorum.leader_id else role,
            directory_id=replica.directory_id,
            host=node.host if node else None,
            port=node.port if node else None,
            log_end_offset=replica.log_end_offset,
            lag=replica.lag,
            last_fetch=_time(replica.last_fetch_timestamp_ms),
            last_caught_up=_time(replica.last_caught_up_timestamp_ms),
        )

    # Without a leader, only the addresses of controllers are known, not which of them are voters.
    unlisted = [] if quorum.voters else [QuorumReplica(node, None, None, None, None, None) for node in sorted(nodes)]
    return Controller(
        metadata="kraft",
        controller_id=quorum.leader_id,
        host=leader.host if leader else None,
        port=leader.port if leader else None,
        epoch=None if quorum.leader_epoch < 0 else quorum.leader_epoch,
        since=None,
        high_watermark=None if quorum.high_watermark < 0 else quorum.high_watermark,
        named_by={},
        voters=tuple(row(r, "follower") for r in quorum.voters) or tuple(row(r, "controller") for r in unlisted),
        observers=tuple(row(replica, "observer") for replica in quorum.observers),
        failures=(),
        problem=quorum.no_controller,
    )


def of_views(
    state: ClusterState, views: dict[int, BrokerView | KctlError], epoch: Epoch | None, failures: list[str]
) -> Controller:
    """Return the controller of a ZooKeeper cluster: from ZooKeeper if read, else as most brokers name it. Pure."""
    named = {node: view.controller_id for node, view in views.items() if isinstance(view, BrokerView)}
    ids = list(named.values())
    controller = epoch.controller if epoch is not None else max(ids, key=ids.count, default=state.controller_id)
    broker = state.brokers.get(-1 if controller is None else controller)
    return Controller(
        metadata="zookeeper",
        controller_id=controller,
        host=broker.host if broker else None,
        port=broker.port if broker else None,
        epoch=None if epoch is None else epoch.epoch,
        since=None if epoch is None else epoch.since,
        high_watermark=None,
        named_by=named,
        voters=(),
        observers=(),
        failures=tuple(failures),
    )


@dataclass(frozen=True, slots=True)
class Epoch:
    """The election of the controller as recorded in ZooKeeper. controller: None if there is none now."""

    controller: int | None
    epoch: int | None
    since: datetime | None


def read_epoch(zookeeper: str, security: Security) -> Epoch:
    """Read the epoch from "host:port,…/chroot".

    Raises NotFound for an unknown chroot, subclasses of ConnectionFailed.
    """
    from kctl.zookeeper.session import zookeeper as open_zookeeper

    with open_zookeeper(zookeeper, security=security) as zk:
        return epoch_in(zk)


def epoch_in(zk: ZooKeeper) -> Epoch:
    """Read the epoch over an open connection, whose paths are relative to the chroot."""
    controller, created_ms = _controller_znode(zk)
    epoch = _read(zk, "/controller_epoch")
    text = epoch[0].decode("ascii", "replace") if epoch else ""
    return Epoch(controller, int(text) if text.isdigit() else None, _time(created_ms))


def _controller_znode(zk: ZooKeeper) -> tuple[int | None, int | None]:
    """Return the broker id, and when the znode was created, by ZooKeeper's clock (ms)."""
    node = _read(zk, "/controller")
    if node is None:
        return None, None
    data, stat = node
    try:
        return int(json.loads(data)["brokerid"]), stat.ctime
    except (ValueError, KeyError, TypeError):
        raise OperationFailed("/controller in ZooKeeper has invalid contents") from None


def _read(zk: ZooKeeper, path: str) -> tuple[bytes, Any] | None:
    from kctl.zookeeper.client import NoNode

    try:
        return zk.get(path)
    except NoNode:
        return None


def _time(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, timezone.utc)
