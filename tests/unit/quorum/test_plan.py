"""Plans that change the voters, over quorums in every state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kctl.base.address import Address
from kctl.errors import NotFound, NotSupported, Refused
from kctl.protocol.quorum import Quorum, QuorumNode, QuorumReplica
from kctl.quorum.facts import QuorumFacts
from kctl.quorum.own_controller import OwnController
from kctl.quorum.plan import VoterAction, VoterStep, plan_add, plan_remove

NOW_MS = 1_700_000_000_000
LONG_AGO = 60_000
STOP, REMOVE, UNREGISTER = VoterStep.STOP, VoterStep.REMOVE, VoterStep.UNREGISTER


def replica(node: int, *, lag: int | None = 0, fetched_ms_ago: int = 100, directory: str = "") -> QuorumReplica:
    fetched = NOW_MS - fetched_ms_ago
    return QuorumReplica(node, directory or f"dir-{node}", 1000, lag, fetched, fetched)


def facts(
    voters: list[QuorumReplica],
    observers: list[QuorumReplica] | None = None,
    *,
    kraft_version: int | None = 1,
    can_unregister: bool = True,
) -> QuorumFacts:
    leader = replace(voters[0], last_caught_up_timestamp_ms=NOW_MS)
    nodes = tuple(QuorumNode(voter.id, "CONTROLLER", "host", 9000 + voter.id) for voter in voters)
    quorum = Quorum(leader.id, 7, 1000, (leader, *voters[1:]), tuple(observers or ()), nodes)
    controllers = {n: Address("host", 9000 + n) for n in (*(v.id for v in voters), 104)}
    fetching = frozenset(v.id for v in voters if NOW_MS - (v.last_fetch_timestamp_ms or 0) < 1000)
    return QuorumFacts("c", quorum, "CONTROLLER", controllers, kraft_version, fetching, can_unregister)


def own(node: int, *running: int, dedicated: bool = True) -> OwnController:
    return OwnController("c", f"controller-{node}", dedicated, frozenset(running))


THREE = [replica(101), replica(102), replica(103)]
THREE_WITHOUT_103 = [*THREE[:2], replica(103, fetched_ms_ago=LONG_AGO)]


def test_an_observer_becomes_a_voter() -> None:
    change = plan_add(facts(THREE, [replica(1), replica(104, lag=3)]), 104)
    assert (change.action, change.steps, change.directory_id) == (VoterAction.ADD, (VoterStep.ADD,), "dir-104")
    assert (change.voters, change.voters_after) == ((101, 102, 103), (101, 102, 103, 104))
    assert (change.listener, change.address) == ("CONTROLLER", Address("host", 9104))
    assert change.warnings == ("4 voters tolerate the loss of 1, no more than 3 voters do",)


def test_a_voter_is_not_added_again() -> None:
    change = plan_add(facts(THREE), 102)
    assert (change.changed, change.voters) == (False, change.voters_after)


@pytest.mark.parametrize(
    ("observers", "node", "error", "message"),
    [
        ([], 104, NotFound, "controller 104 does not follow"),
        ([replica(104, fetched_ms_ago=LONG_AGO)], 104, NotFound, "controller 104 does not follow"),
        ([replica(1)], 1, Refused, "only the broker role"),
        ([replica(104, lag=1001)], 104, Refused, "1,001 records behind"),
        ([replica(104, lag=None)], 104, Refused, "an unknown number of records behind"),
        ([replica(102, directory="new")], 102, Refused, "directory id new, but voter 102 has dir-102"),
    ],
)
def test_what_cannot_be_added(observers: list[QuorumReplica], node: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        plan_add(facts(THREE, observers), node)


def test_a_controller_with_an_unknown_address_cannot_be_added() -> None:
    unknown = replace(facts(THREE, [replica(104)]), controllers=None, controllers_problem="host:1 requires TLS")
    with pytest.raises(Refused, match="host:1 requires TLS"):
        plan_add(unknown, 104)


def test_the_hint_names_the_command_that_starts_a_controller_of_kctl() -> None:
    with pytest.raises(NotFound) as caught:
        plan_add(facts(THREE), 104, own(104))
    assert caught.value.hint == "start it with `kctl cluster start c --node controller-104`"


# --- remove -------------------------------------------------------------------------------------------------------


def test_a_stopped_voter_is_removed_and_unregistered() -> None:
    change = plan_remove(facts(THREE_WITHOUT_103), 103)
    assert (change.steps, change.voters_after, change.directory_id) == ((REMOVE, UNREGISTER), (101, 102), "dir-103")


def test_a_cluster_before_4_4_keeps_the_registration() -> None:
    assert plan_remove(facts(THREE_WITHOUT_103, can_unregister=False), 103).steps == (REMOVE,)


def test_a_running_voter_is_removed_only_on_request() -> None:
    with pytest.raises(Refused, match="would join again"):
        plan_remove(facts(THREE), 103)
    assert plan_remove(facts(THREE), 103, while_running=True).steps == (REMOVE,)


def test_kctl_stops_a_voter_of_its_own_cluster() -> None:
    running = own(103, 101, 102, 103)
    assert plan_remove(facts(THREE), 103, running).steps == (STOP, REMOVE, UNREGISTER)
    assert plan_remove(facts(THREE), 103, running, while_running=True).steps == (REMOVE,)
    # Interrupted after the stop: the leader has not noticed it yet, but the process ended.
    assert plan_remove(facts(THREE), 103, own(103, 101, 102)).steps == (REMOVE, UNREGISTER)


def test_kctl_stops_no_broker_and_no_voter_that_the_majority_needs() -> None:
    with pytest.raises(Refused, match="also a broker"):
        plan_remove(facts(THREE), 103, own(103, 101, 102, 103, dedicated=False))
    with pytest.raises(Refused, match="only 1 of 2 voters would follow the leader; a majority is 2"):
        plan_remove(facts(THREE[:2]), 102, own(102, 101, 102))
    with pytest.raises(Refused, match="only 1 of the remaining 2 voters"):  # 102 was killed a moment ago
        plan_remove(facts(THREE), 103, own(103, 101, 103))


@pytest.mark.parametrize(
    ("observers", "node", "controller", "steps"),
    [
        ([], 105, None, ()),  # neither a voter nor registered
        ([], 104, None, (UNREGISTER,)),  # interrupted after the removal
        ([replica(104, fetched_ms_ago=LONG_AGO)], 104, None, (UNREGISTER,)),
        ([replica(104)], 104, None, ()),  # it runs, and would register again
        ([replica(104)], 104, own(104, 101, 104), (STOP, UNREGISTER)),
        ([replica(104)], 104, own(104, 101), (UNREGISTER,)),
        ([replica(104)], 104, own(104, 101, 104, dedicated=False), ()),
    ],
)
def test_a_node_that_is_no_voter_is_unregistered_when_it_is_down(
    observers: list[QuorumReplica], node: int, controller: OwnController | None, steps: tuple[VoterStep, ...]
) -> None:
    change = plan_remove(facts(THREE, observers), node, controller)
    assert (change.steps, change.voters_after) == (steps, change.voters)
    assert bool(change.warnings) == (not steps and node == 104)


def test_a_controller_with_a_new_log_keeps_its_registration_and_runs_on() -> None:
    """Its old directory id is a voter that never comes back; its new one follows as an observer."""
    new = replica(103, directory="new")
    for controller in (None, own(103, 101, 102, 103)):
        change = plan_remove(facts(THREE_WITHOUT_103, [new]), 103, controller)
        assert (change.steps, change.directory_id) == ((REMOVE,), "dir-103")


@pytest.mark.parametrize(
    ("voters", "node", "message"),
    [
        ([replica(101)], 101, "the only voter"),
        ([replica(101), replica(102, fetched_ms_ago=LONG_AGO), replica(103)], 103, "only 1 of the remaining 2 voters"),
        ([replica(101), replica(102, lag=1001), replica(103)], 103, "only 1 of the remaining 2 voters"),
        ([*THREE, replica(104, fetched_ms_ago=LONG_AGO), replica(105, fetched_ms_ago=LONG_AGO)], 101, "only 2 of"),
    ],
)
def test_what_cannot_be_removed(voters: list[QuorumReplica], node: int, message: str) -> None:
    with pytest.raises(Refused, match=message):
        plan_remove(facts(voters), node, while_running=True)


def test_a_voter_that_died_a_moment_ago_does_not_count() -> None:
    """Its last fetch is recent, but there is no new one: without the other voter, the quorum would be lost."""
    died = replace(facts(THREE), fetching=frozenset({101, 102}))
    with pytest.raises(Refused, match="only 1 of the remaining 2 voters"):
        plan_remove(died, 102, while_running=True)


def test_static_voters_cannot_be_changed() -> None:
    with pytest.raises(NotSupported, match="static voters"):
        plan_add(facts(THREE, kraft_version=0), 103)
    with pytest.raises(NotSupported, match="static voters"):
        plan_remove(facts(THREE, kraft_version=0), 103)
    assert not plan_add(facts(THREE, kraft_version=None), 103).changed  # unknown: the brokers decide
