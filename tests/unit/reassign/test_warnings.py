"""What a plan warns of: racks of very different size, a single replica, log dirs that are cordoned."""

from __future__ import annotations

from typing import Any

import pytest

from kctl.cluster.log_dirs import LogDir, LogDirReplica, is_cordoned
from kctl.configs.diff import OF_ONE_BROKER
from kctl.errors import NotAuthorized, Refused
from kctl.reassign.plan_file.read import parse_plan, reversed_plan
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.cluster import PlanCluster, from_export
from kctl.reassign.planner.disks import log_dirs_of_export
from kctl.reassign.planner.goals import BalanceGoal, Goals
from kctl.reassign.planner.plan import Plan, make_plan
from kctl.reassign.planner.warnings import about_min_isr, about_one_replica, lowered_by


def racks_of(sizes: tuple[int, ...], factor: int, partitions: int = 12) -> PlanCluster:
    """Racks a, b, c … of so many brokers; all replicas in the first ones, whatever their rack."""
    names = [rack for rack, size in zip("abcdef", sizes, strict=False) for _ in range(size)]
    count = len(names) - 1  # the last broker has none
    rows = [[(p + i) % count for i in range(factor)] for p in range(partitions)]
    return from_export(
        {
            "cluster_id": "c",
            "brokers": [{"id": n, "host": "h", "port": 9, "rack": rack} for n, rack in enumerate(names)],
            "topics": [
                {
                    "name": "t",
                    "partitions": [
                        {"partition": p, "leader": row[0], "replicas": row, "isr": row, "size_bytes": 1}
                        for p, row in enumerate(rows)
                    ],
                }
            ],
        }
    )


FIX = Goals(fix_racks=True, balance=frozenset({BalanceGoal.REPLICAS}))


@pytest.mark.parametrize(
    ("sizes", "factor", "says"),
    [
        ((3, 3, 1), 3, "rack c has only 1 broker, the largest rack 3: broker 6 will hold 12 of 36 replicas"),
        ((6, 1), 2, "rack b has only 1 broker, the largest rack 6: broker 6 will hold 12 of 24 replicas"),
        ((5, 5, 1), 3, "broker 10 will hold 12 of 36 replicas"),
        ((3, 1), 2, "broker 3 will hold 12 of 24 replicas"),
        ((8, 2), 2, "rack b has only 2 brokers, the largest rack 8"),
        ((2, 2, 2), 3, None),
        ((3, 2), 2, None),
        ((2, 2, 1), 2, None),
        ((6, 1), 1, None),
    ],
)
def test_racks_of_very_different_size(sizes: tuple[int, ...], factor: int, says: str | None) -> None:
    found = [line for line in make_plan(racks_of(sizes, factor), FIX).warnings if line.startswith("rack ")]
    assert len(found) == (says is not None), found
    if says is not None:
        assert says in found[0]
        assert "--exclude-broker" in found[0]


def test_no_warning_of_racks_where_nothing_moves() -> None:
    cluster = racks_of((3, 3, 1), 3)
    placed = make_plan(cluster, FIX)
    rows = {change.partition: change.after for change in placed.changes}
    even = from_export(
        {
            "cluster_id": "c",
            "brokers": [{"id": b.id, "host": "h", "port": 9, "rack": b.rack} for b in cluster.brokers],
            "topics": [
                {
                    "name": "t",
                    "partitions": [
                        {"partition": p, "leader": next(iter(row)), "replicas": list(row), "isr": list(row)}
                        for p, row in ((p, rows.get(p, cluster.ids(cluster.replicas[p]))) for p in range(len(cluster)))
                    ],
                }
            ],
        }
    )
    again = make_plan(even, FIX)
    assert again.moves == 0
    assert not [line for line in again.warnings if line.startswith("rack ")]


@pytest.mark.parametrize(("factor", "said"), [(1, True), (2, False)])
def test_one_replica_is_warned_of_in_words_of_its_own(factor: int, said: bool) -> None:
    found = make_plan(racks_of((2, 2), 3), Goals(replication_factor=factor)).warnings
    lines = [line for line in found if "will have 1 replica" in line]
    assert bool(lines) is said
    if said:
        (line,) = lines
        assert line.startswith("t will have 1 replica: while its broker is down, a partition is unavailable,")
        assert line.endswith("a lost disk loses its records")


def test_topics_with_the_same_min_isr_share_a_line() -> None:
    names = [f"t{n:02}" for n in range(21)]
    limits = {name: 2 if name < "t18" else NotAuthorized(f"{name}: no") for name in names}
    effect = "acks=all is rejected while one of these brokers is down"
    lines = about_min_isr(dict.fromkeys(names, 2), limits)
    assert lines == [
        f"18 topics (t00, t01, t02 and 15 more) will have 2 replicas and min.insync.replicas=2: {effect}",
        "cannot check min.insync.replicas of 3 topics (t18, t19, t20): t18: no",
    ]


# --- cordoned log dirs ------------------------------------------------------------------------------------------------


def export(*brokers: list[dict[str, Any]]) -> dict[str, Any]:
    """Brokers 1 … with these log dirs; topic t with 6 partitions on broker 1."""
    replicas = [{"topic": "t", "partition": p, "size_bytes": 10, "offset_lag": 0, "future": False} for p in range(6)]
    rows = []
    for node, dirs in enumerate(brokers, start=1):
        log_dirs = [
            {"total_bytes": 1000 + place, "usable_bytes": 500 + place, "replicas": [], **each}
            for place, each in enumerate(dirs)
        ]
        if node == 1:
            log_dirs[0]["replicas"] = replicas
        rows.append({"id": node, "host": "h", "port": 9, "rack": None, "log_dirs": log_dirs})
    partitions = [
        {"partition": p, "leader": 1, "replicas": [1], "isr": [1], "size_bytes": 10, "adding": [], "removing": []}
        for p in range(6)
    ]
    return {"cluster_id": "c", "brokers": rows, "topics": [{"name": "t", "partitions": partitions}]}


def planned(document: dict[str, Any], goals: Goals) -> Plan:
    return make_plan(from_export(document), goals, log_dirs_of_export(document))


OPEN, CORDONED = {"path": "/a"}, {"path": "/a", "cordoned": True}
B, B_CORDONED = {"path": "/b"}, {"path": "/b", "cordoned": True}


def receivers(plan: Plan) -> set[int]:
    return {node for change in plan.changes for node in set(change.after) - set(change.before)}


@pytest.mark.parametrize(
    ("brokers", "gets"),
    [
        (([OPEN], [OPEN], [OPEN]), {2, 3}),
        (([OPEN], [CORDONED], [OPEN]), {3}),
        (([OPEN], [CORDONED, B_CORDONED], [OPEN]), {3}),
        (([OPEN], [CORDONED, B], [OPEN]), {2, 3}),
        (([CORDONED], [OPEN], [OPEN]), set()),  # it keeps what it has, as an excluded one
    ],
)
def test_cordoned_brokers_receive_nothing(brokers: tuple[list[dict[str, Any]], ...], gets: set[int]) -> None:
    plan = planned(export(*brokers), Goals(balance=frozenset({BalanceGoal.REPLICAS})))
    assert receivers(plan) == gets
    closed = [node for node, dirs in enumerate(brokers, 1) if all(each.get("cordoned") for each in dirs)]
    lines = [line for line in plan.warnings if "cordoned" in line]
    assert lines == [f"broker {node} receives nothing: all log dirs there are cordoned" for node in closed]


def test_a_cordoned_broker_can_be_emptied_and_not_be_named_to_receive() -> None:
    plan = planned(export([CORDONED], [OPEN]), Goals(remove_brokers=frozenset({1})))
    assert receivers(plan) == {2}
    with pytest.raises(Refused, match="broker 2 is cordoned in all log dirs") as caught:
        planned(export([OPEN], [CORDONED]), Goals(add_brokers=frozenset({2})))
    assert "kctl broker uncordon 2" in (caught.value.hint or "")
    with pytest.raises(Refused, match="no broker can receive a replica") as caught:
        planned(export([CORDONED]), Goals(balance=frozenset({BalanceGoal.REPLICAS})))
    assert "broker 1 is cordoned in all log dirs" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("dirs", "targets"),
    [
        ([OPEN, B], {"/b"}),
        ([OPEN, B_CORDONED], set()),
        ([CORDONED, B], set()),  # what lies there stays, as on an excluded broker
        ([OPEN, B_CORDONED, {"path": "/c"}], {"/c"}),
    ],
)
def test_cordoned_log_dirs_receive_nothing(dirs: list[dict[str, Any]], targets: set[str]) -> None:
    plan = planned(export(dirs), Goals(log_dirs=True))
    assert plan.log_dirs is not None
    assert {move.target for move in plan.log_dirs.moves} == targets
    names = [f"{each['path']} of broker 1" for each in dirs if each.get("cordoned")]
    lines = [line for line in plan.warnings if "cordoned" in line]
    assert lines == ([f"cordoned log dirs stay as they are: {', '.join(names)}"] if names else [])


@pytest.mark.parametrize(
    ("dirs", "closed"),
    [
        ([], False),
        ([(None, True)], True),
        ([(None, True), (None, False)], False),
        ([("offline", False), (None, True)], True),
        ([("offline", True)], False),
    ],
)
def test_when_a_broker_is_cordoned(dirs: list[tuple[str | None, bool]], closed: bool) -> None:
    held: list[LogDirReplica] = []
    assert is_cordoned([LogDir("/d", 1, 1, held, error, cordoned) for error, cordoned in dirs]) is closed


def test_cordoned_log_dirs_are_a_brokers_own_matter() -> None:
    assert "cordoned.log.dirs" in OF_ONE_BROKER  # so doctor calls them no mixed setting, and gives no advice to unset


# --- in the plan's file ---------------------------------------------------------------------------------------------


def test_the_file_tells_apply_what_the_plan_warned_of() -> None:
    text = b'{"version":1,"partitions":[],"current":{"partitions":[]},"warnings":["a","b"],"unmet":["c"]}'
    file = parse_plan(text, "p.json")
    assert (file.warnings, file.unmet) == (("a", "b"), ("c",))
    assert (reversed_plan(file).warnings, reversed_plan(file).unmet) == ((), ())


def test_a_file_without_warnings_is_looked_through() -> None:
    rows = [
        Reassignment("a", 0, after=(1,), before=(1, 2)),
        Reassignment("b", 0, after=(1, 2), before=(1, 2, 3)),
        Reassignment("c", 0, after=(2,), before=(1,)),
        Reassignment("d", 0, after=(2,), before=None),
    ]
    assert lowered_by(rows) == {"a": 1, "b": 2}
    (line,) = about_one_replica(lowered_by(rows))
    assert line.startswith("a will have 1 replica")
