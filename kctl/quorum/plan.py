"""Plans that change the voters of the metadata quorum, one voter at a time (KIP-853). Pure.

A voter is added only when it has caught up, and removed only if the remaining voters that have caught up are a majority
of the new set. A removed controller that still runs becomes an observer, and with controller.quorum.auto.join.enable
(Kafka 4.2) it joins again. A registration limits the feature levels of the cluster even after the controller was shut
down, and a running controller registers again (KIP-1312). So the order is: stop, remove, unregister.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from kctl.base.address import Address
from kctl.base.text import counted
from kctl.errors import NotFound, NotSupported, Reason, Refused
from kctl.health.brokers import SILENT_VOTER_MS, silent_voters
from kctl.protocol.quorum import QuorumReplica, silent_replicas
from kctl.quorum.facts import QuorumFacts
from kctl.quorum.own_controller import OwnController

CAUGHT_UP_LAG = 1000  # records of the metadata log


class VoterAction(str, Enum):
    ADD = "add"
    REMOVE = "remove"


class VoterStep(str, Enum):
    """One step of a change."""

    ADD = "add"
    STOP = "stop"
    REMOVE = "remove"
    UNREGISTER = "unregister"


@dataclass(frozen=True, slots=True)
class VoterChange:
    """A planned change. steps: in order; none if the quorum is already as planned.

    address: of an added voter. voters, voters_after: ids. warnings: what the operator should know first. own: the
    node, if kctl set up its cluster.
    """

    action: VoterAction
    node_id: int
    directory_id: str | None
    listener: str | None
    address: Address | None
    voters: tuple[int, ...]
    voters_after: tuple[int, ...]
    steps: tuple[VoterStep, ...]
    warnings: tuple[str, ...] = ()
    own: OwnController | None = None

    @property
    def changed(self) -> bool:
        return bool(self.steps)


def plan_add(facts: QuorumFacts, node_id: int, own: OwnController | None = None) -> VoterChange:
    """Plan to make an observer a voter. Raises NotFound, NotSupported (static voters), Refused."""
    _require_dynamic(facts)
    voters = tuple(voter.id for voter in facts.quorum.voters)
    stopped = own is not None and node_id not in own.running
    observer = None if stopped else _live_observer(facts, node_id)
    if node_id in voters:
        if observer is not None and observer.directory_id != _voter_directory(facts, node_id):
            raise Refused(
                f"controller {node_id} runs with directory id {observer.directory_id}, but voter {node_id} has"
                f" {_voter_directory(facts, node_id)}: its metadata log was deleted",
                hint=f"remove the old voter with `kctl quorum remove {node_id}`, then add the controller",
                reason=Reason.RUN_STATE,
            )
        return VoterChange(VoterAction.ADD, node_id, None, facts.listener, None, voters, voters, ())
    if observer is None:
        raise NotFound(f"controller {node_id} does not follow the metadata quorum", hint=_start_hint(own))
    if facts.controllers is None:
        raise Refused(
            f"cannot read the addresses of the controllers: {facts.controllers_problem}",
            hint="connect to a controller with --bootstrap-controller HOST:PORT",
            reason=Reason.UNREADABLE,
        )
    if node_id not in facts.controllers:
        raise Refused(
            f"node {node_id} is not registered as a controller: it has only the broker role, or has just started",
            hint=f"registered controllers: {', '.join(map(str, sorted(facts.controllers)))}",
            reason=Reason.NOT_READY,
        )
    _require_caught_up(observer)
    after = tuple(sorted((*voters, node_id)))
    return VoterChange(
        VoterAction.ADD, node_id, observer.directory_id, facts.listener, facts.controllers[node_id], voters, after,
        (VoterStep.ADD,), _parity(after), own,
    )  # fmt: skip


def plan_remove(
    facts: QuorumFacts, node_id: int, own: OwnController | None = None, *, while_running: bool = False
) -> VoterChange:
    """Plan to remove a controller from the voters and, once it is down, its registration.

    own: the node, if kctl can stop it. while_running: remove it while it runs; it becomes an observer. Raises
    NotSupported (static voters), Refused.
    """
    _require_dynamic(facts)
    voters = tuple(voter.id for voter in facts.quorum.voters)
    voter = _replica(facts.quorum.voters, node_id)
    if voter is None:
        return _plan_unregister(facts, node_id, own, while_running=while_running)
    after = tuple(each for each in voters if each != node_id)
    if not after:
        raise Refused(f"controller {node_id} is the only voter", reason=Reason.IMPOSSIBLE)
    following = _following(facts, own) - {node_id}
    _require_majority(following, after)
    observer = _live_observer(facts, node_id)
    replaced = observer is not None and observer.directory_id != voter.directory_id  # its log was deleted
    running = not replaced and _voter_runs(facts, node_id, own)
    steps: tuple[VoterStep, ...] = (VoterStep.REMOVE,)
    if running and not while_running:
        _require_stoppable(node_id, own, following, voters)
        steps = (VoterStep.STOP, VoterStep.REMOVE)
    if not replaced and not while_running:
        steps = (*steps, *_unregister(facts))
    return VoterChange(
        VoterAction.REMOVE, node_id, voter.directory_id, facts.listener, None, voters, after, steps, _parity(after), own
    )


def _plan_unregister(
    facts: QuorumFacts, node_id: int, own: OwnController | None, *, while_running: bool
) -> VoterChange:
    """Plan the remaining steps for a controller that is not a voter, e.g. after an interrupted removal."""
    voters = tuple(voter.id for voter in facts.quorum.voters)
    running = node_id in own.running if own is not None else _live_observer(facts, node_id) is not None
    registered = facts.controllers is None or node_id in facts.controllers
    steps: tuple[VoterStep, ...] = ()
    warnings: tuple[str, ...] = ()
    if registered and not while_running:
        if not running:
            steps = _unregister(facts)
        elif own is not None and own.dedicated:
            steps = (VoterStep.STOP, *_unregister(facts))
        else:
            todo = "stop it, then run the command again to remove its registration"
            warnings = (f"node {node_id} is not a voter, but it runs: {todo}",)
    return VoterChange(VoterAction.REMOVE, node_id, None, facts.listener, None, voters, voters, steps, warnings, own)


def _unregister(facts: QuorumFacts) -> tuple[VoterStep, ...]:
    return (VoterStep.UNREGISTER,) if facts.can_unregister else ()


# --- conditions ---------------------------------------------------------------------------------------------------


def _require_dynamic(facts: QuorumFacts) -> None:
    if facts.kraft_version is not None and facts.kraft_version < 1:
        raise NotSupported(
            "the quorum has static voters (kraft.version 0)", hint="convert it first with `kctl quorum convert`"
        )


def _require_majority(following: Collection[int], after: Collection[int]) -> None:
    live, majority = len(set(after) & set(following)), len(after) // 2 + 1
    if live < majority:
        raise Refused(
            f"only {live} of the remaining {counted(len(after), 'voter')} follow{'s' if live == 1 else ''} the leader;"
            f" a majority is {majority}",
            hint="start the other voters first; see `kctl quorum status`",
            reason=Reason.NOT_READY,
        )


def _require_stoppable(
    node_id: int, own: OwnController | None, following: Collection[int], voters: Collection[int]
) -> None:
    """Raise Refused if kctl cannot stop the controller, or if the quorum would have no majority without it."""
    if own is None:
        raise Refused(
            f"controller {node_id} is running: with controller.quorum.auto.join.enable it would join again",
            hint=f"stop it and wait {SILENT_VOTER_MS // 1000} s, or set --while-running if that setting is false",
            reason=Reason.NOT_READY,
        )
    if not own.dedicated:
        raise Refused(
            f"{own.node} is also a broker, and kctl stops only dedicated controllers",
            hint="set --while-running: the node stays a broker, and follows the quorum as an observer",
            reason=Reason.NOT_READY,
        )
    if len(following) < len(voters) // 2 + 1:
        raise Refused(
            f"without controller {node_id}, only {len(following)} of {counted(len(voters), 'voter')} would follow the"
            f" leader; a majority is {len(voters) // 2 + 1}",
            hint="set --while-running to remove the controller first; then stop it",
            reason=Reason.NOT_READY,
        )


def _require_caught_up(observer: QuorumReplica) -> None:
    if observer.lag is None or observer.lag > CAUGHT_UP_LAG:
        behind = "an unknown number of" if observer.lag is None else f"{observer.lag:,}"
        raise Refused(
            f"controller {observer.id} is {behind} records behind in the metadata log",
            hint="wait until it has caught up; see `kctl quorum status`",
            reason=Reason.NOT_READY,
        )


# --- facts --------------------------------------------------------------------------------------------------------


def _replica(replicas: tuple[QuorumReplica, ...], node_id: int) -> QuorumReplica | None:
    return next((each for each in replicas if each.id == node_id), None)


def _live_observer(facts: QuorumFacts, node_id: int) -> QuorumReplica | None:
    """Return the observer with this id if it fetches. A leader lists observers for minutes after they have stopped."""
    observers = [each for each in facts.quorum.observers if each.id == node_id]
    silent = silent_replicas(facts.quorum, observers, limit_ms=SILENT_VOTER_MS)
    return next((each for each in observers if each not in silent), None)


def _voter_directory(facts: QuorumFacts, node_id: int) -> str | None:
    voter = _replica(facts.quorum.voters, node_id)
    return None if voter is None else voter.directory_id


def _following(facts: QuorumFacts, own: OwnController | None) -> set[int]:
    """Return the voters that have caught up; in a cluster that kctl set up, only those whose processes run."""
    close = {
        each.id
        for each in facts.quorum.voters
        if each.id == facts.quorum.leader_id or (each.lag is not None and each.lag <= CAUGHT_UP_LAG)
    }
    return close & facts.fetching if own is None else close & facts.fetching & own.running


def _voter_runs(facts: QuorumFacts, node_id: int, own: OwnController | None) -> bool:
    if own is not None:
        return node_id in own.running
    return node_id not in {each.id for each in silent_voters(facts.quorum)}


def _start_hint(own: OwnController | None) -> str:
    if own is not None:
        return f"start it with `kctl cluster start {own.cluster} --node {own.node}`"
    return "format its log dirs with `kafka-storage.sh format --no-initial-controllers`, and start it"


def _parity(voters: tuple[int, ...]) -> tuple[str, ...]:
    if len(voters) % 2:
        return ()
    tolerated = (len(voters) - 1) // 2
    fewer = len(voters) - 1
    verb = "does" if fewer == 1 else "do"
    return (f"{len(voters)} voters tolerate the loss of {tolerated}, no more than {counted(fewer, 'voter')} {verb}",)
