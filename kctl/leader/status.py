"""The imbalance of leaders, counted as by the controller.

With auto.leader.rebalance.enable, the controller computes an imbalance for each broker every
leader.imbalance.check.interval.seconds: of the partitions that prefer the broker as leader, the share led by another
broker or by none. If it exceeds leader.imbalance.per.broker.percentage, the controller elects the preferred leaders
(KafkaController.checkAndTriggerAutoLeaderRebalance).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kctl.configs.dynamic import BROKER_RESOURCE
from kctl.errors import KctlError
from kctl.health.leaders import LeaderStatus, leader_status
from kctl.model import ClusterState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_AUTO = "auto.leader.rebalance.enable"
_PERCENTAGE = "leader.imbalance.per.broker.percentage"


def read_leader_status(client: ClusterClient, topics: Sequence[str] = (), match: Sequence[str] = ()) -> LeaderStatus:
    """Return the leader status. topics, match: select topics (default: all, as the controller counts).

    Raises NotFound, UsageError (an invalid name or pattern), and the errors of ClusterClient.metadata.
    """
    from kctl.cluster.topics import only_chosen

    state = only_chosen(client, topics, match)
    auto, limit = _rebalance_settings(client, state)
    return leader_status(state, auto_rebalance=auto, imbalance_limit_percent=limit, whole=not topics and not match)


def _rebalance_settings(client: ClusterClient, state: ClusterState) -> tuple[bool | None, float | None]:
    """Return the controller's auto.leader.rebalance.enable and imbalance limit (KRaft: any broker's).

    A setting that is not reported is None, which is not an error.
    """
    from kafka.protocol.admin import DescribeConfigsRequest

    if not state.brokers:
        return None, None
    node = state.controller_id
    if node is None or node not in state.brokers:
        node = min(state.brokers)
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=str(node), configuration_keys=[_AUTO, _PERCENTAGE]
    )
    response: Any = client.send_each({node: DescribeConfigsRequest(resources=[resource])})[node]
    if isinstance(response, KctlError) or not response.results or response.results[0].error_code:
        return None, None
    values = {config.name: config.value for config in response.results[0].configs}
    auto, limit = values.get(_AUTO), values.get(_PERCENTAGE)
    return None if auto is None else auto == "true", float(limit) if limit and limit.isdigit() else None
