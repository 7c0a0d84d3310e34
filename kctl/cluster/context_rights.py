"""The rights of a login, as brokers report them. Reading them changes nothing.

Brokers report the operations that the authorizer allows (KIP-430): DescribeCluster for the cluster (KIP-700), Metadata
for topics. Anything that the login may not describe is unknown, not absent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.cluster.rights import cluster_operations
from kctl.errors import KctlError
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.security import Security

# org.apache.kafka.common.acl.AclOperation: the codes in the responses
_OPERATIONS = {
    3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE", 9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS", 12: "IDEMPOTENT_WRITE",
}  # fmt: skip
# org.apache.kafka.security.authorizer.AclEntry: the operations of the resource, and their use
_CLUSTER = {
    8: "list groups and log dirs", 5: "create any topic", 7: "reassign, elect leaders, change ACLs, users and quotas",
    10: "read broker configs", 11: "change broker configs", 9: "act as a broker",
}  # fmt: skip
_TOPIC = {8: "", 3: "consume", 4: "produce", 6: "delete, delete records", 7: "add partitions", 10: "", 11: ""}
_ANY, _ALL_RESOURCES = 1, 1


class Access(str, Enum):
    """The result for one operation. PARTLY: allowed on some of the objects."""

    OK = "ok"
    PARTLY = "partly"
    DENIED = "denied"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ContextRight:
    """An operation on a resource, and whether it is allowed."""

    resource: str
    operation: str
    result: Access
    detail: str


def principal_of(security: Security) -> str:
    """Return the principal of this login, before any principal mapping rules of the brokers."""
    if security.sasl:
        return f"User:{security.sasl_username}"
    if security.tls and security.has_certificate:
        return f"the subject of {security.ssl_certfile or 'the client certificate'}"
    return "User:ANONYMOUS"


def read_rights(client: ClusterClient) -> tuple[ContextRight, ...]:
    """Return the rights of the login. A probe that fails becomes a row; nothing is raised."""
    cluster = _cluster(client)
    may_describe = any(right.operation == "DESCRIBE" and right.result is Access.OK for right in cluster)
    return (*cluster, *_topics(client), _groups(client, may_describe=may_describe), _acls(client))


def _cluster(client: ClusterClient) -> list[ContextRight]:
    try:
        return cluster_rights(cluster_operations(client))
    except KctlError as exc:
        return [ContextRight("cluster", "DESCRIBE", Access.UNKNOWN, exc.message)]


def cluster_rights(allowed: Collection[int] | None) -> list[ContextRight]:
    """Return the rights on the cluster. Without DESCRIBE, brokers report none, so the others are unknown."""
    if allowed is None:
        return [ContextRight("cluster", "DESCRIBE", Access.UNKNOWN, "the broker does not report it")]
    if not allowed:
        hidden = "brokers report this only with DESCRIBE on the cluster"
        return [
            ContextRight(
                "cluster", _OPERATIONS[code], *((Access.DENIED, use) if code == 8 else (Access.UNKNOWN, hidden))
            )
            for code, use in _CLUSTER.items()
        ]
    return [
        ContextRight("cluster", _OPERATIONS[code], Access.OK if code in allowed else Access.DENIED, use)
        for code, use in _CLUSTER.items()
    ]


def _topics(client: ClusterClient) -> list[ContextRight]:
    try:
        state = client.metadata(operations=True, keep_errors=True)
    except KctlError as exc:
        return [ContextRight("topics", "DESCRIBE", Access.UNKNOWN, exc.message)]
    return topic_rights(
        [
            state.operations[name]
            for name, topic in state.topics.items()
            if not topic.internal and name in state.operations
        ]
    )


def topic_rights(operations: Sequence[Collection[int]]) -> list[ContextRight]:
    """Return the rights on topics, from the allowed operations of each topic."""
    if not operations:
        return [
            ContextRight(
                "topics", "DESCRIBE", Access.UNKNOWN, "no topic is visible: none exists, or you may not describe any"
            )
        ]
    rights = []
    for code, use in _TOPIC.items():
        count = sum(1 for each in operations if code in each)
        result = Access.OK if count == len(operations) else Access.PARTLY if count else Access.DENIED
        total = counted(len(operations), "visible topic")
        of = f"all of {total}" if count == len(operations) else f"{count} of {total}"
        rights.append(ContextRight("topics", _OPERATIONS[code], result, f"{use}: {of}" if use else of))
    return rights


def _groups(client: ClusterClient, *, may_describe: bool) -> ContextRight:
    from kctl.cluster.groups.describe import list_groups

    try:
        listed = list_groups(client)
    except KctlError as exc:
        return ContextRight("groups", "DESCRIBE", Access.UNKNOWN, exc.message)
    if listed.unlisted:
        return ContextRight("groups", "DESCRIBE", Access.UNKNOWN, next(iter(listed.unlisted.values())).message)
    count = len(listed.groups)
    if may_describe:
        return ContextRight("groups", "DESCRIBE", Access.OK, f"{counted(count, 'group')}, all visible")
    if count:
        return ContextRight(
            "groups", "DESCRIBE", Access.PARTLY, f"{counted(count, 'visible group')}; there may be others"
        )
    return ContextRight(
        "groups", "DESCRIBE", Access.UNKNOWN, "no group is visible: none exists, or you may not describe any"
    )


def _acls(client: ClusterClient) -> ContextRight:
    from kafka.protocol.admin import DescribeAclsRequest

    from kctl.protocol.client import error_for

    request = DescribeAclsRequest(
        resource_type_filter=_ALL_RESOURCES, resource_name_filter=None, pattern_type_filter=_ANY,
        principal_filter=None, host_filter=None, operation=_ANY, permission_type=_ANY,
    )  # fmt: skip
    try:
        answer = client.send(request)
    except KctlError as exc:
        return ContextRight("acls", "DESCRIBE", Access.UNKNOWN, exc.message)
    if answer.error_code == ErrorCode.SECURITY_DISABLED:
        return ContextRight("acls", "DESCRIBE", Access.OK, "no authorizer: everyone may do everything")
    if answer.error_code:
        error = error_for(answer.error_code, answer.error_message, subject="ACLs")
        result = Access.DENIED if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED else Access.UNKNOWN
        return ContextRight("acls", "DESCRIBE", result, error.message)
    count = sum(len(resource.acls) for resource in answer.resources)
    return ContextRight("acls", "DESCRIBE", Access.OK, f"all {count} ACLs are readable")
