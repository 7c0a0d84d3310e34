"""Plans: the known cases, the rules that every plan keeps, and the file that Kafka's own tool takes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.cluster.log_dirs import LogDir, LogDirReplica
from kctl.errors import Refused
from kctl.reassign.plan_file.document import document, text_of
from kctl.reassign.planner.cluster import PlanCluster
from kctl.reassign.planner.execution import Execution
from kctl.reassign.planner.goals import BalanceGoal, Goals, resolve
from kctl.reassign.planner.plan import Plan, make_plan
from kctl.reassign.planner.rules import make_rules
from reassign_clusters import cluster_of, clusters, striped

EVEN = frozenset({BalanceGoal.REPLICAS})


def placed(plan: Plan) -> list[list[int]]:
    """Broker ids of all partitions after the plan."""
    rows = [plan.cluster.ids(row) for row in plan.cluster.replicas]
    for change in plan.changes:
        assert rows[change.partition] == change.before
        rows[change.partition] = change.after
    return rows


def spread(plan: Plan, counted: str, brokers: set[int] | None = None) -> int:
    counts: list[int] = [getattr(load, counted) for load in plan.after if brokers is None or load.broker in brokers]
    return max(counts) - min(counts)


# --- the known cases ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "goals",
    [
        Goals(balance=EVEN),
        Goals(balance=frozenset({BalanceGoal.REPLICAS, BalanceGoal.LEADERS, BalanceGoal.BYTES})),
        Goals(leaders_only=True),
        Goals(fix_racks=True),
        Goals(replication_factor=3),
        Goals(brokers=frozenset(range(20))),
    ],
)
def test_nothing_to_do_is_an_empty_plan(goals: Goals) -> None:
    plan = make_plan(striped(20, 400, 3, 5), goals)
    assert plan.changes == []
    assert (plan.moves, plan.lower_bound, plan.leader_changes, plan.leader_lower_bound, plan.bytes) == (0, 0, 0, 0, 0)
    assert plan.complete
    assert plan.before == plan.after
    assert document(plan)["partitions"] == []


def test_decommission_moves_only_what_the_broker_holds() -> None:
    cluster = striped(20, 2000, 3, 5)
    plan = make_plan(cluster, Goals(remove_brokers=frozenset({7})))
    assert plan.moves == plan.lower_bound == 300  # 2000 × 3 ÷ 20: none more than it holds
    assert plan.bytes == plan.bytes_lower_bound == 300_000
    assert all(7 in change.before and len(set(change.after) - set(change.before)) == 1 for change in plan.changes)
    assert plan.after[7].replicas == plan.after[7].leaders == 0
    assert spread(plan, "replicas", set(range(20)) - {7}) == 1
    assert plan.leader_changes == plan.leader_lower_bound == 100


def test_new_brokers_get_their_share_and_no_more_moves() -> None:
    plan = make_plan(striped(20, 1500, 3, 5, empty=5), Goals(add_brokers=frozenset(range(20, 25))))
    assert plan.moves == plan.lower_bound == 900  # 5 brokers × 4500 ÷ 25
    assert spread(plan, "replicas") == 0


def test_replication_factor_up_and_down() -> None:
    up = make_plan(striped(20, 1000, 2, 5), Goals(replication_factor=3))
    assert up.moves == up.lower_bound == 1000
    assert all(change.after[:2] == change.before for change in up.changes)
    assert spread(up, "replicas") == 0
    down = make_plan(striped(20, 1000, 3, 5), Goals(replication_factor=2))
    assert down.moves == down.lower_bound == down.bytes == 0
    assert {len(row) for row in placed(down)} == {2}
    assert spread(down, "replicas") == 0


def test_uneven_racks_are_filled_as_far_as_they_can() -> None:
    """2, 4, 6 and 8 brokers, one replica of three in each rack: the largest rack takes one of each partition."""
    racks = [f"r{rack}" for rack, size in enumerate((2, 4, 6, 8)) for _ in range(size)]
    in_rack = {rack: [b for b in range(20) if racks[b] == f"r{rack}"] for rack in range(4)}
    rows = [[in_rack[(p + j) % 4][p % len(in_rack[(p + j) % 4])] for j in range(3)] for p in range(240)]
    plan = make_plan(cluster_of(racks, rows), Goals(balance=EVEN))
    counts = [load.replicas for load in plan.after]
    assert counts == [40] * 12 + [30] * 8  # 240 over the 8, and 480 over the 12
    assert plan.moves == plan.lower_bound
    assert all(len({racks[b] for b in row}) == 3 for row in placed(plan))


def test_racks_are_fixed_with_one_copy_each() -> None:
    cluster = cluster_of(["a", "a", "b", "b", "c", "c"], [[0, 1, 2], [2, 3, 4], [4, 0, 2], [5, 4, 1]])
    plan = make_plan(cluster, Goals(fix_racks=True))
    assert plan.moves == plan.lower_bound == 3
    assert all(len({cluster.brokers[b].rack for b in row}) == 3 for row in placed(plan))
    assert not [change for change in plan.changes if change.partition == 2]


def test_racks_that_were_broken_stay_so_unless_asked() -> None:
    cluster = cluster_of(["a", "a", "b", "b"], [[0, 1], [2, 3]])
    assert make_plan(cluster, Goals(balance=EVEN)).changes == []


def test_different_replication_factors_stay_different() -> None:
    cluster = cluster_of(["a", "b", "c", "d"], [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]])
    plan = make_plan(cluster, Goals(remove_brokers=frozenset(), balance=EVEN))
    assert [len(row) for row in placed(plan)] == [1, 2, 3, 4]


def test_a_dead_broker_receives_nothing_and_gives_first() -> None:
    cluster = cluster_of(["a"] * 5, [[0, 1, 2], [1, 2, 4], [2, 4, 0]], dead=[4])
    plan = make_plan(cluster, Goals(replication_factor=2))
    assert not any(4 in row for row in placed(plan))
    removed = make_plan(cluster, Goals(remove_brokers=frozenset({4})))
    assert removed.moves == removed.lower_bound == 2
    assert removed.after[4].replicas == 0


def test_disks_take_no_more_than_is_free() -> None:
    cluster = cluster_of([None] * 4, [[0, 1]] * 6, sizes=[100] * 6, usable={2: 250, 3: 150})
    plan = make_plan(cluster, Goals(balance=EVEN))
    assert plan.after[2].bytes <= 250
    assert plan.after[3].bytes <= 150
    assert not plan.complete
    assert "disk" in plan.unmet[0]
    with pytest.raises(Refused, match="6 partitions with a replica that fits on no broker"):
        make_plan(cluster_of([None] * 3, [[0, 1]] * 6, usable={2: 0}), Goals(remove_brokers=frozenset({1})))


@pytest.mark.parametrize(("max_moves", "max_bytes", "moves"), [(17, None, 17), (None, 5_500, 5), (0, None, 0)])
def test_limits_cut_the_plan_and_say_so(max_moves: int | None, max_bytes: int | None, moves: int) -> None:
    goals = Goals(remove_brokers=frozenset({7}), max_moves=max_moves, max_bytes=max_bytes)
    plan = make_plan(striped(20, 2000, 3, 5), goals)
    assert plan.moves == plan.lower_bound == moves
    assert plan.unmet == [f"{300 - moves} moves are left for another plan (--max-moves or --max-bytes)"]


def test_bytes_are_balanced_within_the_tolerance() -> None:
    rows = [[b, (b + 1) % 6] for b in range(6) for _ in range(20)]
    cluster = cluster_of([None] * 6, rows, sizes=[10 * (1 + b // 2) + p for b in range(6) for p in range(20)])
    alone = make_plan(cluster, Goals(balance=frozenset({BalanceGoal.BYTES}), tolerance=0.05))
    both = make_plan(cluster, Goals(balance=frozenset({BalanceGoal.BYTES, BalanceGoal.REPLICAS}), tolerance=0.05))
    for plan in (alone, both):
        counts = [load.bytes for load in plan.after]
        mean = sum(counts) / 6
        assert plan.complete
        assert all(0.95 * mean - 1 <= count <= 1.05 * mean + 1 for count in counts)
        assert 0 < plan.bytes_lower_bound <= plan.bytes
        assert 0 < plan.lower_bound <= plan.moves
    assert alone.bytes <= 2 * alone.bytes_lower_bound
    assert spread(both, "replicas") <= 4  # 40 ± 5 %


# --- what every plan keeps ------------------------------------------------------------------------------------------


@st.composite
def any_goals(draw: st.DrawFn) -> tuple[PlanCluster, Goals]:
    cluster = draw(clusters())
    some = st.sets(st.integers(0, len(cluster.brokers) - 1), max_size=2).map(frozenset)
    removed, excluded = draw(some), draw(some)
    return cluster, Goals(
        remove_brokers=removed,
        exclude_brokers=excluded - removed,
        replication_factor=draw(st.sampled_from([None, 1, 2, 3])),
        fix_racks=draw(st.booleans()) and cluster.brokers[0].rack is not None,
        balance=draw(st.sets(st.sampled_from(BalanceGoal), min_size=1).map(frozenset)),
        tolerance=draw(st.sampled_from([0.0, 0.1, 0.3])),
        max_moves=draw(st.sampled_from([None, 0, 3])),
        max_bytes=draw(st.sampled_from([None, 40])),
    )


@given(any_goals())
@settings(max_examples=200, derandomize=True)
def test_every_plan_keeps_the_rules(case: tuple[PlanCluster, Goals]) -> None:
    cluster, goals = case
    try:
        plan = make_plan(cluster, goals)
    except Refused:
        return
    rules = make_rules(cluster, goals, resolve(goals, cluster))
    for p, (old, new) in enumerate(zip(cluster.replicas, placed(plan), strict=True)):
        assert len(new) == len(set(new))
        gained = set(new) - set(old)
        assert not gained & (goals.remove_brokers | goals.exclude_brokers)
        if gained and goals.moves_data:
            assert len(new) == (goals.replication_factor or len(old))
            for rack in {rules.racks[b] for b in gained}:
                assert sum(rules.racks[b] == rack for b in new) <= rules.limit(p, rack)
        if plan.complete and goals.moves_data:
            assert not set(new) & goals.remove_brokers
    assert plan.lower_bound <= plan.moves <= (goals.max_moves if goals.max_moves is not None else plan.moves)
    assert plan.bytes <= (goals.max_bytes if goals.max_bytes is not None else plan.bytes)
    assert plan.leader_lower_bound <= plan.leader_changes
    assert plan.bytes_lower_bound <= plan.bytes
    assert document(make_plan(cluster, goals)) == document(plan), "the same input gave another plan"


@given(clusters())
@settings(max_examples=60, derandomize=True)
def test_a_plan_done_leaves_nothing_to_do(cluster: PlanCluster) -> None:
    goals = Goals(balance=frozenset({BalanceGoal.REPLICAS, BalanceGoal.LEADERS}))
    done = cluster_of([broker.rack for broker in cluster.brokers], placed(make_plan(cluster, goals)))
    assert make_plan(done, goals).moves == 0


# --- the file -------------------------------------------------------------------------------------------------------


def test_the_document_is_kafkas_reassignment_json_with_more_beside() -> None:
    plan = make_plan(cluster_of(["a", "b", "c"], [[0, 1], [1, 2]]), Goals(remove_brokers=frozenset({0})))
    found = json.loads(json.dumps(document(plan)))
    assert found["version"] == 1
    assert found["partitions"] == [{"topic": "t", "partition": 0, "replicas": [2, 1], "log_dirs": ["any", "any"]}]
    assert found["rollback"]["partitions"] == [{"topic": "t", "partition": 0, "replicas": [0, 1]}]
    assert found["current"]["partitions"] == [{"topic": "t", "partition": 0, "replicas": [0, 1], "size_bytes": 100}]
    assert {key: found[key] for key in ("moves", "lower_bound", "leader_changes", "leader_lower_bound", "bytes")} == {
        "moves": 1, "lower_bound": 1, "leader_changes": 1, "leader_lower_bound": 1, "bytes": 100,
    }  # fmt: skip
    assert found["before"][0] == {
        "broker": 0, "rack": "a", "alive": True, "replicas": 1, "leaders": 1, "bytes": 100,
    }  # fmt: skip
    assert found["after"][2]["replicas"] == 2
    assert found["racks_after"][0] == {"rack": "a", "replicas": 0, "leaders": 0, "bytes": 0}


def test_the_text_of_a_plan_is_its_document() -> None:
    cluster = cluster_of(["a", "b", "c"], [[0, 1], [1, 2], [0, 2]], sizes=[5, -1, 0])
    for goals in (Goals(remove_brokers=frozenset({0})), Goals(leaders_only=True), Goals(replication_factor=3)):
        found = document(make_plan(cluster, goals), Execution([[0]], 5, 7, {"topic": ["\x1b"]}))
        assert json.loads(text_of(found)) == found
        assert text_of(found).isascii()
    dirs = {0: [LogDir(path, None, None, [LogDirReplica("t", p, 9, 0, False) for p in rows], None)
                for path, rows in (("/a\u00e9", [0, 2]), ("/b", []))]}  # fmt: skip
    found = document(make_plan(cluster, Goals(log_dirs=True), dirs))
    assert found["log_dir_moves"] == 1
    assert json.loads(text_of(found)) == found


def test_bytes_come_nearer_where_racks_keep_them_from_being_even() -> None:
    """The fullest broker is alone in its rack and can give nothing: the others still can."""
    cluster = cluster_of(["a", "a", "b"], [[0, 2]] * 10)
    plan = make_plan(cluster, Goals(balance=frozenset({BalanceGoal.BYTES})))
    assert [load.bytes for load in plan.after] == [600, 400, 1000]
    assert plan.unmet == ["2 brokers stay outside 600 B to 734 B: 1, 2"]
