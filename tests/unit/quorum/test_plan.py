"""Plans that change the voters, over quorums in every state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kctl.base.address import Address
from kctl.errors import NotFound, NotSupported, Refused
from kctl.protocol.quorum import Quorum, QuorumNode, QuorumReplica
from kctl.quorum.facts import QuorumFacts
from kctl.quorum.plan import VoterAction, plan_add, plan_remove

NOW_MS = 1_700_000_000_000


def replica(node: int, *, lag: int | None = 0, fetched_ms_ago: int = 100, directory: str = "") -> QuorumReplica:
    fetched = NOW_MS - fetched_ms_ago
    return QuorumReplica(node, directory or f"dir-{node}", 1000, lag, fetched, fetched)


def facts(
    voters: list[QuorumReplica], observers: list[QuorumReplica] | None = None, *, kraft_version: int | None = 1
) -> QuorumFacts:
    leader = replace(voters[0], last_caught_up_timestamp_ms=NOW_MS)
    nodes = tuple(QuorumNode(voter.id, "CONTROLLER", "host", 9000 + voter.id) for voter in voters)
    quorum = Quorum(leader.id, 7, 1000, (leader, *voters[1:]), tuple(observers or ()), nodes)
    controllers = {n: Address("host", 9000 + n) for n in (*(v.id for v in voters), 104)}
    return QuorumFacts("c", quorum, "CONTROLLER", controllers, kraft_version)


THREE = [replica(101), replica(102), replica(103)]


def test_an_observer_becomes_a_voter() -> None:
    change = plan_add(facts(THREE, [replica(1), replica(104, lag=3)]), 104)
    assert (change.action, change.changed, change.directory_id) == (VoterAction.ADD, True, "dir-104")
    assert (change.voters, change.voters_after) == ((101, 102, 103), (101, 102, 103, 104))
    assert (change.listener, change.address) == ("CONTROLLER", Address("host", 9104))
    assert change.warnings == ("4 voters tolerate the loss of 1, like 3 voters",)


def test_a_voter_is_not_added_again() -> None:
    change = plan_add(facts(THREE), 102)
    assert (change.changed, change.voters) == (False, change.voters_after)


@pytest.mark.parametrize(
    ("observers", "node", "error", "message"),
    [
        ([], 104, NotFound, "node 104 does not follow"),
        ([replica(1)], 1, Refused, "only the broker role"),
        ([replica(104, lag=1001)], 104, Refused, "1,001 records behind"),
        ([replica(104, lag=None)], 104, Refused, "an unknown number of records behind"),
        ([replica(102, directory="new")], 102, Refused, "another directory id"),
    ],
)
def test_what_cannot_be_added(observers: list[QuorumReplica], node: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        plan_add(facts(THREE, observers), node)


def test_a_stopped_voter_is_removed() -> None:
    change = plan_remove(facts([*THREE[:2], replica(103, fetched_ms_ago=60_000)]), 103)
    assert (change.changed, change.voters_after, change.directory_id) == (True, (101, 102), "dir-103")


def test_a_running_voter_is_removed_only_on_request() -> None:
    with pytest.raises(Refused, match="would join again"):
        plan_remove(facts(THREE), 103)
    assert plan_remove(facts(THREE), 103, while_running=True).changed


def test_a_node_that_is_no_voter_is_already_removed() -> None:
    assert not plan_remove(facts(THREE, [replica(104)]), 104).changed


@pytest.mark.parametrize(
    ("voters", "node", "message"),
    [
        ([replica(101)], 101, "the only voter"),
        ([replica(101), replica(102, fetched_ms_ago=60_000), replica(103)], 103, "only 1 of the remaining 2 voters"),
        ([*THREE, replica(104, fetched_ms_ago=60_000), replica(105, fetched_ms_ago=60_000)], 101, "only 2 of"),
    ],
)
def test_what_cannot_be_removed(voters: list[QuorumReplica], node: int, message: str) -> None:
    with pytest.raises(Refused, match=message):
        plan_remove(facts(voters), node, while_running=True)


def test_static_voters_cannot_be_changed() -> None:
    for plan in (plan_add, plan_remove):
        with pytest.raises(NotSupported, match="static voters"):
            plan(facts(THREE, kraft_version=0), 103)
    assert not plan_add(facts(THREE, kraft_version=None), 103).changed  # unknown: the brokers decide
