"""Which controller is active: from the metadata quorum with KRaft, from Metadata with ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kctl.errors import ConnectionFailed, ConnectionTimedOut, KctlError, OperationFailed
from kctl.protocol.codes import ApiKey
from kctl.protocol.quorum import Quorum, quorum_in, quorum_request

if TYPE_CHECKING:
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient

_FORWARD_S = 2.5  # brokers forward the request to the active controller, which responds in milliseconds


class ActiveController(NamedTuple):
    """The active controller. id: None if unknown. missing: why there is none. unread: why it could not be read."""

    id: int | None
    missing: str | None = None
    unread: str | None = None


def describe_quorum(client: ClusterClient) -> Quorum | None:
    """Return the quorum; None with ZooKeeper. Without an active controller, leader_id is None.

    Raises NotAuthorized, subclasses of ConnectionFailed.
    """
    if client.api_version(ApiKey.DESCRIBE_QUORUM) is None:
        return None
    try:
        return quorum_in(client.send_to_quorum(quorum_request(), timeout_s=min(client.timeout_s, _FORWARD_S)))
    except (ConnectionTimedOut, OperationFailed) as exc:
        if not (isinstance(exc, ConnectionTimedOut) or client.target.controllers):  # controllers name no leader then
            raise
        from kctl.protocol.controllers import quorum_without_broker

        return quorum_without_broker(client, exc)


def controller_of(client: ClusterClient, state: ClusterState) -> ActiveController:
    """Return the controller, or why there is none or it is unknown. Raises subclasses of ConnectionFailed.

    With KRaft, Metadata names a random broker as the controller, so the quorum is queried instead.
    """
    try:
        quorum = describe_quorum(client)
    except ConnectionFailed:
        raise
    except KctlError as exc:
        return ActiveController(None, unread=f"the controller is unknown: {exc.message}")
    if quorum is not None:
        return ActiveController(quorum.leader_id, missing=quorum.no_controller)
    missing = "the cluster has no controller" if state.controller_id is None else None
    return ActiveController(state.controller_id, missing=missing)
