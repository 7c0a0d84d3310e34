"""Plans that change the voters of the metadata quorum, one voter at a time (KIP-853). Pure.

A voter is added only when it has caught up, and removed only if the remaining voters that have caught up are a majority
of the new set. A removed controller that still runs becomes an observer; with controller.quorum.auto.join.enable (Kafka
4.2) it joins again, so it is stopped first.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kctl.base.address import Address
from kctl.base.text import counted
from kctl.errors import NotFound, NotSupported, Reason, Refused
from kctl.health.brokers import silent_voters
from kctl.protocol.quorum import QuorumReplica
from kctl.quorum.facts import QuorumFacts

CAUGHT_UP_LAG = 1000  # records of the metadata log


class VoterAction(str, Enum):
    ADD = "add"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class VoterChange:
    """A planned change. changed: False if the node already is, or already is not, a voter.

    address: of an added voter. voters, voters_after: ids. warnings: what the operator should know first.
    """

    action: VoterAction
    node_id: int
    directory_id: str | None
    listener: str | None
    address: Address | None
    voters: tuple[int, ...]
    voters_after: tuple[int, ...]
    changed: bool
    warnings: tuple[str, ...] = ()


def plan_add(facts: QuorumFacts, node_id: int) -> VoterChange:
    """Plan to make an observer a voter. Raises NotFound, NotSupported (static voters), Refused."""
    _require_dynamic(facts)
    voters = tuple(voter.id for voter in facts.quorum.voters)
    observer = _replica(facts.quorum.observers, node_id)
    if node_id in voters:
        if observer is not None:
            raise Refused(
                f"controller {node_id} is a voter with another directory id: its metadata log was deleted",
                hint=f"remove the old voter first with `kctl quorum remove {node_id}`",
                reason=Reason.RUN_STATE,
            )
        return VoterChange(VoterAction.ADD, node_id, None, facts.listener, None, voters, voters, changed=False)
    if observer is None:
        raise NotFound(
            f"node {node_id} does not follow the metadata quorum",
            hint="format its log dirs with `kafka-storage.sh format --no-initial-controllers`, and start it",
        )
    if node_id not in facts.controllers:
        raise Refused(
            f"node {node_id} is not a controller: it has only the broker role",
            hint=f"registered controllers: {', '.join(map(str, sorted(facts.controllers))) or 'unknown'}",
            reason=Reason.WRONG_TYPE,
        )
    _require_caught_up(observer)
    after = (*voters, node_id)
    address = facts.controllers[node_id]
    return VoterChange(
        VoterAction.ADD, node_id, observer.directory_id, facts.listener, address, voters, after, True, _parity(after)
    )


def plan_remove(facts: QuorumFacts, node_id: int, *, while_running: bool = False) -> VoterChange:
    """Plan to remove a voter. while_running: also if it still runs. Raises NotSupported (static voters), Refused."""
    _require_dynamic(facts)
    voters = tuple(voter.id for voter in facts.quorum.voters)
    voter = _replica(facts.quorum.voters, node_id)
    if voter is None:
        return VoterChange(VoterAction.REMOVE, node_id, None, facts.listener, None, voters, voters, changed=False)
    after = tuple(each for each in voters if each != node_id)
    if not after:
        raise Refused(f"controller {node_id} is the only voter", reason=Reason.IMPOSSIBLE)
    silent = {each.id for each in silent_voters(facts.quorum)}
    live, majority = len(set(after) - silent), len(after) // 2 + 1
    if live < majority:
        raise Refused(
            f"only {live} of the remaining {counted(len(after), 'voter')} follow the leader; {majority} are needed",
            hint="start the other voters first; see `kctl controller`",
            reason=Reason.NOT_READY,
        )
    if node_id not in silent and not while_running:
        raise Refused(
            f"controller {node_id} is running: with controller.quorum.auto.join.enable it would join again",
            hint="stop it first, or set --while-running if that setting is false",
            reason=Reason.NOT_READY,
        )
    return VoterChange(
        VoterAction.REMOVE, node_id, voter.directory_id, facts.listener, None, voters, after, True, _parity(after)
    )


def _require_dynamic(facts: QuorumFacts) -> None:
    if facts.kraft_version is not None and facts.kraft_version < 1:
        raise NotSupported(
            "the quorum has static voters (kraft.version 0)",
            hint="raise kraft.version to 1 with `kafka-features.sh upgrade --feature kraft.version=1` (Kafka 3.9)",
        )


def _replica(replicas: tuple[QuorumReplica, ...], node_id: int) -> QuorumReplica | None:
    return next((each for each in replicas if each.id == node_id), None)


def _require_caught_up(observer: QuorumReplica) -> None:
    if observer.lag is None or observer.lag > CAUGHT_UP_LAG:
        behind = "an unknown number of" if observer.lag is None else f"{observer.lag:,}"
        raise Refused(
            f"controller {observer.id} is {behind} records behind in the metadata log",
            hint="wait until it has caught up; see `kctl controller`",
            reason=Reason.NOT_READY,
        )


def _parity(voters: tuple[int, ...]) -> tuple[str, ...]:
    if len(voters) % 2:
        return ()
    tolerated = (len(voters) - 1) // 2
    return (f"{len(voters)} voters tolerate the loss of {tolerated}, like {len(voters) - 1} voters",)
