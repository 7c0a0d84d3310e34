"""What brokers leave out of lists without a word: groups, for who may not describe the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.client import ClusterClient

_DESCRIBE = 8  # org.apache.kafka.common.acl.AclOperation


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
