"""Bounds hold for every plan; rack caps and targets by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.reassign.planner.bounds import copies_needed, copies_proven, leader_changes_proven
from kctl.reassign.planner.cluster import PlanCluster
from kctl.reassign.planner.goals import BalanceGoal, Goals, resolve
from kctl.reassign.planner.moves import plan_moves
from kctl.reassign.planner.rules import Rules, make_rules, rack_cap
from kctl.reassign.planner.targets import Targets, replica_targets
from reassign_clusters import cluster_of, clusters

EVEN = Goals(balance=frozenset({BalanceGoal.REPLICAS}))


def prepared(cluster: PlanCluster, goals: Goals = EVEN) -> tuple[Rules, Targets]:
    rules = make_rules(cluster, goals, resolve(goals, cluster))
    return rules, replica_targets(rules, goals.tolerance, even=goals.even_replicas)


@given(clusters(), st.lists(st.integers(-3, 3), min_size=8, max_size=8))
@settings(max_examples=150, derandomize=True)
def test_any_prices_give_a_bound(cluster: PlanCluster, prices: list[int]) -> None:
    rules, targets = prepared(cluster)
    proven = copies_proven(rules, targets, prices[: len(cluster.brokers)])
    simple = copies_needed(rules, targets)
    placement, bound = plan_moves(rules, targets, {})
    assert max(proven, simple) <= placement.copies == bound


@given(clusters(), st.lists(st.integers(-3, 3), min_size=8, max_size=8))
@settings(max_examples=50, derandomize=True)
def test_any_prices_give_a_bound_of_leader_changes(cluster: PlanCluster, prices: list[int]) -> None:
    """For the leaders as they are: no change reaches them, so that no bound may ask for one."""
    firsts = [row[0] for row in cluster.replicas]
    n = len(cluster.brokers)
    counts = [firsts.count(b) for b in range(n)]
    targets = Targets(counts, counts, list(range(n)), counts)
    assert leader_changes_proven(cluster.replicas, firsts, targets, prices[:n]) <= 0


def test_the_proof_is_needed_where_the_simple_bound_is_not_met() -> None:
    """Brokers 0 and 4 lack one each, 2 and 3 have one too much; 2's cannot leave rack b, where 1 has to give way."""
    rules, targets = prepared(cluster_of(["a", "b", "b", "a", "a"], [[2, 3], [2, 3], [1]]))
    assert copies_needed(rules, targets) == 2
    placement, bound = plan_moves(rules, targets, {})
    assert placement.copies == bound == 3


@pytest.mark.parametrize(
    ("factor", "sizes", "cap"),
    [
        (3, [2, 2, 2], 1),
        (3, [5, 5], 2),
        (3, [1, 5], 2),
        (4, [1, 5], 3),
        (2, [1] * 9, 1),
        (5, [2, 2, 2], 2),
        (3, [9], 3),
    ],
)
def test_rack_cap(factor: int, sizes: list[int], cap: int) -> None:
    assert rack_cap(factor, dict(enumerate(sizes))) == cap


def test_targets_fill_racks_to_their_cap() -> None:
    """12 partitions of 3 over racks of 1, 2 and 6 brokers: a replica in each, whatever the level were."""
    rows = [[p % 6 + 3, 1 + p % 2, 0] for p in range(12)]
    _, targets = prepared(cluster_of(["a", "b", "b", *["c"] * 6], rows))
    assert targets.least == targets.most == [12, 6, 6, 2, 2, 2, 2, 2, 2, 0]
    assert sorted(targets.total) == [12, 12, 12]


def test_targets_with_a_tolerance() -> None:
    rows = [[p % 2, 2 + p % 2] for p in range(50)]
    _, targets = prepared(cluster_of([None] * 5, rows), Goals(balance=EVEN.balance, tolerance=0.1))
    assert (set(targets.least[:5]), set(targets.most[:5])) == ({18}, {22})
    assert targets.total == [100]
