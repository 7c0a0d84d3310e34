"""What brokers leave out of lists without a word: groups, for who may not describe the cluster, and topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.errors import KctlError, NotAuthorized

if TYPE_CHECKING:
    from collections.abc import Collection

    from kctl.protocol.client import ClusterClient

READ, WRITE, DELETE, _DESCRIBE = 3, 4, 6, 8  # org.apache.kafka.common.acl.AclOperation
NEED_ALL_TOPICS = "all need an ACL for Describe on topic *"
# No topic can have this name, whatever else the cluster has; rights are looked at before names are.
_NO_TOPIC = "kctl asks whether all topics may be described"


def cluster_operations(client: ClusterClient) -> Collection[int] | None:
    """What the user may do with the cluster, as codes of AclOperation (KIP-430); None when the broker does not tell.

    Raises KctlError when it cannot be asked: brokers before 2.8.
    """
    from kafka.protocol.admin import DescribeClusterRequest

    from kctl.protocol.client import error_for

    answer = client.send(DescribeClusterRequest(include_cluster_authorized_operations=True))
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message, subject="the cluster")
    operations: Collection[int] | None = answer.authorized_operations
    return operations


def may_describe_cluster(client: ClusterClient) -> bool | None:
    """Whether the user has Describe on the cluster, so that ListGroups tells all groups (KafkaApis.handleListGroups
    answers others with those that they may describe). None when it cannot be told: brokers before 2.8."""
    try:
        allowed = cluster_operations(client)
    except KctlError:
        return None
    return None if allowed is None else _DESCRIBE in allowed


def may_describe_all_topics(client: ClusterClient) -> bool | None:
    """Whether the user may describe a topic of any name, so that lists of topics, of their partitions and of committed
    offsets are whole: brokers leave hidden topics out of those (KafkaApis.handleTopicMetadataRequest,
    fetchAllOffsetsForGroup). A denial of single topics beside a right on all is not seen. None when it cannot be told.
    """
    try:
        client.metadata([_NO_TOPIC])
    except NotAuthorized:
        return False
    except KctlError:
        return None
    return True


def topics_denied(client: ClusterClient, names: Collection[str], operation: int) -> list[str]:
    """Those of the topics on which brokers say that the user has not this right (KIP-430); none where they do not tell,
    as before 2.3. operation: READ, WRITE, DELETE."""
    try:
        state = client.metadata(sorted(names), operations=True, keep_errors=True)
    except KctlError:
        return []
    return [name for name, allowed in state.operations.items() if operation not in allowed]


def refuse_hidden_topics(client: ClusterClient, *, hint: str) -> None:
    """Raise NotAuthorized when brokers leave commits of groups out, for topics that the user may not describe."""
    if may_describe_all_topics(client) is False:
        raise NotAuthorized(
            "not authorized to describe all topics: there may be more commits than brokers tell", hint=hint
        )
