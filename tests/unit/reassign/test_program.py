"""Plans against an integer program of the issue's rules, solved to the proven optimum: no plan is smaller."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kctl.errors import Refused
from kctl.reassign.planner.cluster import PlanCluster
from kctl.reassign.planner.goals import BalanceGoal, Goals
from kctl.reassign.planner.plan import make_plan
from reassign_clusters import cluster_of, clusters, striped
from reassign_program import Wish, smallest_plan

EVEN, LEADERS = frozenset({BalanceGoal.REPLICAS}), frozenset({BalanceGoal.LEADERS})


def wish_of(cluster: PlanCluster, goals: Goals) -> Wish:
    """What the options mean, by the words of the command's help. Broker i has id i."""
    everyone = frozenset(range(len(cluster.brokers)))
    dead = frozenset(b.id for b in cluster.brokers if not b.alive)
    hosts, emptied = everyone, goals.remove_brokers
    if goals.brokers is not None:
        hosts = goals.brokers
        emptied = everyone - hosts - goals.exclude_brokers
    elif goals.add_brokers:
        hosts = frozenset(b for row in cluster.replicas for b in row) | goals.add_brokers
    even = bool(
        goals.remove_brokers or goals.add_brokers or goals.brokers or goals.replication_factor or goals.balance & EVEN
    )
    return Wish(
        racks=[b.rack for b in cluster.brokers],
        rows=cluster.replicas,
        hosts=hosts - emptied - dead - goals.exclude_brokers,
        emptied=emptied,
        factor=goals.replication_factor,
        fix_racks=goals.fix_racks,
        tolerance=goals.tolerance if even else None,
        leader_tolerance=goals.tolerance if goals.even_leaders else None,
    )


def check(cluster: PlanCluster, goals: Goals, *, leaders_off: int = 0) -> None:
    """The plan is as small as the program's, says so, and is the same again.

    leaders_off: how many more leaders than the fewest may change where replicas move as well: of several placements
    with the fewest copies the planner does not always find the one that keeps the most leaders.
    """
    best = smallest_plan(wish_of(cluster, goals))
    if best is None:  # loads that racks keep from the mean, with a tolerance: of these the program knows nothing
        assert goals.tolerance
        return
    plan = make_plan(cluster, goals)
    assert plan.complete
    assert plan.moves == best.moves
    assert plan.lower_bound == best.moves, "the optimum was met but not proven"
    assert plan.leader_lower_bound <= best.leader_changes, "a plan needs fewer leader changes than the bound says"
    if goals.leaders_only:
        assert plan.leader_changes == plan.leader_lower_bound == best.leader_changes
    elif not goals.even_leaders:  # where they must be even, the program can find replicas that allow more evenness
        assert best.leader_changes <= plan.leader_changes <= best.leader_changes + leaders_off
    assert make_plan(cluster, goals).changes == plan.changes


@st.composite
def cases(draw: st.DrawFn) -> tuple[PlanCluster, Goals]:
    """One goal, or several that go together, for a small cluster in which the rules leave nothing to choose."""
    cluster = draw(clusters(spare=2))
    n = len(cluster.brokers)
    racked = cluster.brokers[0].rack is not None
    some = frozenset(draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=2)))
    most = max(map(len, cluster.replicas))
    goals: dict[str, object] = draw(
        st.sampled_from(
            [
                {"remove_brokers": some},
                {"remove_brokers": some, "balance": LEADERS},
                {"remove_brokers": some, "replication_factor": most},
                {"add_brokers": some},
                {"brokers": frozenset(range(n)) - some},
                {"replication_factor": most},
                {"replication_factor": 1, "fix_racks": racked},
                {"replication_factor": 2, "fix_racks": racked},
                {"balance": EVEN},
                {"balance": EVEN | LEADERS},
                {"balance": EVEN, "exclude_brokers": some},
                {"leaders_only": True},
                *([{"fix_racks": True}, {"fix_racks": True, "add_brokers": some}] if racked else []),
            ]
        )
    )
    if "replication_factor" not in goals and "exclude_brokers" not in goals and not goals.get("leaders_only"):
        goals["fix_racks"] = goals.get("fix_racks", False) or (racked and draw(st.booleans()))
        goals["tolerance"] = draw(st.sampled_from([0.0, 0.0, 0.1, 0.3]))
    if not racked and goals.get("replication_factor") in {1, 2}:
        goals["replication_factor"] = most
    return cluster, Goals(**goals)  # type: ignore[arg-type]


def refused(cluster: PlanCluster, goals: Goals) -> bool:
    """Goals that cannot be reached: tests of goals say when."""
    try:
        make_plan(cluster, goals)
    except Refused:
        return True
    return False


@given(cases())
@settings(max_examples=120, derandomize=True)
def test_no_plan_is_smaller(case: tuple[PlanCluster, Goals]) -> None:
    assume(not refused(*case))
    check(*case, leaders_off=4)


@pytest.mark.long
@given(cases())
@settings(max_examples=300, derandomize=True)
def test_no_plan_is_smaller_in_many_more_cases(case: tuple[PlanCluster, Goals]) -> None:
    assume(not refused(*case))
    check(*case, leaders_off=4)


def scattered(brokers: int, partitions: int, *, racks: int = 0, uneven: bool = False, seed: int = 1) -> PlanCluster:
    """Three replicas each, anywhere: racks broken, loads uneven. uneven: the first rack has half of the brokers."""
    draw = Random(seed)
    rack_of = [0 if uneven and b % 2 else b % racks if racks else None for b in range(brokers)]
    rows = [draw.sample(range(brokers), 3) for _ in range(partitions)]
    return cluster_of([None if rack is None else f"r{rack}" for rack in rack_of], rows)


Case = tuple[Callable[[], PlanCluster], Goals]
MIDDLE: dict[str, Case] = {
    "remove one of 24": (lambda: striped(24, 480, 3, 6), Goals(remove_brokers=frozenset({3}))),
    "remove three of 36": (lambda: striped(36, 360, 3, 6), Goals(remove_brokers=frozenset({0, 7, 20}))),
    "add three to 24": (lambda: striped(24, 240, 3, 6, empty=3), Goals(add_brokers=frozenset({24, 25, 26}))),
    "spread over 20 of 24": (lambda: striped(24, 240, 3, 6), Goals(brokers=frozenset(range(20)))),
    "factor 3 to 2": (lambda: striped(24, 240, 3, 6), Goals(replication_factor=2)),
    "leaders of 40": (lambda: scattered(40, 600), Goals(leaders_only=True)),
    "scattered, balanced": (lambda: scattered(24, 300, racks=4), Goals(balance=EVEN)),
    "scattered, within 20 %": (lambda: scattered(24, 300, racks=4), Goals(balance=EVEN, tolerance=0.2)),
    "scattered, racks fixed": (lambda: scattered(24, 300, racks=4, uneven=True), Goals(fix_racks=True)),
}
MIDDLE_LONG: dict[str, Case] = {
    "factor 3 to 4": (lambda: striped(24, 240, 3, 6), Goals(replication_factor=4)),
    "racks fixed and balanced": (lambda: scattered(16, 150, racks=4, uneven=True), Goals(fix_racks=True, balance=EVEN)),
    "factor 2, racks fixed": (
        lambda: scattered(16, 150, racks=4, uneven=True),
        Goals(replication_factor=2, fix_racks=True),
    ),
    "replicas and leaders": (lambda: scattered(24, 300, racks=6), Goals(balance=EVEN | LEADERS)),
    "two of 48 leave": (lambda: scattered(48, 500, racks=8), Goals(remove_brokers=frozenset({5, 6}), fix_racks=True)),
}


@pytest.mark.parametrize("name", MIDDLE)
def test_no_plan_of_some_dozen_brokers_is_smaller(name: str) -> None:
    make, goals = MIDDLE[name]
    check(make(), goals)


@pytest.mark.long
@pytest.mark.parametrize("name", MIDDLE_LONG)
def test_no_plan_of_some_dozen_brokers_is_smaller_where_the_proof_takes_long(name: str) -> None:
    make, goals = MIDDLE_LONG[name]
    check(make(), goals, leaders_off=3)
