"""Carry out a change of the voters, and read the voters back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.errors import ConnectionFailed, KctlError, OperationFailed
from kctl.protocol.quorum import describe_quorum
from kctl.quorum.messages import voter_requests
from kctl.quorum.plan import VoterAction, VoterChange

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.2


def carry_out(client: ClusterClient, change: VoterChange, *, timeout_s: float) -> None:
    """Send the change, and wait until the leader reports the planned voters.

    Raises OperationFailed if the voters differ at the end, or the error of the quorum.
    """
    deadline = Deadline(timeout_s)
    lost: KctlError | None = None
    try:
        _send(client, change, timeout_s)
    except ConnectionFailed as exc:  # a leader that removes itself resigns; the voters show whether it was applied
        lost = exc
    while (voters := _voters(client)) != set(change.voters_after):
        if deadline.expired:
            state = "unknown" if voters is None else ", ".join(map(str, sorted(voters)))
            cause = f": {lost.message}" if lost is not None else ""
            raise OperationFailed(
                f"outcome unknown{cause}; the voters are {state}",
                hint="check the voters with `kctl quorum status`, then run the command again",
            )
        time.sleep(_POLL_S)


def _send(client: ClusterClient, change: VoterChange, timeout_s: float) -> None:
    from kctl.protocol.client import error_for

    add, remove = voter_requests()
    directory = _uuid(change.directory_id)
    common = {"cluster_id": client.target.cluster_id, "voter_id": change.node_id, "voter_directory_id": directory}
    if change.action is VoterAction.ADD:
        assert change.address is not None
        listener = add.Listener(name=change.listener, host=change.address.host, port=change.address.port)
        request = add(**common, timeout_ms=round(timeout_s * 1000), listeners=[listener], ack_when_committed=True)
    else:
        request = remove(**common)
    answer = client.send(request)
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message, subject=f"controller {change.node_id}")


def _uuid(text: str | None) -> object:
    """Return a Kafka id (base64url) as the UUID that the messages hold; the zero id if unknown."""
    import base64
    import uuid

    return uuid.UUID(int=0) if text is None else uuid.UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))


def _voters(client: ClusterClient) -> set[int] | None:
    try:
        quorum = describe_quorum(client)
    except KctlError:
        return None
    return None if quorum is None or quorum.leader_id is None else {voter.id for voter in quorum.voters}
