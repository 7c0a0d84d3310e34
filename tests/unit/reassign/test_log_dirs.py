"""Moves between a broker's own log dirs: even, few, proven, and never more than a disk has room for."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.cluster.log_dirs import LogDir, LogDirReplica
from kctl.errors import InvalidFile, Refused, UsageError
from kctl.reassign.plan_file.document import document
from kctl.reassign.planner.disks import BrokerDisks, Disk, disks_of, log_dirs_of_export
from kctl.reassign.planner.goals import Goals
from kctl.reassign.planner.log_dir_moves import LogDirPlan, plan_log_dirs
from kctl.reassign.planner.plan import make_plan
from reassign_clusters import cluster_of


def broker(
    *dirs: list[int], usable: int | None = None, total: tuple[int, ...] | None = None, fixed: tuple[int, ...] = ()
) -> BrokerDisks:
    """Log dirs by the sizes of their replicas; partitions are numbered through."""
    disks = []
    for i in range(len(dirs)):
        known = None if usable is None else usable + i  # not alike, so that each has its own room
        disks.append(Disk(f"/d{i}", total[i] if total else None if usable is None else 10**9 + i, known))
        if fixed:
            disks[i].fixed_bytes, disks[i].fixed_replicas = fixed[i], 1
    places = [(place, size) for place, sizes in enumerate(dirs) for size in sizes]
    return BrokerDisks(1, disks, dict(enumerate(places)))


def loads(plan: LogDirPlan) -> list[int]:
    return [load.bytes for load in plan.after]


def test_bytes_come_out_even_with_few_moves() -> None:
    plan = plan_log_dirs([broker([60, 50, 40, 30, 20], [])], tolerance=0.1)
    assert loads(plan) == [110, 90]
    assert (len(plan.moves), plan.lower_bound, plan.unmet) == (2, 2, [])
    assert plan.bytes_lower_bound == plan.bytes == 90
    assert {(m.source, m.target) for m in plan.moves} == {("/d0", "/d1")}


def test_what_is_even_within_the_tolerance_stays() -> None:
    assert plan_log_dirs([broker([50, 55], [95])]).moves == []
    assert plan_log_dirs([broker([50, 55], [95])], tolerance=0.01).moves == []  # nothing smaller could go
    assert plan_log_dirs([broker([50, 45, 10], [95])], tolerance=0.01).lower_bound <= 1


def test_nothing_is_exchanged_for_next_to_nothing() -> None:
    plan = plan_log_dirs([broker([280, 281], [279])])
    assert [m.size_bytes for m in plan.moves] == []  # 281 for 279 would copy 560 to be nearer by 2
    assert plan.unmet
    plan = plan_log_dirs([broker([101, 100], [99, 80])], tolerance=0.05)
    assert plan.unmet == []  # but the goal itself is worth it


def test_replicas_are_counted_where_sizes_are_not_known_or_all_is_empty() -> None:
    for size in (-1, 0):
        plan = plan_log_dirs([broker([size] * 7, [size], [])])
        assert sorted(load.replicas for load in plan.after) == [2, 3, 3]
        assert len(plan.moves) == plan.lower_bound == 4


def test_larger_disks_hold_more() -> None:
    plan = plan_log_dirs([broker([10] * 30, [], total=(1000, 2000))], tolerance=0.05)
    assert loads(plan) == pytest.approx([100, 200], rel=0.06)


def test_what_is_not_planned_counts_and_stays() -> None:
    plan = plan_log_dirs([broker([10] * 10, [], fixed=(0, 100))])
    assert (plan.moves, loads(plan)) == ([], [100, 100])
    plan = plan_log_dirs([broker([10] * 4, [])], fixed=[0, 1])
    assert {move.partition for move in plan.moves} == {2, 3}
    plan = plan_log_dirs([broker([10] * 4, [])], leaving={1: [0, 1]})
    assert (len(plan.moves), loads(plan)) == (1, [10, 10])


def test_a_disk_takes_no_more_than_it_has_room_for_while_the_originals_are_still_there() -> None:
    plan = plan_log_dirs([broker([40] * 10, [], usable=100)])
    assert (len(plan.moves), loads(plan)) == (2, [320, 80])
    assert plan.unmet == [
        "log dirs of broker 1 do not reach their share of bytes (large partitions, or too little disk space): /d0, /d1"
    ]
    shared = broker([40] * 10, [], [])
    for disk in shared.disks:
        disk.total_bytes, disk.usable_bytes = 1000, 100  # three folders on one disk
    assert plan_log_dirs([shared]).bytes <= 100


def test_limits_leave_moves_for_another_plan() -> None:
    plan = plan_log_dirs([broker([10] * 10, [])], max_moves=2)
    assert (len(plan.moves), plan.lower_bound) == (2, 2)
    assert plan.unmet == ["3 moves between log dirs are left for another plan (--max-moves or --max-bytes)"]
    assert plan_log_dirs([broker([10] * 10, [])], max_bytes=25).bytes == 20
    assert loads(plan) == [80, 20]


disk_lists = st.lists(st.lists(st.integers(1, 100), max_size=6), min_size=2, max_size=4)


@given(disk_lists, st.sampled_from([0.0, 0.05, 0.2, 0.5]), st.none() | st.integers(0, 200), st.data())
@settings(max_examples=300, derandomize=True)
def test_rules_that_every_plan_keeps(
    dirs: list[list[int]], tolerance: float, usable: int | None, data: st.DataObject
) -> None:
    disks = broker(*dirs, usable=usable)
    fixed = data.draw(st.sets(st.sampled_from(sorted(disks.replicas)))) if disks.replicas else set()
    plan = plan_log_dirs([disks], tolerance=tolerance, fixed=fixed)
    place = {p: f"/d{at}" for p, (at, _) in disks.replicas.items()}
    received: dict[str, int] = {}
    for move in plan.moves:
        assert move.partition not in fixed
        assert place[move.partition] == move.source != move.target
        assert move.size_bytes == disks.replicas[move.partition][1]
        place[move.partition] = move.target
        received[move.target] = received.get(move.target, 0) + move.size_bytes
    assert len({move.partition for move in plan.moves}) == len(plan.moves)
    for disk in disks.disks:
        assert disk.usable_bytes is None or received.get(disk.path, 0) <= disk.usable_bytes
    for load in plan.after:
        here = [disks.replicas[p][1] for p, path in place.items() if path == load.path]
        assert (load.replicas, load.bytes) == (len(here), sum(here))
    assert plan.lower_bound <= len(plan.moves)
    assert plan.bytes_lower_bound <= plan.bytes
    assert (max(loads(plan)) - min(loads(plan))) <= max(b.bytes for b in plan.before) - min(
        b.bytes for b in plan.before
    )
    assert plan_log_dirs([disks], tolerance=tolerance, fixed=fixed) == plan, "the same input gave another plan"


@given(st.lists(st.lists(st.integers(1, 30), max_size=4), min_size=2, max_size=2), st.sampled_from([0.1, 0.3]))
@settings(max_examples=150, derandomize=True)
def test_no_assignment_does_with_less_than_the_bound(dirs: list[list[int]], tolerance: float) -> None:
    disks = broker(*dirs)
    plan = plan_log_dirs([disks], tolerance=tolerance)
    limit = [(min(load.bytes for load in plan.after), max(load.bytes for load in plan.after))] * 2
    for chosen in product(range(2), repeat=len(disks.replicas)):
        sums, moved, copied = [0, 0], 0, 0
        for (at, size), now in zip(disks.replicas.values(), chosen, strict=True):
            sums[now] += size
            moved += at != now
            copied += size if at != now else 0
        if all(low <= total <= high for total, (low, high) in zip(sums, limit, strict=True)):
            assert moved >= plan.lower_bound
            assert copied >= plan.bytes_lower_bound


# --- in a plan --------------------------------------------------------------------------------------------------------


def log_dir(path: str, *partitions: int, size: int = 100, error: str | None = None, future: bool = False) -> LogDir:
    return LogDir(path, None, None, [LogDirReplica("t", p, size, 0, future) for p in partitions], error)


def test_the_plan_file_has_paths_where_a_replica_moves_and_where_it_was() -> None:
    cluster = cluster_of(["a", "b"], [[0, 1], [1, 0]])
    dirs = {0: [log_dir("/a", 0, 1), log_dir("/b")], 1: [log_dir("/a", 0), log_dir("/b", 1)]}
    plan = make_plan(cluster, Goals(log_dirs=True), dirs)
    found = document(plan)
    assert found["partitions"] == [{"topic": "t", "partition": 0, "replicas": [0, 1], "log_dirs": ["/b", "any"]}]
    assert found["rollback"]["partitions"] == [
        {"topic": "t", "partition": 0, "replicas": [0, 1], "log_dirs": ["/a", "any"]}
    ]  # fmt: skip
    assert (found["moves"], found["leader_changes"], found["bytes"]) == (0, 0, 0)
    assert (found["log_dir_moves"], found["log_dir_lower_bound"], found["log_dir_bytes"]) == (1, 1, 100)
    assert found["log_dirs_after"][1] == {
        "broker": 0, "path": "/b", "replicas": 1, "bytes": 100, "usable_bytes": None,
    }  # fmt: skip


def test_what_leaves_the_broker_needs_no_other_log_dir_and_what_comes_may_go_to_any() -> None:
    cluster = cluster_of(["a", "b", "c"], [[0, 1], [1, 0], [0, 1], [1, 0]])
    dirs = {0: [log_dir("/a", 0, 1, 2, 3), log_dir("/b")], 1: [log_dir("/a", 0, 1, 2, 3), log_dir("/b")], 2: []}
    goals = Goals(remove_brokers=frozenset({0}), log_dirs=True)
    plan = make_plan(cluster, goals, dirs)
    assert plan.moves == plan.lower_bound == 4
    assert all(set(c.before) != set(c.after) for c in plan.changes)
    assert plan.log_dirs is not None
    assert plan.log_dirs.moves == []  # all of them change brokers this time
    assert [line for line in plan.unmet if "broker 1 " in line or "2 are not known" in line]


def test_excluded_brokers_and_dirs_that_are_offline_are_left_alone() -> None:
    cluster = cluster_of(["a", "b"], [[0, 1], [1, 0]])
    dirs = {
        0: [log_dir("/a", 0, 1), log_dir("/b", error="offline")],
        1: [log_dir("/a", 0, 1), log_dir("/b")],
    }
    plan = make_plan(cluster, Goals(log_dirs=True, exclude_brokers=frozenset({1})), dirs)
    assert (plan.changes, plan.unmet) == ([], [])


def test_a_copy_under_way_is_refused_and_so_are_leaders_only() -> None:
    cluster = cluster_of(["a"], [[0]])
    with pytest.raises(Refused, match="t-0 on broker 0 is already moving to /b"):
        make_plan(cluster, Goals(log_dirs=True), {0: [log_dir("/a", 0), log_dir("/b", 0, future=True)]})
    with pytest.raises(UsageError, match="leaders-only"):
        make_plan(cluster, Goals(log_dirs=True, leaders_only=True), {})


def test_an_export_gives_the_same_log_dirs() -> None:
    rows = [
        {
            "path": "/a",
            "total_bytes": 9,
            "usable_bytes": 5,
            "replicas": [{"topic": "t", "partition": 0, "size_bytes": 3}],
        },
        {"path": "/off"},
    ]
    found = log_dirs_of_export({"brokers": [{"id": 0, "log_dirs": rows}, {"id": 1}]})
    assert found[0][0] == LogDir("/a", 9, 5, [LogDirReplica("t", 0, 3, 0, False)])
    assert found[0][1].error is not None
    disks = disks_of(cluster_of(["a", "b"], [[0]]), found)
    assert [disk.path for disk in disks[0].disks] == ["/a"]
    assert (list(disks), disks[0].replicas) == ([0], {0: (0, 3)})


@pytest.mark.parametrize(
    "rows",
    [5, [5], [{"path": "a"}], [{"path": "/a", "replicas": 5}], [{"path": "/a", "replicas": [{"topic": 5}]}],
     [{"path": "/a", "usable_bytes": -1}], [{"path": "/a", "total_bytes": 2**70}], [{"path": "/a"}, {"path": "/a"}]],
)  # fmt: skip
def test_log_dirs_that_cannot_be_are_refused(rows: Any) -> None:
    with pytest.raises(InvalidFile, match=r"log_dirs|log dir|replica"):
        log_dirs_of_export({"brokers": [{"id": 1, "log_dirs": rows}]})
