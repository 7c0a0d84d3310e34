"""Which protected contexts a cluster belongs to, however it is addressed.

Protection belongs to the cluster: its id is kept with the context, and every change of a cluster with this id asks for
the context's name. Where an id is unknown, addresses are compared. A protected context whose cluster is not known yet
is asked for its id, once, and only when something is about to change.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from kctl.address import parse_address, spelled_alike
from kctl.deadline import Deadline
from kctl.errors import KctlError, UsageError

if TYPE_CHECKING:
    from kctl.context import Context, Target

LOOK_S = 2.5  # for the question whose cluster a protected context is; it is asked at most once per context
_RESOLVE_S = 1.0
_REMEMBERED_S = 60.0
_LOOPBACK = ("127.", "::1")


@dataclass(frozen=True, slots=True)
class Protector:
    """A protected context and why it protects a cluster. certain: False if its cluster is not known."""

    name: str
    reason: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Look:
    """What a protected context answered: its cluster's id, the brokers' addresses; or why it does not answer."""

    cluster_id: str | None = None
    advertised: tuple[str, ...] = ()
    problem: str | None = None


def protectors(target: Target) -> tuple[Protector, ...]:
    """The protected contexts that `target` belongs to; the one that it came from is the first.

    Those whose cluster is not known are in it only where no other is: asking for one name is enough.
    Raises InvalidFile for a config file that cannot be understood: it may protect the cluster.
    """
    from kctl.context import list_contexts

    protected = {name: entry for name, entry in list_contexts().items() if entry.protected}
    found = [Protector(target.name, f"context {target.name} is protected")] if target.protected else []
    for name, entry in protected.items():
        reason = None if target.protected and name == target.name else _known_match(target, entry)
        if reason:
            found.append(Protector(name, f"context {name} protects this cluster ({reason})"))
    if found or not protected:
        return tuple(found)
    for name, entry in protected.items():
        if entry.cluster_id is None or target.cluster_id is None:
            match = _unknown_match(target, name, entry)
            if match is not None:
                found.append(match)
    certain = [each for each in found if each.certain]
    return tuple(certain or found)


def _known_match(target: Target, entry: Context) -> str | None:
    """Why the cluster is the context's, as far as that can be told without asking anybody."""
    if entry.cluster_id is not None and entry.cluster_id == target.cluster_id:
        return f"cluster id {entry.cluster_id}"
    theirs = _alike(entry.bootstrap_servers)
    # The address of a protected context stays protected if the cluster behind it was made anew.
    ours = _alike(target.bootstrap_servers)
    if entry.cluster_id is None or target.cluster_id is None:
        ours |= _alike(target.advertised)
    common = sorted(ours & theirs)
    if common:
        return f"it has the server {common[0]}"
    if target.zookeeper is not None and not target.bootstrap_servers and entry.zookeeper is not None:
        return _same_zookeeper(target.zookeeper, entry.zookeeper)
    return None


def _same_zookeeper(one: str, other: str) -> str | None:
    from kctl.address import parse_zookeeper

    left, right = parse_zookeeper(one), parse_zookeeper(other)
    common = _alike(map(str, left.servers)) & _alike(map(str, right.servers))
    return f"it has the ZooKeeper {min(common)}" if common and left.chroot == right.chroot else None


def _unknown_match(target: Target, name: str, entry: Context) -> Protector | None:
    """The same where an id is missing: by resolved addresses, and by what the context's own servers answer."""
    own_servers = _own_servers(target.cluster_id)
    ours = _resolved((*target.bootstrap_servers, *target.advertised, *own_servers))
    theirs = _resolved(entry.bootstrap_servers)
    common = sorted(_endpoints(ours) & _endpoints(theirs))
    if common:
        return Protector(name, f"context {name} protects this cluster (it has the server {common[0]})")
    if own_servers or (target.cluster_id is None and not target.advertised):
        return None  # a cluster that kctl set up here, with no other listeners than these; or one that has never run
    if target.cluster_id is None and entry.cluster_id is not None:
        return None  # Kafka 0.10.0 has no id, and the context's cluster has one
    if _only_here(target, ours) and not _may_be_here(theirs):
        return None
    look = _look_at(name, entry)
    if look.problem is not None:
        return Protector(
            name,
            f"context {name} is protected, and whether this is its cluster is unknown: {look.problem};"
            f" `kctl context test {name}` finds out",
            certain=False,
        )
    if look.cluster_id is not None or target.cluster_id is not None:
        same = look.cluster_id == target.cluster_id
        return Protector(name, f"context {name} protects this cluster (cluster id {look.cluster_id})") if same else None
    hosts = _hosts(ours) & _hosts(_resolved(look.advertised))
    if not hosts:
        return None
    return Protector(name, f"context {name} may protect this cluster: both have brokers on {min(hosts)}, and no id")


# --- addresses --------------------------------------------------------------------------------------------------------


def _alike(servers: Iterable[str]) -> set[str]:
    """The servers in one spelling. Brokers may advertise anything: what is no address is left out."""
    found = set()
    for server in servers:
        with suppress(UsageError):
            found.add(spelled_alike(server))
    return found


def _resolved(servers: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """«host:port» → its IP addresses; none for a name that is not resolved in time."""
    from kctl.parallel import run_all

    addresses = {server: parse_address(server) for server in _alike(servers)}
    hosts = {address.host for address in addresses.values()}
    found = run_all({host: partial(_addresses_of, host) for host in hosts}, Deadline(_RESOLVE_S))
    known = {host: ips for host, ips in found.items() if not isinstance(ips, KctlError)}
    return {server: known.get(address.host, frozenset()) for server, address in addresses.items()}


def _addresses_of(host: str) -> frozenset[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return frozenset()
    return frozenset("127.0.0.1" if str(where[0]).startswith(_LOOPBACK) else str(where[0]) for *_, where in found)


def _endpoints(resolved: Mapping[str, frozenset[str]]) -> set[str]:
    return {f"{ip} port {parse_address(server).port}" for server, ips in resolved.items() for ip in ips}


def _hosts(resolved: Mapping[str, frozenset[str]]) -> set[str]:
    return {ip for ips in resolved.values() for ip in ips}


def _only_here(target: Target, resolved: Mapping[str, frozenset[str]]) -> bool:
    """Whether all brokers advertise loopback: nobody reaches such a cluster from another machine."""
    ips = [resolved.get(server, frozenset()) for server in _alike(target.advertised)]
    return bool(ips) and all(each and all(ip.startswith(_LOOPBACK) for ip in each) for each in ips)


def _may_be_here(resolved: Mapping[str, frozenset[str]]) -> bool:
    """Whether one of the servers is this machine."""
    return any(ip.startswith(_LOOPBACK) or _is_own(ip) for ip in _hosts(resolved))


def _is_own(ip: str) -> bool:
    """Whether it is an address of this machine: only those can be bound."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((ip, 0))
    except OSError:
        return False
    return True


# --- ids --------------------------------------------------------------------------------------------------------------

_looks: dict[tuple[str, Context], tuple[float, Look]] = {}


def _look_at(name: str, entry: Context) -> Look:
    """Ask a protected context's own servers which cluster they are, and remember it. Steps of a playbook ask once."""
    known = _looks.get((name, entry))
    if known is not None and time.monotonic() - known[0] < _REMEMBERED_S:
        return known[1]
    own_id = _id_on_disk(name, entry)
    look = look_at(name) if own_id is None else Look(own_id)
    if look.cluster_id is not None:
        remember(name, look.cluster_id)
    _looks[name, entry] = time.monotonic(), look
    return look


def _own_servers(cluster_id: str | None) -> tuple[str, ...]:
    """All listeners of a cluster that kctl set up on this machine; empty for another one."""
    from kctl.deploy import store
    from kctl.deploy.data import cluster_id_on_disk
    from kctl.deploy.host import LocalHost

    if cluster_id is None:
        return ()
    host = LocalHost()
    for cluster in store.list_clusters(host):
        with suppress(KctlError):
            if cluster.spec is not None and cluster_id_on_disk(host, cluster.spec) == cluster_id:
                return cluster.spec.bootstrap_servers
    return ()


def _id_on_disk(name: str, entry: Context) -> str | None:
    """Of a cluster that kctl set up here, also while it is down."""
    if entry.cluster_dir is None:
        return None
    from kctl.deploy.lifecycle import own_cluster_id

    with suppress(KctlError):
        return own_cluster_id(name)
    return None


def look_at(name: str) -> Look:
    """Which cluster a context's servers are; `problem` if they do not answer."""
    from kctl.client import connect
    from kctl.context import target_of

    try:
        with connect(target_of(name), timeout_s=LOOK_S) as client:
            return Look(client.target.cluster_id, client.target.advertised)
    except KctlError as exc:
        return Look(problem=exc.message)


def remember(name: str, cluster_id: str) -> bool:
    """Keep the id with the context. False if the file cannot be written: it is asked for again then."""
    from kctl import config

    with suppress(KctlError):
        with config.update() as file:
            entry = file.contexts.get(name)
            if entry is not None and entry.cluster_id != cluster_id:
                file.contexts[name] = replace(entry, cluster_id=cluster_id)
        return True
    return False


def learn(target: Target) -> str | None:
    """After a connection: keep the id of a protected context that has none yet. A warning if the cluster is not the
    one that is remembered."""
    if target.context is None or not target.protected or target.cluster_id is None:
        return None
    if target.remembered_id is None:
        remember(target.context, target.cluster_id)
    elif target.remembered_id != target.cluster_id:
        return (
            f"context {target.context} was cluster {target.remembered_id}, and its servers belong to"
            f" {target.cluster_id} now; `kctl context test {target.context}` remembers that"
        )
    return None
