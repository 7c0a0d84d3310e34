"""The members of a rolling restart in a cluster that kctl set up: brokers and dedicated controllers, on loopback."""

from __future__ import annotations

from collections.abc import Iterable

from kctl.base.address import Address
from kctl.deploy.health import target_of
from kctl.deploy.layout import LOOPBACK, BrokerNode, ClusterSpec, ControllerNode
from kctl.model import Broker
from kctl.restart.live_cluster import LiveCluster


def controllers_of(spec: ClusterSpec) -> dict[int, Address]:
    """Return the addresses of the dedicated controllers."""
    return {node.id: Address(LOOPBACK, node.port) for node in spec.controllers}


def members_of(nodes: Iterable[BrokerNode | ControllerNode]) -> dict[int, Broker]:
    """Return brokers and controllers as the members of a rolling restart."""
    racks = {node: node.rack if isinstance(node, BrokerNode) else None for node in nodes}
    return {node.id: Broker(node.id, LOOPBACK, node.port, rack) for node, rack in racks.items()}


def live_cluster(spec: ClusterSpec) -> LiveCluster:
    """Return a view of the running cluster and its dedicated controllers. `with` closes it."""
    return LiveCluster(target_of(spec), controllers=controllers_of(spec))
