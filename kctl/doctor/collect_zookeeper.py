"""ZooKeeper for the rules: its servers, and what anybody may do with nodes. Reads only, without logging in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kctl.base.address import parse_zookeeper
from kctl.doctor.rule_facts import ZooKeeperFacts
from kctl.doctor.rules_zookeeper import STEERING, USERS
from kctl.errors import KctlError, NotAuthorized, NotFound
from kctl.protocol.security import Security
from kctl.zookeeper.cluster_id import CLUSTER_ID, parse_cluster_id
from kctl.zookeeper.ensemble import read_ensemble
from kctl.zookeeper.nodes import Grant, child_path, list_children, read_acl, read_data
from kctl.zookeeper.session import zookeeper

if TYPE_CHECKING:
    from kctl.zookeeper.client import ZooKeeper

_USERS_READ = 100  # users whose nodes are looked at one by one


def read_zookeeper(
    connect: str, security: Security, limit_s: float, cluster_id: str | None
) -> ZooKeeperFacts | KctlError:
    """The facts, or why there are none. limit_s: of each step. cluster_id: whose ZooKeeper it has to be."""
    try:
        ensemble = read_ensemble(parse_zookeeper(connect).servers, min(limit_s, 10.0), security)
    except KctlError as exc:
        return exc
    unread = [ensemble.doubt] if ensemble.doubt else []
    grants: dict[str, Sequence[Grant] | None] = {}
    users: int | None = None
    try:
        with zookeeper(connect, security=security, timeout_s=min(limit_s, 10.0)) as client:
            wrong = not_its_own(client, connect, cluster_id)
            if wrong:
                unread.append(wrong)
            else:
                for path in (*STEERING, USERS):
                    _look(client, path, grants)
                users = _scram_users(client, grants)
    except KctlError as exc:
        unread.append(exc.message)
    return ZooKeeperFacts(ensemble.servers, grants, users, tuple(unread))


def not_its_own(client: ZooKeeper, connect: str, cluster_id: str | None) -> str | None:
    """Without the chroot, or in another cluster's, nothing would be found, and nothing be wrong. None: it is, or nobody
    can tell (no id before 0.10.1; a node that not everybody may read)."""
    if cluster_id is None:
        return None
    try:
        found = parse_cluster_id(read_data(client, CLUSTER_ID))
    except NotAuthorized:
        return None
    except NotFound:
        return f"ZooKeeper {connect} has no cluster of Kafka's there: is the chroot right?"
    if found == cluster_id:
        return None
    return f"ZooKeeper {connect} is that of cluster {found}, not of {cluster_id}"


def _look(client: ZooKeeper, path: str, grants: dict[str, Sequence[Grant] | None]) -> None:
    """kctl does not log in to ZooKeeper: what it may not see, not everybody may."""
    try:
        grants[path] = read_acl(client, path)
    except NotAuthorized:
        grants[path] = None
    except NotFound:
        pass


def _scram_users(client: ZooKeeper, grants: dict[str, Sequence[Grant] | None]) -> int | None:
    """How many have credentials; None when not everybody may know. Quotas are kept in these nodes as well."""
    try:
        rows, _ = list_children(client, USERS, limit=_USERS_READ)
    except NotFound:
        return 0
    except NotAuthorized:
        return None
    found = 0
    for row in rows:
        path = child_path(USERS, row.name)
        try:
            if b"SCRAM-SHA" not in read_data(client, path, show_secrets=True):
                continue
        except (NotFound, NotAuthorized):
            continue
        found += 1
        _look(client, path, grants)
    return found
