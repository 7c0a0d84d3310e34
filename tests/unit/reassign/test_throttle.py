"""Throttles: what is set beside an operator's own settings, and that everything goes back as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kctl.configs.dynamic import Resource
from kctl.errors import InvalidFile
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    NAMES,
    Throttle,
    plan_throttle,
    restoration,
    throttled_resources,
)
from kctl.reassign.run.throttle_changes import is_off, renew, tampering

T, U = Resource.topic("t"), Resource.topic("u")
B1, B2, B3, B4 = (Resource.broker(node) for node in (1, 2, 3, 4))
MOVE = Reassignment("t", 0, after=(4, 2), before=(1, 2))
GROW = Reassignment("t", 5, after=(1, 2, 3), before=(1, 2))
REORDER = Reassignment("u", 0, after=(2, 1), before=(1, 2))
SHRINK = Reassignment("u", 1, after=(1,), before=(1, 2))
DISKS = Reassignment("u", 2, after=(1, 2), before=(1, 2), log_dirs=("/b", None), log_dirs_before=("/a", "/a"))

Current = dict[Resource, dict[str, str | None]]


def unset(*resources: Resource) -> Current:
    """Nothing is set on these."""
    return {resource: dict.fromkeys(NAMES) for resource in resources}


def with_values(current: Current, *values: tuple[Resource, str, str | None]) -> Current:
    """The same with some settings."""
    found: Current = {resource: dict(row) for resource, row in current.items()}
    for resource, name, value in values:
        found.setdefault(resource, dict.fromkeys(NAMES))[name] = value
    return found


def applied(current: Current, changes: Any) -> Current:
    return with_values(current, *((r, name, value) for r, row in changes.items() for name, value in row.items()))


def test_what_a_plan_throttles() -> None:
    moves = [MOVE, GROW, REORDER, SHRINK, DISKS]
    assert throttled_resources(moves) == [B1, B2, B3, B4, T]
    throttle = plan_throttle(moves, 1000, unset(B1, B2, B3, B4, T))
    assert throttle.set == {
        B1: {LEADER_RATE: "1000", LOG_DIR_RATE: "1000"},
        B2: {LEADER_RATE: "1000"},
        B3: {FOLLOWER_RATE: "1000"},
        B4: {FOLLOWER_RATE: "1000"},
        T: {LEADER_REPLICAS: "0:1,0:2,5:1,5:2", FOLLOWER_REPLICAS: "0:4,5:3"},
    }
    assert all(value is None for row in throttle.before.values() for value in row.values())


@pytest.mark.parametrize("moves", [[REORDER], [SHRINK], [REORDER, SHRINK], []])
def test_what_copies_nothing_needs_no_throttle(moves: list[Reassignment]) -> None:
    assert throttled_resources(moves) == []
    assert not plan_throttle(moves, 1000, unset(B1, B2, U))


def test_a_broker_that_is_down_gets_nothing() -> None:
    throttle = plan_throttle([MOVE], 1000, unset(B2, B4, T))
    assert sorted(throttle.set) == [B2, B4, T]


@pytest.mark.parametrize(
    ("there", "merged"),
    [
        (None, "0:1,0:2"),
        ("", "0:1,0:2"),
        ("7:3", "7:3,0:1,0:2"),
        ("0:2, 7:3", "0:2,7:3,0:1"),
        ("*", None),  # it is theirs, and does it all
        ("0:2,0:1", None),
    ],
)
def test_entries_are_added_to_an_operators_list(there: str | None, merged: str | None) -> None:
    current = with_values(unset(B1, B2, B4, T), (T, LEADER_REPLICAS, there))
    throttle = plan_throttle([MOVE], 1000, current)
    kept = merged if merged is not None else there
    assert sorted((throttle.set[T].get(LEADER_REPLICAS) or kept or "").split(",")) == sorted((kept or "").split(","))
    back, told = restoration(throttle, applied(current, throttle.set))
    assert applied(applied(current, throttle.set), back) == current, "as it was, to the letter"
    assert told == []


def test_a_list_that_is_too_long_throttles_the_whole_topic() -> None:
    moves = [Reassignment("t", p, after=(4, 2), before=(1, 2)) for p in range(5000)]
    current = with_values(unset(B1, B2, B4, T), (T, LEADER_REPLICAS, "7:3"))
    throttle = plan_throttle(moves, 1000, current)
    assert throttle.set[T] == {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"}
    back, told = restoration(throttle, applied(current, throttle.set))
    assert (applied(applied(current, throttle.set), back), told) == (current, [])


@pytest.mark.parametrize("before", [None, "5", "1000"])
def test_rates_go_back_to_what_they_were(before: str | None) -> None:
    current = with_values(unset(B1, B2, B4, T), (B1, LEADER_RATE, before), (B4, FOLLOWER_RATE, "77"))
    throttle = plan_throttle([MOVE], 1000, current)
    slower = renew(throttle, 5000, applied(current, throttle.set)).throttle
    faster = renew(slower, 9000, applied(current, slower.set)).throttle
    assert faster.set[B1] == {LEADER_RATE: "9000"}
    for now in (throttle.set, slower.set, faster.set):
        # A run that was killed between the journal's entry and the change has left an earlier rate.
        back, told = restoration(faster, applied(current, now))
        assert (applied(applied(current, now), back), told) == (current, [])
    back, told = restoration(faster, current)
    assert applied(current, back) == current
    assert back[B1] == {LEADER_RATE: before}, "written all the same: a broker tells of changes a moment late"


@pytest.mark.parametrize(
    ("name", "before", "now", "left", "told"),
    [
        # what someone else has set meanwhile stays
        (LEADER_RATE, None, "777", "777", 'changed leader.replication.throttled.rate to "777"'),
        (LEADER_RATE, "5", "777", "777", 'it was "5" before'),
        (LEADER_RATE, "5", None, None, "deleted leader.replication.throttled.rate"),
        (LEADER_RATE, None, None, None, None),  # deleted by someone else: as before, nothing to tell
        (LEADER_RATE, "5", "5", "5", None),
        # of lists only our entries go
        (LEADER_REPLICAS, None, "0:1,0:2,7:3", "7:3", 'left "7:3"; it was not set before'),
        (LEADER_REPLICAS, "7:3", "0:1,0:2,7:3,8:3", "7:3,8:3", 'left "7:3,8:3"; it was "7:3" before'),
        (LEADER_REPLICAS, "7:3", "0:1,0:2", None, 'left not set; it was "7:3" before'),
        (LEADER_REPLICAS, "7:3", "0:2,7:3", "7:3", None),  # one of ours was gone: as before
        (LEADER_REPLICAS, "7:3", "*", "*", 'to "*"'),
        (LEADER_REPLICAS, None, "*", "*", 'to "*"'),
        (LEADER_REPLICAS, "7:3", None, None, "deleted leader.replication.throttled.replicas"),
        (LEADER_REPLICAS, None, None, None, None),
        (LEADER_REPLICAS, "7:3,0:1", "0:1,0:2,9:9", "0:1,9:9", 'left "0:1,9:9"'),  # 0:1 was theirs
        (LEADER_REPLICAS, "", "0:1,0:2", "", None),
        (LEADER_REPLICAS, "7:3", "0:2,7:3,0:1", "7:3", None),  # the order does not matter
    ],
)
def test_what_somebody_else_changed_survives(
    name: str, before: str | None, now: str | None, left: str | None, told: str | None
) -> None:
    resource = B1 if name == LEADER_RATE else T
    current = with_values(unset(B1, B2, B4, T), (resource, name, before))
    throttle = plan_throttle([MOVE], 1000, current)
    then = with_values(applied(current, throttle.set), (resource, name, now))
    back, lines = restoration(throttle, then)
    assert applied(then, back) == with_values(current, (resource, name, left))
    assert len(lines) == (told is not None), lines
    if told is not None:
        assert told in lines[0]
        assert lines[0].startswith(f"{resource}: someone else")


# name, before the run, now, after `resume --throttle 2000`, after the end of the run, what is remarked
AGAIN = [
    (LEADER_RATE, None, "1000", "2000", None, None),
    (LEADER_RATE, "5", "1000", "2000", "5", None),
    (LEADER_RATE, None, "777", "777", "777", 'set leader.replication.throttled.rate to "777"; kctl keeps that value'),
    (LEADER_RATE, "5", "777", "777", "777", '"777"'),
    (LEADER_RATE, "5", "+0777", "+0777", "+0777", '"+0777"'),
    (LEADER_RATE, "5", "+1000", "2000", "5", None),  # as a broker may have kept it: still the run's
    (LEADER_RATE, None, None, "2000", None, None),  # taken away: the command sets it again
    (LEADER_RATE, "5", None, "2000", None, None),  # and what was there before is gone as well
    (LEADER_RATE, "5", "5", "2000", "5", None),  # not set yet, or put back
    (LEADER_REPLICAS, None, "0:1,0:2", "0:1,0:2", None, None),
    (LEADER_REPLICAS, None, "0:2,0:1", "0:2,0:1", None, None),
    (LEADER_REPLICAS, "7:3", "7:3,0:1,0:2", "7:3,0:1,0:2", "7:3", None),
    (LEADER_REPLICAS, None, "0:1,0:2,7:3", "0:1,0:2,7:3", "7:3", '"0:1,0:2,7:3"; kctl keeps that value'),
    (LEADER_REPLICAS, "7:3", "7:3,0:1,0:2,8:3", "7:3,0:1,0:2,8:3", "7:3,8:3", "8:3"),
    (LEADER_REPLICAS, "7:3", "0:1,0:2", "0:1,0:2", None, '"0:1,0:2"'),
    (LEADER_REPLICAS, "7:3", None, "0:1,0:2", None, "to not set"),
    (LEADER_REPLICAS, None, None, "0:1,0:2", None, None),
    (LEADER_REPLICAS, None, "8:3", "8:3,0:1,0:2", "8:3", '"8:3"'),
    (LEADER_REPLICAS, None, "*", "*", "*", '"*"'),
    (LEADER_REPLICAS, "7:3", "*", "*", "*", '"*"'),
]


@pytest.mark.parametrize(("name", "before", "now", "again", "left", "remark"), AGAIN)
def test_what_somebody_else_set_survives_another_rate(
    name: str, before: str | None, now: str | None, again: str | None, left: str | None, remark: str | None
) -> None:
    resource = B1 if name == LEADER_RATE else T
    current = with_values(unset(B1, B2, B4, T), (resource, name, before))
    throttle = plan_throttle([MOVE], 1000, current)
    then = with_values(applied(current, throttle.set), (resource, name, now))
    renewal = renew(throttle, 2000, then)
    on = applied(then, renewal.writes)
    assert on[resource].get(name) == again
    assert on[B4] == {**then[B4], FOLLOWER_RATE: "2000"}
    assert len(renewal.remarks) == (remark is not None), renewal.remarks
    assert remark is None or remark in renewal.remarks[0]
    once_more = renew(renewal.throttle, 2000, on)  # killed before the second entry, or while it was set
    assert applied(on, once_more.writes) == on
    assert applied(then, renew(renewal.throttle, 2000, then).writes) == on
    for state in (renewal.throttle, once_more.throttle):
        back, _ = restoration(Throttle.from_json(state.to_json()), on)
        assert applied(on, back) == with_values(current, (resource, name, left))


def test_a_whole_topic_stays_throttled_by_another_rate() -> None:
    moves = [Reassignment("t", p, after=(4, 2), before=(1, 2)) for p in range(5000)]
    current = with_values(unset(B1, B2, B4, T), (T, LEADER_REPLICAS, "7:3"))
    throttle = plan_throttle(moves, 1000, current)
    on = applied(current, throttle.set)
    renewal = renew(throttle, 2000, on)
    assert T not in renewal.writes
    back, told = restoration(renewal.throttle, applied(on, renewal.writes))
    assert (applied(on, back)[T], told) == (current[T], [])


def test_a_broker_that_cannot_be_read_is_set_as_planned() -> None:
    throttle = plan_throttle([MOVE], 1000, unset(B1, B2, B4, T))
    current = applied(unset(B1, B2, T), {r: v for r, v in throttle.set.items() if r != B4})
    renewal = renew(throttle, 2000, current)
    assert renewal.writes[B4] == {FOLLOWER_RATE: "2000"}
    assert not renewal.remarks


@pytest.mark.parametrize(
    ("name", "before", "now", "line", "removed"),
    [
        (LEADER_RATE, None, "1000", None, False),
        (LEADER_RATE, None, "01000", None, False),
        (LEADER_RATE, None, None, "removed leader.replication.throttled.rate, which this run had set to 1000", True),
        (LEADER_RATE, "5", None, "removed leader.replication.throttled.rate", True),
        (LEADER_RATE, "5", "5", "set leader.replication.throttled.rate back to 5", True),
        (LEADER_RATE, None, "777", "changed leader.replication.throttled.rate from 1000 to 777", False),
        (LEADER_RATE, "5", "777", "from 1000 to 777", False),
        (LEADER_REPLICAS, None, "0:2,0:1", None, False),
        (LEADER_REPLICAS, None, "0:1,0:2,7:3", None, False),
        (LEADER_REPLICAS, None, "*", None, False),
        (LEADER_REPLICAS, None, "0:1", "removed 1 replica of this run from leader.replication.throttled", False),
        (LEADER_REPLICAS, None, None, "removed 2 replicas", True),
        (LEADER_REPLICAS, "7:3", "7:3", "removed 2 replicas", True),
        (LEADER_REPLICAS, "7:3", "8:3", "removed 2 replicas", True),
    ],
)
def test_what_somebody_else_does_is_noticed(
    name: str, before: str | None, now: str | None, line: str | None, removed: bool
) -> None:
    resource = B1 if name == LEADER_RATE else T
    current = with_values(unset(B1, B2, B4, T), (resource, name, before))
    throttle = plan_throttle([MOVE], 1000, current)
    on = applied(current, throttle.set)
    assert tampering(throttle, on) == {}
    found = tampering(throttle, with_values(on, (resource, name, now)))
    if line is None:
        assert not found
        return
    assert list(found) == [(resource, name)]
    seen = found[resource, name]
    assert line in seen.line
    assert seen.line.startswith(f"{resource}: someone else ")
    assert seen.removed is removed
    assert not is_off(throttle, found)
    assert is_off(throttle, tampering(throttle, current))


def test_what_is_gone_is_passed_over() -> None:
    throttle = plan_throttle([MOVE], 1000, unset(B1, B2, B4, T))
    back, told = restoration(throttle, applied(unset(B1, B2), {r: throttle.set[r] for r in (B1, B2)}))
    assert sorted(back) == [B1, B2]
    assert told == []


def test_a_journal_holds_it() -> None:
    current = with_values(unset(B1, B2, B4, T), (B1, LEADER_RATE, "5"), (T, LEADER_REPLICAS, "7:3"))
    throttle = renew(plan_throttle([MOVE, DISKS], 1000, current), 2000, current).throttle
    assert Throttle.from_json(json.loads(json.dumps(throttle.to_json()))) == throttle
    assert Throttle.from_json(json.loads(json.dumps(Throttle().to_json()))) == Throttle()


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"resources": [], "earlier_rates": [5]},
        {"resources": [{}], "earlier_rates": []},
        {"resources": [{"kind": "user", "name": "x", "before": {}, "set": {}}], "earlier_rates": []},
        {"resources": [{"kind": "broker", "name": "x", "before": {}, "set": {}}], "earlier_rates": []},
        {"resources": [{"kind": "broker", "name": "1", "before": {}, "set": {LEADER_RATE: "1"}}], "earlier_rates": []},
        {
            "resources": [{"kind": "topic", "name": "t", "before": {"x": None}, "set": {"x": "1"}}],
            "earlier_rates": [],
        },
    ],
)
def test_a_journal_that_was_changed_by_hand(document: object) -> None:
    with pytest.raises(InvalidFile, match="throttles cannot be read"):
        Throttle.from_json(document)
