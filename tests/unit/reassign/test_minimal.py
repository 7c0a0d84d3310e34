"""Plans of small clusters against an exact oracle: as even, and with as few copies and leader changes."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kctl.errors import Refused
from kctl.reassign.planner.cluster import PlanCluster
from kctl.reassign.planner.goals import BalanceGoal, Goals, resolve
from kctl.reassign.planner.plan import make_plan
from kctl.reassign.planner.rules import make_rules
from reassign_clusters import cluster_of, clusters
from reassign_oracle import fewest_copies, fewest_leader_changes, squares

EVEN = frozenset({BalanceGoal.REPLICAS})
EXAMPLES = settings(max_examples=150, derandomize=True)


@st.composite
def moving_goals(draw: st.DrawFn) -> tuple[PlanCluster, Goals]:
    cluster = draw(clusters())
    some = st.sets(st.integers(0, len(cluster.brokers) - 1), max_size=2).map(frozenset)
    removed = draw(some)
    return cluster, Goals(
        remove_brokers=removed,
        exclude_brokers=draw(some) - removed,
        replication_factor=draw(st.sampled_from([None, None, 1, 2, 3])),
        fix_racks=draw(st.booleans()) and cluster.brokers[0].rack is not None,
        balance=EVEN,
    )


# A rack whose room is held by brokers that receive nothing; racks whose levels are between the same whole numbers; and
# one whose total must be reached from below.
@example((cluster_of(["a", "a", "a", "b"], [[0]] * 12), Goals(exclude_brokers=frozenset({0, 1}), replication_factor=2)))
@example((cluster_of(["a", "a", "b", "b", "b"], [[0, 1]]), Goals(balance=EVEN)))
@example((cluster_of(["a", "b", "a", "b", "a", "a"], [*[[0, 1]] * 4, [0, 1, 2]]), Goals(balance=EVEN)))
@given(moving_goals())
@EXAMPLES
def test_copies_are_the_fewest_of_the_most_even_placements(case: tuple[PlanCluster, Goals]) -> None:
    cluster, goals = case
    try:
        plan = make_plan(cluster, goals)
    except Refused:
        return  # tests of goals say when
    roles = resolve(goals, cluster)
    rules = make_rules(cluster, goals, roles)
    wanted = [(set(row), goals.replication_factor or len(row)) for row in cluster.replicas]
    best = fewest_copies(wanted, roles.hosts, roles.leaving, rules.racks, rules.limit)
    rows = list(cluster.replicas)
    for change in plan.changes:
        rows[change.partition] = tuple(change.after)
    assert (squares((b for row in rows for b in row), roles.hosts), plan.moves) == best
    assert plan.lower_bound == plan.moves, "the optimum was met but not proven"
    assert plan.complete


@given(clusters(spare=0))
@EXAMPLES
def test_leader_changes_are_the_fewest_of_the_most_even(cluster: PlanCluster) -> None:
    plan = make_plan(cluster, Goals(leaders_only=True))
    firsts = [row[0] for row in cluster.replicas]
    hosts = range(len(cluster.brokers))
    after = dict(enumerate(firsts)) | {change.partition: change.after[0] for change in plan.changes}
    assert plan.moves == plan.bytes == 0
    assert (squares(after.values(), hosts), plan.leader_changes) == fewest_leader_changes(
        cluster.replicas, firsts, hosts
    )
    assert plan.leader_lower_bound == plan.leader_changes
