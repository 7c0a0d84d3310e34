"""Objects that brokers silently omit from lists: groups if the user may not describe the cluster, and topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.errors import KctlError, NotAuthorized

if TYPE_CHECKING:
    from collections.abc import Collection

    from kctl.protocol.client import ClusterClient

READ, WRITE, DELETE, _DESCRIBE = 3, 4, 6, 8  # org.apache.kafka.common.acl.AclOperation
NEED_ALL_TOPICS = "seeing all topics requires the ACL operation DESCRIBE on topic *"
# Not a valid topic name, so no topic can have it; brokers check rights before names.
_NO_TOPIC = "kctl asks whether all topics may be described"


def cluster_operations(client: ClusterClient) -> Collection[int] | None:
    """Return the user's operations on the cluster, as codes of AclOperation (KIP-430); None: not reported.

    Raises KctlError if the request fails, as on brokers before 2.8.
    """
    from kafka.protocol.admin import DescribeClusterRequest

    from kctl.protocol.client import error_for

    answer = client.send(DescribeClusterRequest(include_cluster_authorized_operations=True))
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message, subject="the cluster")
    operations: Collection[int] | None = answer.authorized_operations
    return operations


def may_describe_cluster(client: ClusterClient) -> bool | None:
    """Return whether the user has DESCRIBE on the cluster; None: unknown (brokers before 2.8).

    Without DESCRIBE, ListGroups returns only the groups that the user may describe (KafkaApis.handleListGroups).
    """
    try:
        allowed = cluster_operations(client)
    except KctlError:
        return None
    return None if allowed is None else _DESCRIBE in allowed


def may_describe_all_topics(client: ClusterClient) -> bool | None:
    """Return whether the user may describe topics of any name; None: unknown.

    If not, brokers silently omit topics from lists of topics, partitions and committed offsets
    (KafkaApis.handleTopicMetadataRequest, fetchAllOffsetsForGroup). If all topics are allowed, a denial of single
    topics goes unnoticed.
    """
    try:
        client.metadata([_NO_TOPIC])
    except NotAuthorized:
        return False
    except KctlError:
        return None
    return True


def topics_denied(client: ClusterClient, names: Collection[str], operation: int) -> list[str]:
    """Return the topics on which the user lacks this right (KIP-430); none if brokers do not report it (before 2.3).

    operation: READ, WRITE, DELETE.
    """
    try:
        state = client.metadata(sorted(names), operations=True, keep_errors=True)
    except KctlError:
        return []
    return [name for name, allowed in state.operations.items() if operation not in allowed]


def refuse_hidden_topics(client: ClusterClient, *, hint: str) -> None:
    """Raise NotAuthorized if brokers omit commits for topics that the user may not describe."""
    if may_describe_all_topics(client) is False:
        raise NotAuthorized("not authorized to describe all topics: brokers may omit commits", hint=hint)
