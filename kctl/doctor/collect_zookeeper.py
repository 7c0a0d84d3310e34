"""Read ZooKeeper for the rules: its servers, and what unauthenticated clients may do with its nodes.

Read-only. kctl does not log in to ZooKeeper, so it sees exactly what everyone may see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kctl.base.address import parse_zookeeper
from kctl.doctor.rule_facts import ZooKeeperFacts
from kctl.doctor.rules_zookeeper import METADATA_NODES, USERS
from kctl.errors import KctlError, NotAuthorized, NotFound
from kctl.protocol.security import Security
from kctl.zookeeper.cluster_id import CLUSTER_ID, parse_cluster_id
from kctl.zookeeper.ensemble import read_ensemble
from kctl.zookeeper.nodes import Grant, child_path, list_children, read_acl, read_data
from kctl.zookeeper.session import zookeeper

if TYPE_CHECKING:
    from kctl.zookeeper.client import ZooKeeper

_MAX_USERS = 100  # users whose nodes are read, one request each


def read_zookeeper(
    connect: str, security: Security, timeout_s: float, cluster_id: str | None
) -> ZooKeeperFacts | KctlError:
    """Read the facts about ZooKeeper; return the KctlError if its servers cannot be read.

    timeout_s: for each step, at most 10 s. cluster_id: the cluster that this ZooKeeper must belong to.
    """
    try:
        ensemble = read_ensemble(parse_zookeeper(connect).servers, min(timeout_s, 10.0), security)
    except KctlError as exc:
        return exc
    reasons = [ensemble.warning] if ensemble.warning else []
    grants: dict[str, Sequence[Grant] | None] = {}
    users: int | None = None
    try:
        with zookeeper(connect, security=security, timeout_s=min(timeout_s, 10.0)) as client:
            problem = wrong_cluster(client, connect, cluster_id)
            if problem:
                reasons.append(problem)
            else:
                for path in (*METADATA_NODES, USERS):
                    _add_acl(client, path, grants)
                users = _count_scram_users(client, grants)
    except KctlError as exc:
        reasons.append(exc.message)
    return ZooKeeperFacts(ensemble.servers, grants, users, tuple(reasons))


def wrong_cluster(client: ZooKeeper, connect: str, cluster_id: str | None) -> str | None:
    """Return a message if the address does not lead to the metadata of this cluster.

    Without the right chroot, the nodes that the rules examine do not exist, and every rule would pass. None: the
    address is right, or this cannot be verified (no cluster id before 0.10.1, or the node is not readable by everyone).
    """
    if cluster_id is None:
        return None
    try:
        id_in_zookeeper = parse_cluster_id(read_data(client, CLUSTER_ID))
    except NotAuthorized:
        return None
    except NotFound:
        return f"ZooKeeper {connect} has no Kafka cluster at this path; check the chroot"
    if id_in_zookeeper == cluster_id:
        return None
    return f"ZooKeeper {connect} belongs to cluster {id_in_zookeeper}, not to {cluster_id}"


def _add_acl(client: ZooKeeper, path: str, grants: dict[str, Sequence[Grant] | None]) -> None:
    """Store the ACL of a node; None if it is not readable by everyone. A missing node is skipped."""
    try:
        grants[path] = read_acl(client, path)
    except NotAuthorized:
        grants[path] = None
    except NotFound:
        pass


def _count_scram_users(client: ZooKeeper, grants: dict[str, Sequence[Grant] | None]) -> int | None:
    """Count users with SCRAM credentials and store their ACLs; None if the users are not readable by everyone.

    User nodes hold quotas as well, so nodes without credentials are not counted.
    """
    try:
        rows, _ = list_children(client, USERS, limit=_MAX_USERS)
    except NotFound:
        return 0
    except NotAuthorized:
        return None
    count = 0
    for row in rows:
        path = child_path(USERS, row.name)
        try:
            if b"SCRAM-SHA" not in read_data(client, path, show_secrets=True):
                continue
        except (NotFound, NotAuthorized):
            continue
        count += 1
        _add_acl(client, path, grants)
    return count
