"""What each broker says of the others: who is there, and who the controller is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.errors import KctlError, NotFound, NotSupported
from kctl.model import Broker

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class BrokerView:
    """brokers: those that it lists as alive. controller_id: None when it knows none; with KRaft it is any broker."""

    brokers: tuple[int, ...]
    controller_id: int | None


def read_views(client: ClusterClient, brokers: Collection[int]) -> dict[int, BrokerView | KctlError]:
    """Each broker's view, by one Metadata without topics to each; a KctlError for one that does not answer."""
    return {
        node: state if isinstance(state, KctlError) else BrokerView(tuple(sorted(state.brokers)), state.controller_id)
        for node, state in client.metadata_of_each(sorted(brokers), ()).items()
    }


def down_brokers(client: ClusterClient) -> list[int]:
    """Brokers that are not alive, and that replicas or a KRaft controller know.

    Of what this user may see: where fenced brokers are not told, replicas are what is left. Raises ConnectionFailed's
    subclasses.
    """
    state = client.metadata()
    fenced = fenced_brokers(client)
    registered = set() if isinstance(fenced, KctlError) else set(fenced)
    holding = {node for topic in state.topics.values() for p in topic.partitions for node in p.replicas}
    return sorted((holding | registered) - state.brokers.keys())


def told_apart(client: ClusterClient, node: int, error: KctlError) -> KctlError:
    """`error` of a request to a broker; that it is down, where it is not in the cluster though replicas are on it."""
    if not isinstance(error, NotFound):
        return error
    try:
        known = down_brokers(client)
    except KctlError:
        return error
    return NotFound(f"broker {node} is down", hint=error.hint) if node in known else error


def fenced_brokers(client: ClusterClient) -> dict[int, Broker] | KctlError:
    """Brokers that are registered with a KRaft controller and not alive (KIP-1073, brokers ≥ 4.0); else none.

    The error when a broker has it and does not tell. Raises ConnectionFailed's subclasses.
    """
    from kafka.protocol.admin import DescribeClusterRequest

    from kctl.protocol.client import error_for

    try:
        answer = client.send(DescribeClusterRequest(include_fenced_brokers=True, min_version=2))
    except NotSupported:
        return {}
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message, subject="the cluster's fenced brokers")
    return {b.broker_id: Broker(b.broker_id, b.host, b.port, b.rack) for b in answer.brokers if b.is_fenced}
