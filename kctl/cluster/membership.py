"""Each broker's view of the cluster: the live brokers and the controller."""

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
    """A broker's view. brokers: live brokers. controller_id: None if it knows none; with KRaft, a random broker."""

    brokers: tuple[int, ...]
    controller_id: int | None


def read_views(client: ClusterClient, brokers: Collection[int]) -> dict[int, BrokerView | KctlError]:
    """Return each broker's view, by one Metadata without topics; a KctlError for a broker that does not respond."""
    return {
        node: state if isinstance(state, KctlError) else BrokerView(tuple(sorted(state.brokers)), state.controller_id)
        for node, state in client.metadata_of_each(sorted(brokers), ()).items()
    }


def down_brokers(client: ClusterClient) -> list[int]:
    """Return brokers that are not live, but host replicas or are registered with the KRaft controller.

    Limited to what this user may see: if fenced brokers are not reported, only hosts of visible replicas. Raises
    subclasses of ConnectionFailed.
    """
    state = client.metadata()
    fenced = fenced_brokers(client)
    registered = set() if isinstance(fenced, KctlError) else set(fenced)
    holding = {node for topic in state.topics.values() for p in topic.partitions for node in p.replicas}
    return sorted((holding | registered) - state.brokers.keys())


def explain_failure(client: ClusterClient, node: int, error: KctlError) -> KctlError:
    """Return the error of a request to a broker, or a clearer one if the broker is down.

    A broker is down if it hosts replicas but is not live.
    """
    if not isinstance(error, NotFound):
        return error
    try:
        down = down_brokers(client)
    except KctlError:
        return error
    return NotFound(f"broker {node} is down", hint=error.hint) if node in down else error


def fenced_brokers(client: ClusterClient) -> dict[int, Broker] | KctlError:
    """Return brokers that are registered with a KRaft controller but not live (KIP-1073, Kafka 4.0); else none.

    Returns the error if a broker supports the request but fails it. Raises subclasses of ConnectionFailed.
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
