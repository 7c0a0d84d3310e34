"""What brokers leave out of lists without a word: groups, for who may not describe the cluster, and topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.errors import KctlError, NotAuthorized

if TYPE_CHECKING:
    from kctl.client import ClusterClient

_DESCRIBE = 8  # org.apache.kafka.common.acl.AclOperation
# No topic can have this name, whatever else the cluster has; rights are looked at before names are.
_NO_TOPIC = "kctl asks whether all topics may be described"


def may_describe_cluster(client: ClusterClient) -> bool | None:
    """Whether the user has Describe on the cluster, so that ListGroups tells all groups (KafkaApis.handleListGroups
    answers others with those that they may describe). None when it cannot be told: brokers before 2.8."""
    from kafka.protocol.admin import DescribeClusterRequest

    try:
        answer = client.send(DescribeClusterRequest(include_cluster_authorized_operations=True))
    except KctlError:
        return None
    allowed = answer.authorized_operations
    return None if answer.error_code or allowed is None else _DESCRIBE in allowed


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


def refuse_hidden_topics(client: ClusterClient, *, hint: str) -> None:
    """Raise NotAuthorized when brokers leave commits of groups out, for topics that the user may not describe."""
    if may_describe_all_topics(client) is False:
        raise NotAuthorized(
            "not authorized to describe all topics: there may be more commits than brokers tell", hint=hint
        )
