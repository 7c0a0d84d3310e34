"""The protected contexts of a cluster, however the cluster is addressed.

Protection belongs to the cluster: the cluster id is stored with the context, and every change to a cluster with this id
asks for the context's name. If an id is unknown, addresses are compared. kctl reads the unknown id of a protected
context from its servers once, and only before a change.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from kctl.base.address import parse_address, spelled_alike
from kctl.base.deadline import Deadline
from kctl.errors import KctlError, UsageError

if TYPE_CHECKING:
    from kctl.contexts.context import Context
    from kctl.protocol.target import Target

LOOK_S = 2.5  # to read the cluster id of a protected context, at most once per context
_RESOLVE_S = 1.0
_PROBE_CACHE_S = 60.0
_LOOPBACK = ("127.", "::1")


@dataclass(frozen=True, slots=True)
class Protector:
    """A protected context and why it protects a cluster. certain: False if the context's cluster is unknown."""

    name: str
    reason: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class ServerReport:
    """The response of a protected context's servers: the cluster id and the brokers' addresses, or the problem."""

    cluster_id: str | None = None
    advertised: tuple[str, ...] = ()
    problem: str | None = None


def protectors(target: Target) -> tuple[Protector, ...]:
    """Return the protected contexts of `target`, beginning with the target's own context.

    Contexts with an unknown cluster are returned only if there are no others, because one name is enough to ask for.
    Raises InvalidFile for an invalid config file, which may protect the cluster.
    """
    from kctl.contexts.choose import list_contexts

    protected = {name: entry for name, entry in list_contexts().items() if entry.protected}
    matches = [Protector(target.name, f"context {target.name} is protected")] if target.protected else []
    for name, entry in protected.items():
        reason = None if target.protected and name == target.name else _known_match(target, entry)
        if reason:
            matches.append(Protector(name, f"context {name} protects this cluster ({reason})"))
    if matches or not protected:
        return tuple(matches)
    for name, entry in protected.items():
        if entry.cluster_id is None or target.cluster_id is None:
            match = _unknown_match(target, name, entry)
            if match is not None:
                matches.append(match)
    certain = [each for each in matches if each.certain]
    return tuple(certain or matches)


def _known_match(target: Target, entry: Context) -> str | None:
    """Return why the target is the context's cluster, without connecting; None if the known facts do not show it."""
    if entry.cluster_id is not None and entry.cluster_id == target.cluster_id:
        return f"cluster id {entry.cluster_id}"
    context_servers = _normalized(entry.bootstrap_servers)
    # The address of a protected context stays protected after the cluster behind it was recreated.
    target_servers = _normalized(target.bootstrap_servers)
    if entry.cluster_id is None or target.cluster_id is None:
        target_servers |= _normalized(target.advertised)
    common = sorted(target_servers & context_servers)
    if common:
        return f"it has the server {common[0]}"
    if target.zookeeper is not None and not target.bootstrap_servers and entry.zookeeper is not None:
        return _same_zookeeper(target.zookeeper, entry.zookeeper)
    return None


def _same_zookeeper(one: str, other: str) -> str | None:
    from kctl.base.address import parse_zookeeper

    target, entry = parse_zookeeper(one), parse_zookeeper(other)
    common = _normalized(map(str, target.servers)) & _normalized(map(str, entry.servers))
    return f"it has the ZooKeeper {min(common)}" if common and target.chroot == entry.chroot else None


def _unknown_match(target: Target, name: str, entry: Context) -> Protector | None:
    """Like _known_match, for an unknown cluster id: compare resolved addresses, and query the context's servers."""
    own_servers = _own_servers(target.cluster_id)
    target_servers = _resolved((*target.bootstrap_servers, *target.advertised, *own_servers))
    context_servers = _resolved(entry.bootstrap_servers)
    common = sorted(_endpoints(target_servers) & _endpoints(context_servers))
    if common:
        return Protector(name, f"context {name} protects this cluster (it has the server {common[0]})")
    if own_servers or (target.cluster_id is None and not target.advertised):
        return None  # a cluster that kctl set up here, whose listeners are all known; or one that has never run
    if target.cluster_id is None and entry.cluster_id is not None:
        return None  # Kafka 0.10.0 has no cluster id, and the context's cluster has one
    if _only_here(target, target_servers) and not _may_be_here(context_servers):
        return None
    report = _probe(name, entry)
    if report.problem is not None:
        return Protector(
            name,
            f"context {name} is protected and may be this cluster: cannot read its cluster id: {report.problem};"
            f" try `kctl context test {name}`",
            certain=False,
        )
    if report.cluster_id is not None or target.cluster_id is not None:
        same = report.cluster_id == target.cluster_id
        return (
            Protector(name, f"context {name} protects this cluster (cluster id {report.cluster_id})") if same else None
        )
    hosts = _hosts(target_servers) & _hosts(_resolved(report.advertised))
    if not hosts:
        return None
    return Protector(
        name,
        f"context {name} may protect this cluster: both have brokers on {min(hosts)}, and neither has a cluster id",
    )


# --- addresses --------------------------------------------------------------------------------------------------------


def _normalized(servers: Iterable[str]) -> set[str]:
    """Return the servers in one spelling. Brokers may advertise anything, so invalid addresses are dropped."""
    spellings = set()
    for server in servers:
        with suppress(UsageError):
            spellings.add(spelled_alike(server))
    return spellings


def _resolved(servers: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Return the IP addresses of each "host:port"; none for a name that is not resolved in time."""
    from kctl.base.parallel import run_all

    addresses = {server: parse_address(server) for server in _normalized(servers)}
    hosts = {address.host for address in addresses.values()}
    answers = run_all({host: partial(_addresses_of, host) for host in hosts}, Deadline(_RESOLVE_S))
    by_host = {host: ips for host, ips in answers.items() if not isinstance(ips, KctlError)}
    return {server: by_host.get(address.host, frozenset()) for server, address in addresses.items()}


def _addresses_of(host: str) -> frozenset[str]:
    try:
        records = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return frozenset()
    return frozenset("127.0.0.1" if str(addr[0]).startswith(_LOOPBACK) else str(addr[0]) for *_, addr in records)


def _endpoints(resolved: Mapping[str, frozenset[str]]) -> set[str]:
    return {f"{ip} port {parse_address(server).port}" for server, ips in resolved.items() for ip in ips}


def _hosts(resolved: Mapping[str, frozenset[str]]) -> set[str]:
    return {ip for ips in resolved.values() for ip in ips}


def _only_here(target: Target, resolved: Mapping[str, frozenset[str]]) -> bool:
    """Return True if all brokers advertise loopback addresses, so that other machines cannot reach the cluster."""
    ips = [resolved.get(server, frozenset()) for server in _normalized(target.advertised)]
    return bool(ips) and all(each and all(ip.startswith(_LOOPBACK) for ip in each) for each in ips)


def _may_be_here(resolved: Mapping[str, frozenset[str]]) -> bool:
    """Return True if one of the servers is this machine."""
    return any(ip.startswith(_LOOPBACK) or _is_own(ip) for ip in _hosts(resolved))


def _is_own(ip: str) -> bool:
    """Return True if `ip` is an address of this machine. Only such an address can be bound."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((ip, 0))
    except OSError:
        return False
    return True


# --- ids --------------------------------------------------------------------------------------------------------------

_probes: dict[tuple[str, Context], tuple[float, ServerReport]] = {}


def _probe(name: str, entry: Context) -> ServerReport:
    """Read the cluster id from a protected context's servers and store it. The steps of a playbook share one read."""
    cached = _probes.get((name, entry))
    if cached is not None and time.monotonic() - cached[0] < _PROBE_CACHE_S:
        return cached[1]
    own_id = _id_on_disk(name, entry)
    report = probe(name) if own_id is None else ServerReport(own_id)
    if report.cluster_id is not None:
        remember(name, report.cluster_id)
    _probes[name, entry] = time.monotonic(), report
    return report


def _own_servers(cluster_id: str | None) -> tuple[str, ...]:
    """Return all listeners of a cluster that kctl set up on this machine; empty for other clusters."""
    from kctl.deploy.data import find_cluster
    from kctl.deploy.host import LocalHost

    spec = None if cluster_id is None else find_cluster(LocalHost(), cluster_id)
    return () if spec is None else spec.bootstrap_servers


def _id_on_disk(name: str, entry: Context) -> str | None:
    """Return the id of a cluster that kctl set up here, even while the cluster is down."""
    if entry.cluster_dir is None:
        return None
    from kctl.deploy.lifecycle import own_cluster_id

    with suppress(KctlError):
        return own_cluster_id(name)
    return None


def probe(name: str) -> ServerReport:
    """Read the cluster id from a context's servers; `problem` if they do not respond."""
    from kctl.contexts.choose import target_of
    from kctl.protocol.client import connect

    try:
        with connect(target_of(name), timeout_s=LOOK_S) as client:
            return ServerReport(client.target.cluster_id, client.target.advertised)
    except KctlError as exc:
        return ServerReport(problem=exc.message)


def remember(name: str, cluster_id: str) -> bool:
    """Store the id with the context. Return False if the file cannot be written; the id is then read again later."""
    from kctl.contexts import config

    with suppress(KctlError):
        with config.update() as file:
            entry = file.contexts.get(name)
            if entry is not None and entry.cluster_id != cluster_id:
                file.contexts[name] = replace(entry, cluster_id=cluster_id)
        return True
    return False


def learn(target: Target) -> str | None:
    """After connecting, store the cluster id with a protected context that has none.

    Return a warning if the cluster's id differs from the stored one.
    """
    if target.context is None or not target.protected or target.cluster_id is None:
        return None
    if target.remembered_id is None:
        remember(target.context, target.cluster_id)
    elif target.remembered_id != target.cluster_id:
        return (
            f"context {target.context}: its servers now belong to cluster {target.cluster_id}, not to"
            f" {target.remembered_id}; store the new id with `kctl context test {target.context}`"
        )
    return None
