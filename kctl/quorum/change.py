"""Carry out a change of the voters step by step, and read each result back.

No journal is needed: the remaining steps follow from the state of the cluster, so the same command resumes the change.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.deploy.waiting import NoProgress, ProgressReporter
from kctl.errors import ConnectionFailed, KctlError, OperationFailed, OutcomeUnknown, Reason
from kctl.protocol.active_controller import describe_quorum
from kctl.protocol.codes import ErrorCode
from kctl.protocol.message_classes import request_class
from kctl.protocol.quorum import Quorum
from kctl.quorum.own_controller import stop_own
from kctl.quorum.plan import VoterChange, VoterStep

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.2
_READ_S = 5.0
# A new leader rejects changes until it has committed a record of its epoch; only one change can be in progress.
_RETRIABLE = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_CONTROLLER})
# The answer to a repetition if an earlier request, whose answer was lost, was applied.
_APPLIED = {VoterStep.ADD: ErrorCode.DUPLICATE_VOTER, VoterStep.REMOVE: ErrorCode.VOTER_NOT_FOUND}
_PAST = {VoterStep.ADD: "added", VoterStep.STOP: "stopped", VoterStep.REMOVE: "removed from the voters"}


def carry_out(
    client: ClusterClient, change: VoterChange, *, timeout_s: float, progress: ProgressReporter | None = None
) -> None:
    """Carry out the steps. timeout_s: for each step. Raises the error of the first step; OperationFailed later."""
    progress = progress or NoProgress()
    done: list[VoterStep] = []
    for step in change.steps:
        try:
            _carry_out_step(client, change, step, timeout_s, progress)
        except KctlError as exc:
            if not done:
                raise
            past = " and ".join(_PAST[each] for each in done)
            raise OperationFailed(
                f"controller {change.node_id} was {past}, but: {exc.message}",
                hint="run the same command again to resume",
                details=exc.details,
            ) from exc
        done.append(step)


def _carry_out_step(
    client: ClusterClient, change: VoterChange, step: VoterStep, timeout_s: float, progress: ProgressReporter
) -> None:
    deadline = Deadline(timeout_s)
    if step is VoterStep.STOP:
        assert change.own is not None
        progress.update(f"stopping {change.own.node}")
        stop_own(change.own, timeout_s=timeout_s, progress=progress)
        progress.update("waiting for the leader of the quorum")
        _await_leader(client, change.node_id, deadline)
    elif step is VoterStep.UNREGISTER:
        progress.update(f"unregistering controller {change.node_id}")
        _unregister(client, change, deadline)
    else:
        progress.update(f"waiting for the new voters: {', '.join(map(str, change.voters_after))}")
        _change_voters(client, change, step, deadline)


def _await_leader(client: ClusterClient, stopped: int, deadline: Deadline) -> None:
    while True:
        quorum = _read_quorum(client)
        if quorum is not None and quorum.leader_id not in {None, stopped}:
            return
        if deadline.expired:
            raise OperationFailed("the metadata quorum has no leader", hint="see `kctl quorum status`")
        time.sleep(_POLL_S)


def _change_voters(client: ClusterClient, change: VoterChange, step: VoterStep, deadline: Deadline) -> None:
    """Send the change, and wait until it is committed.

    A leader lists new voters as soon as they are in its log, so the list is no proof: a majority of them may be down,
    and another leader may drop the record. After a lost answer, the change is sent again. A leader that has committed
    it answers that the voter already is one, or is none (AddVoterHandler, RemoveVoterHandler).
    """
    problem = _send_voters(client, change, step, deadline)
    cause = problem
    while True:
        voters = _voters(client)
        if problem is None and voters == set(change.voters_after):
            return
        if deadline.expired:
            state = "unknown" if voters is None else ", ".join(map(str, sorted(voters)))
            pending = ", which may not be committed" if problem is not None and voters != set(change.voters) else ""
            raise _outcome_unknown(cause, f"the voters are {state}{pending}")
        time.sleep(_POLL_S)
        if problem is not None and voters in (set(change.voters), set(change.voters_after)):
            cause = problem
            problem = _send_voters(client, change, step, deadline, before=problem)


def _outcome_unknown(cause: KctlError | None, state: str) -> OperationFailed:
    return OperationFailed(
        f"outcome unknown{f': {cause.message}' if cause is not None else ''}; {state}",
        hint="check the voters with `kctl quorum status`, then run the same command again",
        reason=Reason.OUTCOME_UNKNOWN,
    )


def _send_voters(
    client: ClusterClient, change: VoterChange, step: VoterStep, deadline: Deadline, *, before: KctlError | None = None
) -> KctlError | None:
    """Send the change. Return why it may not have been applied; raise an error that a repetition does not fix.

    before: why an earlier request may not have been applied. If it was applied since, that is no error.
    """
    from kctl.protocol.client import error_for

    timeout_s = max(1.0, deadline.left_s)
    try:
        answer = client.send_to_quorum(_request(client, change, step, timeout_s), timeout_s=timeout_s)
    except (ConnectionFailed, OutcomeUnknown) as exc:  # a leader that removes itself resigns
        return exc
    if not answer.error_code or (before is not None and answer.error_code == _APPLIED[step]):
        return None
    error = error_for(answer.error_code, answer.error_message, subject=f"controller {change.node_id}")
    if answer.error_code in _RETRIABLE:
        return error
    if before is not None:  # the earlier request may still be applied
        raise _outcome_unknown(before, error.message)
    raise error


def _request(client: ClusterClient, change: VoterChange, step: VoterStep, timeout_s: float) -> object:
    common = {
        "cluster_id": client.target.cluster_id,
        "voter_id": change.node_id,
        "voter_directory_id": _uuid(change.directory_id),
    }
    if step is VoterStep.REMOVE:
        return request_class(__package__, "RemoveRaftVoter")(**common)
    assert change.address is not None
    add = request_class(__package__, "AddRaftVoter")
    listener = add.Listener(name=change.listener, host=change.address.host, port=change.address.port)
    return add(**common, timeout_ms=round(timeout_s * 1000), listeners=[listener], ack_when_committed=True)


def _unregister(client: ClusterClient, change: VoterChange, deadline: Deadline) -> None:
    """Remove the registration. A controller that is no longer registered is not an error."""
    from kctl.protocol.client import error_for

    while True:
        answer = client.send_to_quorum(request_class(__package__, "UnregisterController")(controller_id=change.node_id))
        code = answer.error_code
        if not code or code == ErrorCode.CONTROLLER_ID_NOT_REGISTERED:
            return
        if code not in _RETRIABLE or deadline.expired:
            raise error_for(code, answer.error_message, subject=f"controller {change.node_id}")
        time.sleep(_POLL_S)


def _uuid(text: str | None) -> object:
    """Return a Kafka id (base64url) as the UUID that the messages hold; the zero id if unknown."""
    import base64
    import uuid

    return uuid.UUID(int=0) if text is None else uuid.UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))


def _voters(client: ClusterClient) -> set[int] | None:
    quorum = _read_quorum(client)
    return None if quorum is None or quorum.leader_id is None else {voter.id for voter in quorum.voters}


def _read_quorum(client: ClusterClient) -> Quorum | None:
    """Return the quorum; None if it cannot be read now, e.g. during an election."""
    try:
        with client.ending_by(Deadline(_READ_S)):
            return describe_quorum(client)
    except KctlError:
        return None
