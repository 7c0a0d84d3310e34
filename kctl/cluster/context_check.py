"""Check a context: every configured server, every advertised broker address, ZooKeeper and its chroot.

Also reports the principal and the rights of the login.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.address import Address, parse_address
from kctl.base.deadline import Deadline
from kctl.cluster.context_rights import ContextRight, principal_of, read_rights
from kctl.errors import KctlError, UsageError
from kctl.protocol import preflight
from kctl.protocol.active_controller import controller_of
from kctl.protocol.brokers import advertised_error
from kctl.protocol.client import connect
from kctl.protocol.connection import Connection
from kctl.protocol.dialer import Dialer
from kctl.zookeeper.client import NoNode
from kctl.zookeeper.cluster_id import CLUSTER_ID, parse_cluster_id
from kctl.zookeeper.session import zookeeper

if TYPE_CHECKING:
    from kctl.model import Broker
    from kctl.protocol.security import Security
    from kctl.protocol.target import Target

_LIMIT_S = preflight.LIMIT_S


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """The check of one server.

    role: bootstrap, broker or zookeeper. server: "host:port", for ZooKeeper with the chroot. cluster_id: the cluster
    that the server belongs to; None: not reported. problem: None if the server is usable.
    """

    role: str
    server: str
    cluster_id: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class ContextCheck:
    """The check of a context.

    brokers: the registered ids. healthy: all servers are usable and belong to one cluster. principal: the principal
    that brokers see; None if the target has no brokers.
    """

    name: str
    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[int, ...]
    healthy: bool
    principal: str | None
    servers: tuple[ServerCheck, ...]
    rights: tuple[ContextRight, ...]


def check_context(target: Target, *, timeout_s: float = 10.0) -> ContextCheck:
    """Connect to every server of `target`, and to every broker at its advertised address.

    Raises the error of `connect` if no bootstrap server is usable: then there is nothing to compare.
    """
    if not target.bootstrap_servers and target.zookeeper is None:
        raise UsageError(f"{target.name} has no servers", hint="set --bootstrap-server or --zookeeper")
    cluster_id, controller, brokers = None, None, {}
    checks: list[ServerCheck] = []
    rights: tuple[ContextRight, ...] = ()
    if target.bootstrap_servers:
        with connect(target, timeout_s=timeout_s) as client:
            state = client.metadata([])
            rights = read_rights(client)
            controller = controller_of(client, state).id
        cluster_id, brokers = state.cluster_id, state.brokers
        checks = _brokers(target, {Address(b.host, b.port): b for b in brokers.values()}, cluster_id)
    if target.zookeeper is not None:
        checks.append(_zookeeper(target.zookeeper, target.zookeeper_security, cluster_id, timeout_s))
    return ContextCheck(
        name=target.name,
        cluster_id=cluster_id,
        controller_id=controller,
        brokers=tuple(sorted(brokers)),
        healthy=not any(server.problem for server in checks),
        principal=principal_of(target.security) if target.bootstrap_servers else None,
        servers=tuple(checks),
        rights=rights,
    )


def _brokers(target: Target, advertised: dict[Address, Broker], cluster_id: str | None) -> list[ServerCheck]:
    """Check the bootstrap servers, and the brokers that advertise another address, all at once.

    A login that can fail has already failed on the first connection, so no account gets locked here.
    """
    bootstrap = [parse_address(server) for server in target.bootstrap_servers]
    addresses = dict(enumerate(dict.fromkeys((*bootstrap, *advertised))))
    dialer, deadline = Dialer(target.security), Deadline(_LIMIT_S)
    outcomes = preflight.open_all(addresses, dialer, deadline)
    checks = []
    for number, address in addresses.items():
        outcome = outcomes[number]
        role = "bootstrap" if address in bootstrap else "broker"
        if role == "broker" and isinstance(outcome, KctlError):
            outcome = advertised_error(advertised[address], outcome)
        checks.append(_server_check(role, str(address), outcome, cluster_id))
    return checks


def _server_check(role: str, server: str, outcome: Connection | KctlError, cluster_id: str | None) -> ServerCheck:
    if isinstance(outcome, KctlError):
        return ServerCheck(role, server, None, outcome.message)
    try:
        server_cluster = preflight.read_cluster(outcome, Deadline(_LIMIT_S)).cluster_id
    except KctlError as exc:
        return ServerCheck(role, server, None, exc.message)
    finally:
        outcome.close()
    return ServerCheck(role, server, server_cluster, _other_cluster(server_cluster, cluster_id))


def _zookeeper(connect_string: str, security: Security, cluster_id: str | None, timeout_s: float) -> ServerCheck:
    try:
        with zookeeper(connect_string, security=security, timeout_s=timeout_s) as client:
            try:
                data, _ = client.get(CLUSTER_ID)
            except NoNode:
                problem = "no Kafka cluster is registered at this path; check the chroot"
                return ServerCheck("zookeeper", connect_string, None, problem)
    except KctlError as exc:
        hint = f"; {exc.hint}" if exc.hint else ""
        return ServerCheck("zookeeper", connect_string, None, f"{exc.message}{hint}")
    server_cluster = parse_cluster_id(data)
    return ServerCheck("zookeeper", connect_string, server_cluster, _other_cluster(server_cluster, cluster_id))


def _other_cluster(server_cluster: str | None, cluster_id: str | None) -> str | None:
    if server_cluster is None or cluster_id is None or server_cluster == cluster_id:
        return None
    return f"belongs to another cluster: {server_cluster}, not {cluster_id}"
