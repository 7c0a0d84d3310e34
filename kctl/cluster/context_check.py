"""Is what a context says true: every server of it, every broker that advertises itself, ZooKeeper and its chroot?
And as whom, with which rights, does it log in?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.address import Address, parse_address
from kctl.base.deadline import Deadline
from kctl.cluster.context_rights import Right, principal_of, read_rights
from kctl.cluster.quorum import controller_of
from kctl.errors import KctlError, UsageError
from kctl.protocol import preflight
from kctl.protocol.brokers import advertised_error
from kctl.protocol.client import connect
from kctl.protocol.connection import Connection, Dialer
from kctl.zookeeper.client import NoNode
from kctl.zookeeper.cluster_id import CLUSTER_ID, parse_cluster_id
from kctl.zookeeper.session import zookeeper

if TYPE_CHECKING:
    from kctl.model import Broker
    from kctl.protocol.security import Security
    from kctl.protocol.target import Target

_LOGGED_IN_S = preflight.LIMIT_S


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """One server. role: bootstrap, broker or zookeeper; server: «host:port», with its chroot for ZooKeeper.

    cluster_id: of the cluster that it belongs to, None when it did not say. problem: None when it can be used.
    """

    role: str
    server: str
    cluster_id: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class ContextCheck:
    """What was found. brokers: the registered ids; healthy: all servers can be used and are of one cluster.

    principal: as whom brokers see the login, None without brokers to ask.
    """

    name: str
    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[int, ...]
    healthy: bool
    principal: str | None
    servers: tuple[ServerCheck, ...]
    rights: tuple[Right, ...]


def check_context(target: Target, *, timeout_s: float = 10.0) -> ContextCheck:
    """Try every server of `target`, and every broker at the address that it advertises.

    Raises what `connect` raises when no bootstrap server can be used: there is nothing to compare then.
    """
    if not target.bootstrap_servers and target.zookeeper is None:
        raise UsageError(f"{target.name} has no servers", hint="give --bootstrap-server or --zookeeper")
    cluster_id, controller, brokers = None, None, {}
    found: list[ServerCheck] = []
    rights: tuple[Right, ...] = ()
    if target.bootstrap_servers:
        with connect(target, timeout_s=timeout_s) as client:
            state = client.metadata([])
            rights = read_rights(client)
            controller, _ = controller_of(client, state)
        cluster_id, brokers = state.cluster_id, state.brokers
        found = _brokers(target, {Address(b.host, b.port): b for b in brokers.values()}, cluster_id)
    if target.zookeeper is not None:
        found.append(_zookeeper(target.zookeeper, target.zookeeper_security, cluster_id, timeout_s))
    return ContextCheck(
        name=target.name,
        cluster_id=cluster_id,
        controller_id=controller,
        brokers=tuple(sorted(brokers)),
        healthy=not any(server.problem for server in found),
        principal=principal_of(target.security) if target.bootstrap_servers else None,
        servers=tuple(found),
        rights=rights,
    )


def _brokers(target: Target, advertised: dict[Address, Broker], cluster_id: str | None) -> list[ServerCheck]:
    """The bootstrap servers, then the brokers that advertise another address, all tried at once.

    A login that failed on one would have failed before: no account is locked here.
    """
    given = [parse_address(server) for server in target.bootstrap_servers]
    addresses = dict(enumerate(dict.fromkeys((*given, *advertised))))
    dialer, deadline = Dialer(target.security), Deadline(_LOGGED_IN_S)
    outcomes = preflight.open_all(addresses, dialer, deadline)
    checks = []
    for number, address in addresses.items():
        outcome = outcomes[number]
        role = "bootstrap" if address in given else "broker"
        if role == "broker" and isinstance(outcome, KctlError):
            outcome = advertised_error(advertised[address], outcome)
        checks.append(_judged(role, str(address), outcome, cluster_id))
    return checks


def _judged(role: str, server: str, outcome: Connection | KctlError, cluster_id: str | None) -> ServerCheck:
    if isinstance(outcome, KctlError):
        return ServerCheck(role, server, None, outcome.message)
    try:
        own_id = preflight.read_cluster(outcome, Deadline(_LOGGED_IN_S)).cluster_id
    except KctlError as exc:
        return ServerCheck(role, server, None, exc.message)
    finally:
        outcome.close()
    return ServerCheck(role, server, own_id, _other_cluster(own_id, cluster_id))


def _zookeeper(connect_string: str, security: Security, cluster_id: str | None, timeout_s: float) -> ServerCheck:
    try:
        with zookeeper(connect_string, security=security, timeout_s=timeout_s) as client:
            try:
                data, _ = client.get(CLUSTER_ID)
            except NoNode:
                problem = "no Kafka cluster is registered at this path: is the chroot right?"
                return ServerCheck("zookeeper", connect_string, None, problem)
    except KctlError as exc:
        hint = f"; {exc.hint}" if exc.hint else ""
        return ServerCheck("zookeeper", connect_string, None, f"{exc.message}{hint}")
    own_id = parse_cluster_id(data)
    return ServerCheck("zookeeper", connect_string, own_id, _other_cluster(own_id, cluster_id))


def _other_cluster(own_id: str | None, cluster_id: str | None) -> str | None:
    if own_id is None or cluster_id is None or own_id == cluster_id:
        return None
    return f"belongs to another cluster: {own_id}, not {cluster_id}"
