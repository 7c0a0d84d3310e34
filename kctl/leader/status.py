"""How far the leaders are from the preferred ones, as the controller counts it.

With auto.leader.rebalance.enable a controller looks at each broker every leader.imbalance.check.interval.seconds: of
the partitions whose preferred replica it is, which share is led by another, or by none? Above
leader.imbalance.per.broker.percentage it elects (KafkaController.checkAndTriggerAutoLeaderRebalance).
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
    """The cluster's. topics, match: only these, and those that match; neither for all, as the controller counts.

    Raises NotFound, UsageError (an impossible name or pattern), and what ClusterClient.metadata raises.
    """
    from kctl.cluster.topics import only_chosen

    state = only_chosen(client, topics, match)
    auto, limit = _rebalance_settings(client, state)
    return leader_status(state, auto_rebalance=auto, imbalance_limit_percent=limit, whole=not topics and not match)


def _rebalance_settings(client: ClusterClient, state: ClusterState) -> tuple[bool | None, float | None]:
    """Of the controller, which decides; with KRaft of some broker. None where it does not tell: that is no failure."""
    from kafka.protocol.admin import DescribeConfigsRequest

    if not state.brokers:
        return None, None
    node = state.controller_id
    if node is None or node not in state.brokers:
        node = min(state.brokers)
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=str(node), configuration_keys=[_AUTO, _PERCENTAGE]
    )
    answer: Any = client.send_each({node: DescribeConfigsRequest(resources=[resource])})[node]
    if isinstance(answer, KctlError) or not answer.results or answer.results[0].error_code:
        return None, None
    values = {config.name: config.value for config in answer.results[0].configs}
    auto, limit = values.get(_AUTO), values.get(_PERCENTAGE)
    return None if auto is None else auto == "true", float(limit) if limit and limit.isdigit() else None
