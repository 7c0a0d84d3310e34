"""The facts behind a change of the voters: quorum, registered controllers, and whether the quorum is dynamic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kctl.base.address import Address
from kctl.base.deadline import Deadline
from kctl.cluster.api_versions import fetch_api_versions
from kctl.errors import KctlError, NotSupported, Reason, Refused
from kctl.protocol.quorum import Quorum, describe_quorum

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kctl.protocol.client import ClusterClient

KRAFT_VERSION = "kraft.version"
_CONTROLLERS = 2  # EndpointType of DescribeCluster
_ASK_S = 5.0


@dataclass(frozen=True, slots=True)
class QuorumFacts:
    """The quorum and its controllers.

    listener: name of the controller listener, as the voters have it. controllers: addresses of all registered
    controllers, voters and observers, on that listener; empty if no voter could be asked. kraft_version: the finalized
    level of the feature: 0 for static voters, 1 for dynamic ones; None: unknown.
    """

    cluster_id: str
    quorum: Quorum
    listener: str | None
    controllers: Mapping[int, Address]
    kraft_version: int | None


def read_facts(client: ClusterClient) -> QuorumFacts:
    """Read the facts. Raises NotSupported with ZooKeeper, Refused without a leader, subclasses of ConnectionFailed."""
    quorum = describe_quorum(client)
    if quorum is None:
        raise NotSupported("the cluster uses ZooKeeper, which has no metadata quorum")
    if quorum.leader_id is None:
        raise Refused(
            "the metadata quorum has no leader",
            hint="start voters until a majority is up; see `kctl controller`",
            reason=Reason.NOT_READY,
        )
    listener = quorum.nodes[0].listener if quorum.nodes else None
    voters = [Address(node.host, node.port) for node in quorum.nodes if node.listener == listener]
    return QuorumFacts(
        client.target.cluster_id or "", quorum, listener, _controllers(client, voters), _kraft_version(client)
    )


def _kraft_version(client: ClusterClient) -> int | None:
    brokers = client.metadata(()).brokers
    for apis in fetch_api_versions(client, list(brokers)[:1]).values():
        if not isinstance(apis, KctlError):
            levels = [f.finalized_version for f in apis.features if f.feature == KRAFT_VERSION]
            return levels[0] if levels and levels[0] is not None else 0
    return None


def _controllers(client: ClusterClient, voters: list[Address]) -> dict[int, Address]:
    """Return the registered controllers, from the first voter that responds (KIP-919)."""
    from kctl.protocol.dialer import Dialer

    dialer = Dialer(client.target.security, controllers=True)
    for voter in voters:
        try:
            return _describe(voter, dialer)
        except KctlError:
            continue
    return {}


def _describe(server: Address, dialer: Any) -> dict[int, Address]:
    from kafka.protocol.admin import DescribeClusterRequest

    from kctl.protocol.brokers import negotiate
    from kctl.protocol.client import error_for
    from kctl.protocol.connection import Connection

    deadline = Deadline(_ASK_S)
    connection = Connection(server, dialer)
    try:
        connection.open(deadline)
        request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
        pending = connection.send_message(request, negotiate(request, None, connection), deadline)
        answer = connection.receive_message(pending, deadline)
    finally:
        connection.close()
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message, subject="the controllers")
    return {row.broker_id: Address(row.host, row.port) for row in answer.brokers}
