"""Who the controller is, which epoch it has and since when: from the metadata quorum, or from ZooKeeper.

With ZooKeeper the controller's own znode is /controller (kafka.zk.ControllerZNode): ephemeral, so it was made when this
controller was elected. /controller_epoch counts elections.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from kctl.cluster.membership import BrokerView, read_views
from kctl.cluster.quorum import Quorum, QuorumReplica, describe_quorum
from kctl.errors import KctlError, NotHealthy, OperationFailed
from kctl.model import ClusterState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.security import Security
    from kctl.zookeeper.client import ZooKeeper


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter or an observer of the metadata quorum; see QuorumReplica. host, port: where a controller listens."""

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
    """metadata: «zookeeper» or «kraft». id: None when there is none. host, port: None where brokers do not tell.

    epoch, since: with ZooKeeper from there, None when no ZooKeeper was given. With KRaft, epoch is the leader's, and
    since is not known. named_by: broker → the controller that it names (with ZooKeeper); failures: what was not read.
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

    @property
    def agreed(self) -> bool:
        """There is one, and every broker that answered names it."""
        return self.controller_id is not None and set(self.named_by.values()) <= {self.controller_id}

    def require_healthy(self) -> None:
        """Raise NotHealthy if there is no controller, or brokers name different ones."""
        if self.controller_id is None:
            raise NotHealthy("there is no controller", hint="are enough of ZooKeeper's servers or of the voters up?")
        if not self.agreed:
            others = "; ".join(
                f"broker {node}: {'none' if named is None else named}"
                for node, named in self.named_by.items()
                if named != self.controller_id
            )
            raise NotHealthy(f"broker {self.controller_id} is the controller, but not all brokers say so ({others})")


def read_controller(client: ClusterClient) -> Controller:
    """Raises NotAuthorized where the quorum may not be described, ConnectionFailed's subclasses."""
    quorum = describe_quorum(client)
    if quorum is not None:
        return of_quorum(quorum)
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
    return of_views(state, views, epoch, failures)


def of_quorum(quorum: Quorum) -> Controller:
    """KRaft. Pure."""
    nodes = {node.id: node for node in reversed(quorum.nodes)}  # the first listener of each counts
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

    return Controller(
        metadata="kraft",
        controller_id=quorum.leader_id,
        host=leader.host if leader else None,
        port=leader.port if leader else None,
        epoch=quorum.leader_epoch,
        since=None,
        high_watermark=quorum.high_watermark,
        named_by={},
        voters=tuple(row(replica, "follower") for replica in quorum.voters),
        observers=tuple(row(replica, "observer") for replica in quorum.observers),
        failures=(),
    )


def of_views(
    state: ClusterState, views: dict[int, BrokerView | KctlError], epoch: Epoch | None, failures: list[str]
) -> Controller:
    """ZooKeeper, which knows best when it was asked; else what most brokers say. Pure."""
    named = {node: view.controller_id for node, view in views.items() if isinstance(view, BrokerView)}
    said = list(named.values())
    found = epoch.controller if epoch is not None else max(said, key=said.count, default=state.controller_id)
    broker = state.brokers.get(-1 if found is None else found)
    return Controller(
        metadata="zookeeper",
        controller_id=found,
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
    """What ZooKeeper says: the controller (None: there is none now), its epoch, and since when it is."""

    controller: int | None
    epoch: int | None
    since: datetime | None


def read_epoch(zookeeper: str, security: Security) -> Epoch:
    """From «host:port,…/chroot». Raises NotFound for an unknown chroot, ConnectionFailed's subclasses."""
    from kctl.zookeeper.session import zookeeper as open_zookeeper

    with open_zookeeper(zookeeper, security=security) as zk:
        return epoch_in(zk)


def epoch_in(zk: ZooKeeper) -> Epoch:
    """`read_epoch` over a connection that is there: its paths are relative to the chroot."""
    found, made_ms = _controller_znode(zk)
    counted = _read(zk, "/controller_epoch")
    text = counted[0].decode("ascii", "replace") if counted else ""
    return Epoch(found, int(text) if text.isdigit() else None, _time(made_ms))


def _controller_znode(zk: ZooKeeper) -> tuple[int | None, int | None]:
    """The broker's id, and when the znode was made, by ZooKeeper's clock (ms)."""
    found = _read(zk, "/controller")
    if found is None:
        return None, None
    data, stat = found
    try:
        return int(json.loads(data)["brokerid"]), stat.ctime
    except (ValueError, KeyError, TypeError):
        raise OperationFailed("/controller in ZooKeeper is not what a broker writes") from None


def _read(zk: ZooKeeper, path: str) -> tuple[bytes, Any] | None:
    from kctl.zookeeper.client import NoNode

    try:
        return zk.get(path)
    except NoNode:
        return None


def _time(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, timezone.utc)
