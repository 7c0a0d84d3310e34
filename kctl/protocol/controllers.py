"""Query the controllers in the brokers' settings directly, to describe a cluster without an active controller.

A broker forwards DescribeQuorum and other requests to the active controller. Without one, the broker does not respond
for a minute (kafka.server.BrokerServer, retryTimeoutMs of its channel to the controller). It still describes its own
settings, which list the controllers. Even without a leader, a controller reports the registered controllers and the
last leader that it knew (DescribeCluster, KIP-919).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kctl.base.address import Address, parse_address
from kctl.base.deadline import Deadline
from kctl.base.parallel import run_all
from kctl.base.text import counted
from kctl.errors import (
    ConnectionFailed,
    ConnectionRefused,
    ConnectionTimedOut,
    KctlError,
    NameNotResolved,
    UsageError,
)
from kctl.protocol.quorum import (
    Quorum,
    QuorumNode,
    ask_connection,
    ask_controllers,
    quorum_in,
    quorum_request,
    read_controllers,
)

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.dialer import Dialer

VOTERS_KEY = "controller.quorum.voters"  # static voters
SERVERS_KEY = "controller.quorum.bootstrap.servers"  # dynamic voters (KIP-853)
_LISTENERS, _MIGRATION = "controller.listener.names", "zookeeper.metadata.migration.enable"
_BROKER_RESOURCE = 4  # ConfigResource.Type
_MAX_BROKERS = 8  # whose settings are read: the settings are the same on all brokers
_SETTINGS_S, _CONTROLLERS_S, _OTHER_BROKERS_S = 1.0, 1.0, 0.8
_DOWN = (ConnectionRefused, ConnectionTimedOut, NameNotResolved)


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The controllers in the brokers' settings.

    servers: address → node id; None: the settings have no ids (controller.quorum.bootstrap.servers). listener: name of
    the controllers' listener. migrating: True for a ZooKeeper cluster that migrates to KRaft.
    """

    servers: Mapping[Address, int | None]
    listener: str
    migrating: bool

    @property
    def nodes(self) -> tuple[QuorumNode, ...]:
        """Return the controllers whose ids are known."""
        return tuple(
            QuorumNode(node, self.listener, server.host, server.port)
            for server, node in self.servers.items()
            if node is not None
        )


@dataclass(frozen=True, slots=True)
class _View:
    """The response of a controller that does not lead. leader_id: None if it knows no leader."""

    leader_id: int | None
    controllers: Mapping[int, Address]


def quorum_without_broker(client: ClusterClient, error: KctlError) -> Quorum:
    """Return the quorum after a broker did not forward a request in time. error: that error.

    Without an active controller, leader_id is None and `problem` has the reason. Raises `error` if no broker describes
    its settings either: then the brokers hang.
    """
    settings = controller_settings(client)
    if settings is None:
        raise error
    dialer = _dialer(client)
    deadline = Deadline(_CONTROLLERS_S)
    answers: dict[Address, Quorum | _View | KctlError] = {}
    if dialer is not None:
        answers = run_all({s: partial(_ask, s, dialer, deadline) for s in settings.servers}, deadline)
    for answer in answers.values():
        if isinstance(answer, Quorum):
            return answer
    if not any(isinstance(answer, _View) for answer in answers.values()):
        # This machine may not reach the controllers. Other brokers show whether only the first broker hangs.
        forwarded = _ask_other_brokers(client)
        if forwarded is not None:
            return forwarded
    return _without_leader(settings, answers)


def controller_settings(client: ClusterClient) -> ControllerSettings | None:
    """Return the controllers in the settings of the first broker that responds; None if no broker responds.

    If the user may not describe configs, `servers` is empty.
    """
    from kafka.protocol.admin import DescribeConfigsRequest

    resource = DescribeConfigsRequest.DescribeConfigsResource
    keys = [VOTERS_KEY, SERVERS_KEY, _LISTENERS, _MIGRATION]
    requests = {
        broker.id: DescribeConfigsRequest(
            resources=[resource(resource_type=_BROKER_RESOURCE, resource_name=str(broker.id), configuration_keys=keys)]
        )
        for broker in list(client.metadata((), timeout_s=_SETTINGS_S).brokers.values())[:_MAX_BROKERS]
    }
    answers = client.send_each(requests, timeout_s=_SETTINGS_S)
    results = [answer.results[0] for answer in answers.values() if not isinstance(answer, KctlError) and answer.results]
    if not results:
        return None
    values = {row.name: row.value or "" for row in results[0].configs or ()}
    listener = values.get(_LISTENERS, "").partition(",")[0].strip()
    servers: dict[Address, int | None] = {}
    for text in _items(values.get(VOTERS_KEY, "")):
        node, _, address = text.partition("@")
        _add(servers, address, int(node) if node.isdecimal() else None)
    for text in _items(values.get(SERVERS_KEY, "")):
        _add(servers, text, None)
    return ControllerSettings(servers, listener, values.get(_MIGRATION) == "true")


def quorum_of_migration(client: ClusterClient) -> Quorum | None:
    """Return the quorum if a ZooKeeper cluster migrates to KRaft and its controllers have a leader; else None.

    During a migration, brokers in ZooKeeper mode cannot describe the quorum, and report a random broker as controller.
    """
    try:
        settings = controller_settings(client)
    except ConnectionFailed:
        return None
    dialer = _dialer(client)
    if settings is None or dialer is None or not settings.migrating or not settings.servers:
        return None
    quorum = ask_controllers(list(settings.servers), dialer, timeout_s=_CONTROLLERS_S)
    return None if quorum is None or quorum.leader_id is None else quorum


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _add(servers: dict[Address, int | None], text: str, node: int | None) -> None:
    try:
        servers.setdefault(parse_address(text), node)
    except UsageError:
        return  # a broker would not have started with it


def _dialer(client: ClusterClient) -> Dialer | None:
    from kctl.protocol.dialer import Dialer

    try:
        return Dialer(client.target.security, controllers=True)
    except KctlError:
        return None


def _ask(server: Address, dialer: Dialer, deadline: Deadline) -> Quorum | _View:
    """Return the quorum if this controller leads, otherwise its view of the cluster."""
    from kctl.protocol.connection import Connection

    with closing(Connection(server, dialer)) as connection:
        connection.open(deadline)
        try:
            return quorum_in(ask_connection(connection, quorum_request(), deadline))
        except ConnectionFailed:
            raise
        except KctlError:  # not the leader
            state = read_controllers(connection, deadline)
    addresses = {node.id: Address(node.host, node.port) for node in state.brokers.values()}
    return _View(state.controller_id, addresses)


def _ask_other_brokers(client: ClusterClient) -> Quorum | None:
    """Return the quorum from the first broker that forwards the request; None if none does in time."""
    brokers = list(client.metadata((), timeout_s=_SETTINGS_S).brokers.values())[:_MAX_BROKERS]
    deadline = Deadline(_OTHER_BROKERS_S)
    connections = client.dial_known(brokers, timeout_s=_OTHER_BROKERS_S)
    usable = {node: each for node, each in connections.items() if not isinstance(each, KctlError)}
    try:
        answers = run_all(
            {node: partial(ask_connection, each, quorum_request(), deadline) for node, each in usable.items()}, deadline
        )
    finally:
        for connection in usable.values():
            connection.close()
    for answer in answers.values():
        if not isinstance(answer, KctlError):
            return quorum_in(answer)
    return None


def _without_leader(settings: ControllerSettings, answers: Mapping[Address, Quorum | _View | KctlError]) -> Quorum:
    views = {server: answer for server, answer in answers.items() if isinstance(answer, _View)}
    registered = {node: address for view in views.values() for node, address in view.controllers.items()}
    nodes = {node.id: node for node in settings.nodes}
    for node, address in sorted(registered.items()):
        nodes.setdefault(node, QuorumNode(node, settings.listener, address.host, address.port))
    leaders = {view.leader_id for view in views.values() if view.leader_id is not None}
    return Quorum(
        leader_id=None,
        leader_epoch=-1,
        high_watermark=-1,
        voters=(),
        observers=(),
        nodes=tuple(nodes[node] for node in sorted(nodes)),
        problem=_problem(settings.servers, answers, leaders),
    )


def _problem(
    servers: Collection[Address], answers: Mapping[Address, Quorum | _View | KctlError], leaders: Collection[int]
) -> str:
    if not servers:
        return (
            "the brokers cannot reach a controller, and this user may not read the settings that list the controllers"
        )
    down = [str(server) for server in servers if server not in answers or isinstance(answers[server], _DOWN)]
    if len(down) == len(servers):
        return f"no controller responds ({', '.join(down)})"
    # E.g. a login that fails: such a controller may even be the active one.
    unread = [
        f"{server} cannot be asked ({answer.message})"
        for server, answer in answers.items()
        if isinstance(answer, KctlError) and not isinstance(answer, _DOWN)
    ]
    count = len(servers) - len(down) - len(unread)
    if not count:
        return "; ".join([f"{' and '.join(down)} do{'es' if len(down) == 1 else ''} not respond"] * bool(down) + unread)
    responding = f"{count} of {counted(len(servers), 'controller')} respond{'s' if count == 1 else ''}"
    if down:
        responding += f", {' and '.join(down)} do{'es' if len(down) == 1 else ''} not"
    elif not leaders and not unread:
        responding += ", but have no leader"
    names = ", ".join(map(str, sorted(leaders)))
    last_leader = [f"the last known leader, controller {names}, does not respond as the leader"] * bool(leaders)
    return "; ".join([responding, *last_leader, *unread])
