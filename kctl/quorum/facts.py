"""The facts behind a change of the voters: quorum, registered controllers, finalized features."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kctl.base.address import Address
from kctl.base.deadline import Deadline
from kctl.errors import (
    ConnectionFailed,
    ConnectionTimedOut,
    KctlError,
    NotSupported,
    OperationFailed,
    Reason,
    Refused,
)
from kctl.features.facts import read_levels
from kctl.features.levels import KRAFT_VERSION, METADATA_VERSION
from kctl.protocol.active_controller import describe_quorum
from kctl.protocol.codes import ApiKey
from kctl.protocol.quorum import NO_CONTROLLER_HINT, Quorum, read_controllers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kctl.model import Broker
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.dialer import Dialer

_UNREGISTRATION_LEVEL = 33  # metadata.version 4.4-IV2 (KIP-1312)
_ASK_S = 5.0
_QUORUM_S = 8.0
_POLL_S = 0.5
_WATCH_S = 3.0


class NoLeader(Refused):
    """The metadata quorum has no leader."""


@dataclass(frozen=True, slots=True)
class QuorumFacts:
    """The quorum and its controllers.

    listener: name of the voters' controller listener. controllers: addresses of all registered controllers on that
    listener, whether they run or not; None if no voter responded, with the reason in controllers_problem.
    kraft_version: the finalized level of the feature: 0 for static voters, 1 for dynamic ones; None: unknown. fetching:
    the leader, and the voters that fetched while kctl watched. can_unregister: the cluster has the request
    UnregisterController, and a metadata.version that allows it.
    """

    cluster_id: str
    quorum: Quorum
    listener: str | None
    controllers: Mapping[int, Address] | None
    kraft_version: int | None
    fetching: frozenset[int] = frozenset()
    can_unregister: bool = False
    controllers_problem: str | None = field(default=None, compare=False)


def read_facts(client: ClusterClient, *, watch: bool = False) -> QuorumFacts:
    """Read the facts. watch: watch for up to three seconds which voters fetch; required for a change.

    Raises NotSupported with ZooKeeper, NoLeader, subclasses of ConnectionFailed.
    """
    quorum = _quorum(client)
    fetching: frozenset[int] = frozenset()
    if watch:
        quorum, fetching = _watch(client, quorum)
    listener = quorum.nodes[0].listener if quorum.nodes else None
    voters = [Address(node.host, node.port) for node in quorum.nodes if node.listener == listener]
    controllers, problem = _controllers(client, voters)
    levels = _levels(client)
    can_unregister = (
        client.api_version(ApiKey.UNREGISTER_CONTROLLER) is not None
        and (levels or {}).get(METADATA_VERSION, 0) >= _UNREGISTRATION_LEVEL
    )
    return QuorumFacts(
        client.target.cluster_id or "",
        quorum,
        listener,
        controllers,
        None if levels is None else levels.get(KRAFT_VERSION, 0),
        fetching,
        can_unregister,
        problem,
    )


def _quorum(client: ClusterClient) -> Quorum:
    """Return the quorum. Waits a few seconds for the end of an election.

    Raises NoLeader, and ConnectionTimedOut if the brokers do not even describe their own settings.
    """
    deadline = Deadline(_QUORUM_S)
    problem: str | None = None
    while True:
        cause: KctlError | None = None
        try:
            with client.ending_by(deadline):
                quorum = describe_quorum(client)
        except (ConnectionFailed, OperationFailed) as exc:
            # Brokers forward the request, and wait for a leader. A controller may still name a leader that died.
            if not (client.target.controllers or isinstance(exc, (ConnectionTimedOut, OperationFailed))):
                raise
            cause = exc
        else:
            if quorum is None:
                raise NotSupported("the cluster uses ZooKeeper, which has no metadata quorum")
            if quorum.leader_id is not None:
                return quorum
            problem = quorum.no_controller
        if deadline.expired:
            if problem is None and isinstance(cause, ConnectionTimedOut) and not client.target.controllers:
                raise cause
            raise NoLeader(
                problem or "the metadata quorum has no leader", hint=NO_CONTROLLER_HINT, reason=Reason.NOT_READY
            ) from cause
        time.sleep(_POLL_S)


def _watch(client: ClusterClient, first: Quorum) -> tuple[Quorum, frozenset[int]]:
    """Return a newer read of the quorum, and the voters that fetched since the first one.

    A voter that died a moment ago has a recent fetch, but makes no new one; a live voter fetches twice a second.
    """
    deadline = Deadline(_WATCH_S)
    before = {voter.id: voter.last_fetch_timestamp_ms or 0 for voter in first.voters}
    while True:
        time.sleep(_POLL_S)
        quorum = _quorum(client)
        fetching = frozenset(
            voter.id
            for voter in quorum.voters
            if voter.id == quorum.leader_id or (voter.last_fetch_timestamp_ms or 0) > before.get(voter.id, 0)
        )
        if deadline.expired or fetching.issuperset(before):
            return quorum, fetching


def _levels(client: ClusterClient) -> Mapping[str, int] | None:
    """Return the finalized level of each feature; None if no node responds."""
    try:
        return read_levels(client)
    except KctlError:
        return None


def _controllers(client: ClusterClient, voters: list[Address]) -> tuple[dict[int, Address] | None, str | None]:
    """Return the registered controllers, from the first voter that responds (KIP-919), or why none did."""
    from kctl.protocol.dialer import Dialer

    if client.target.controllers:
        return _addresses(client.metadata(()).brokers), None
    dialer = Dialer(client.target.security, controllers=True)
    problem = "the cluster does not report the addresses of the voters (requires Kafka 3.9)"
    for voter in voters:
        try:
            return _describe(voter, dialer), None
        except KctlError as exc:
            problem = exc.message
    return None, problem


def _describe(server: Address, dialer: Dialer) -> dict[int, Address]:
    from kctl.protocol.connection import Connection

    deadline = Deadline(_ASK_S)
    connection = Connection(server, dialer)
    try:
        connection.open(deadline)
        return _addresses(read_controllers(connection, deadline).brokers)
    finally:
        connection.close()


def _addresses(nodes: Mapping[int, Broker]) -> dict[int, Address]:
    return {node.id: Address(node.host, node.port) for node in nodes.values()}
