"""Which servers an ensemble has: its configuration, which ZooKeeper keeps in /zookeeper/config (3.5 and newer)."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from kctl.base.address import Address, parse_address
from kctl.base.deadline import Deadline
from kctl.base.parallel import run_all
from kctl.errors import KctlError, UsageError
from kctl.protocol.security import Security
from kctl.zookeeper.servers import Server, ask_each, read_servers
from kctl.zookeeper.session import zookeeper

_CONFIG = "/zookeeper/config"
# server.ID=HOST:QUORUM:ELECTION[:ROLE][;[CLIENT HOST:]CLIENT PORT] (QuorumPeer.QuorumServer); addresses of one server
# are separated by bars, the first one is taken.
_MEMBER = re.compile(r"server\.(\d+)=(\[[^\]]+\]|[^:;|]+):\d+:\d+[^;]*(?:;(.+))?")
_ANY_HOST = {"0.0.0.0", "::", "0:0:0:0:0:0:0:0"}  # noqa: S104 - nothing is bound to it


@dataclass(frozen=True, slots=True)
class Member:
    """A server of the ensemble, with its number (myid). client: where it takes clients; None where the configuration
    leaves that to it."""

    server_id: int
    host: str
    client: Address | None


def members_of(config: str) -> list[Member]:
    """The servers that a configuration names; none for a standalone server. Pure."""
    found = []
    for line in config.splitlines():
        match = _MEMBER.fullmatch(line.strip())
        if match:
            host = match[2].strip("[]")
            found.append(Member(int(match[1]), host, _client(host, match[3])))
    return found


def _client(host: str, text: str | None) -> Address | None:
    """«2181», «0.0.0.0:2181», «[::]:2181»."""
    if text is None:
        return None
    own, _, port = text.rpartition(":")
    own = own.strip("[]")
    host = own if own and own not in _ANY_HOST else host
    try:
        return parse_address(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except UsageError:
        return None


def find_members(servers: Iterable[Server], deadline: Deadline, security: Security) -> list[Member]:
    """The members, as those of `servers` tell that serve; none where nobody tells: before 3.5, without a quorum, or
    where the node may not be read."""
    serving = [each.server for each in servers if each.healthy and each.mode != "standalone"]
    if not serving:
        return []
    try:
        with zookeeper(",".join(serving), security=security, timeout_s=max(deadline.left_s, 0.1)) as client:
            data, _ = client.get(_CONFIG)
            return members_of(data.decode("utf-8", "replace"))
    except KctlError:
        return []


def unasked(members: Sequence[Member], asked: Sequence[Address], deadline: Deadline) -> list[Address]:
    """Where members take clients that are none of the servers asked: not by name, nor by what names resolve to."""
    clients = [member.client for member in members if member.client is not None]
    places = run_all({each: partial(_places, each) for each in {*clients, *asked}}, deadline)

    def places_of(address: Address) -> set[tuple[str, int]]:
        found = places.get(address)
        return found if isinstance(found, set) else {(address.host, address.port)}

    known = {place for each in asked for place in places_of(each)}
    return [each for each in dict.fromkeys(clients) if not places_of(each) & known]


def _places(address: Address) -> set[tuple[str, int]]:
    try:
        rows = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError:
        return {(address.host, address.port)}
    return {(str(row[4][0]), address.port) for row in rows}


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Its servers, those that were named first, and where each was asked. doubt: what of it is not shown."""

    servers: list[Server]
    addresses: list[Address]
    doubt: str | None


def read_ensemble(named: Sequence[Address], limit_s: float, security: Security) -> Ensemble:
    """The state of the servers named, and of those that the ensemble has besides. Raises as read_servers does.

    limit_s: of each of two steps, for one server that is silent uses up the first.
    """
    servers = read_servers(named, Deadline(limit_s), security)
    rest = Deadline(limit_s)
    members = find_members(servers, rest, security)
    more = unasked(members, named, rest) if members else []
    servers += ask_each(more, rest, security)
    doubt = None
    if len(members) > len(servers):
        hosts = ", ".join(f"{each.server_id} on {each.host}" for each in members)
        doubt = (
            f"the ensemble has {len(members)} servers ({hosts}), and only {len(servers)} shown here: it does not tell "
            "where the others take clients, so name each in --zookeeper or the context"
        )
    return Ensemble(servers, [*named, *more], doubt)
