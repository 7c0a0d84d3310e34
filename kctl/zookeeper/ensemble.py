"""The servers of an ensemble, from its configuration in /zookeeper/config (ZooKeeper 3.5 and later)."""

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
from kctl.zookeeper.servers import Server, read_each, read_servers
from kctl.zookeeper.session import zookeeper

_CONFIG_PATH = "/zookeeper/config"
# server.ID=HOST:QUORUM:ELECTION[:ROLE][;[CLIENT HOST:]CLIENT PORT] (QuorumPeer.QuorumServer). A server can have several
# addresses, separated by bars; kctl uses the first.
_MEMBER = re.compile(r"server\.(\d+)=(\[[^\]]+\]|[^:;|]+):\d+:\d+[^;]*(?:;(.+))?")
_WILDCARDS = {"0.0.0.0", "::", "0:0:0:0:0:0:0:0"}  # noqa: S104 - only compared


@dataclass(frozen=True, slots=True)
class EnsembleMember:
    """A server of the ensemble. server_id: its myid. client: its client address; None if the configuration lacks it."""

    server_id: int
    host: str
    client: Address | None


def members_of(config: str) -> list[EnsembleMember]:
    """Return the servers in a configuration; empty for a standalone server. Pure."""
    members = []
    for line in config.splitlines():
        match = _MEMBER.fullmatch(line.strip())
        if match:
            host = match[2].strip("[]")
            members.append(EnsembleMember(int(match[1]), host, _client_address(host, match[3])))
    return members


def _client_address(host: str, text: str | None) -> Address | None:
    """Parse "2181", "0.0.0.0:2181" or "[::]:2181". `host` replaces a missing or wildcard host."""
    if text is None:
        return None
    client_host, _, port = text.rpartition(":")
    client_host = client_host.strip("[]")
    host = client_host if client_host and client_host not in _WILDCARDS else host
    try:
        return parse_address(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except UsageError:
        return None


def find_members(servers: Iterable[Server], deadline: Deadline, security: Security) -> list[EnsembleMember]:
    """Read the ensemble's configuration from the servers that are serving.

    Empty if it cannot be read: before ZooKeeper 3.5, without a quorum, or if the ACL denies access.
    """
    serving_servers = [each.server for each in servers if each.healthy and each.mode != "standalone"]
    if not serving_servers:
        return []
    try:
        with zookeeper(",".join(serving_servers), security=security, timeout_s=max(deadline.left_s, 0.1)) as client:
            data, _ = client.get(_CONFIG_PATH)
            return members_of(data.decode("utf-8", "replace"))
    except KctlError:
        return []


def unlisted_addresses(
    members: Sequence[EnsembleMember], listed: Sequence[Address], deadline: Deadline
) -> list[Address]:
    """Return the client addresses of members that are not in `listed`, by name or by resolved IP address."""
    clients = [member.client for member in members if member.client is not None]
    resolved_ips = run_all({each: partial(_resolve, each) for each in {*clients, *listed}}, deadline)

    def ip_addresses(address: Address) -> set[tuple[str, int]]:
        result = resolved_ips.get(address)
        return result if isinstance(result, set) else {(address.host, address.port)}

    listed_ips = {ip for each in listed for ip in ip_addresses(each)}
    return [each for each in dict.fromkeys(clients) if not ip_addresses(each) & listed_ips]


def _resolve(address: Address) -> set[tuple[str, int]]:
    try:
        rows = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError:
        return {(address.host, address.port)}
    return {(str(row[4][0]), address.port) for row in rows}


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The servers of an ensemble and their addresses, in the same order; listed servers come first.

    warning: set if the ensemble has servers whose client address is unknown.
    """

    servers: list[Server]
    addresses: list[Address]
    warning: str | None


def read_ensemble(listed: Sequence[Address], timeout_s: float, security: Security) -> Ensemble:
    """Read the state of the listed servers, and of the other servers in the ensemble. Raises like read_servers.

    timeout_s: applies to each of two steps, because one server that does not respond uses up the first timeout.
    """
    servers = read_servers(listed, Deadline(timeout_s), security)
    deadline = Deadline(timeout_s)
    members = find_members(servers, deadline, security)
    more = unlisted_addresses(members, listed, deadline) if members else []
    servers += read_each(more, deadline, security)
    warning = None
    if len(members) > len(servers):
        hosts = ", ".join(f"{each.server_id} on {each.host}" for each in members)
        warning = (
            f"the ensemble has {len(members)} servers ({hosts}), but kctl found only {len(servers)}: its "
            "configuration lacks the client addresses of the others; list every server in --zookeeper or the context"
        )
    return Ensemble(servers, [*listed, *more], warning)
