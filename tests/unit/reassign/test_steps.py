"""What a journal adds up to, and what comes next: tables of entries. No cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kctl.errors import InvalidFile
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.run_plan import RunPlan, begin_entry, plan_of
from kctl.reassign.run.steps import Mode, RunStep, ThrottlePhase, next_step, replay

ROWS = (
    Reassignment("a", 0, after=(4, 2), before=(1, 2), size_bytes=10, topic_id="id-a"),
    Reassignment("a", 1, after=(2, 1), before=(1, 2), topic_id="id-a"),
    Reassignment(
        "b", 0, after=(1, 2), before=(1, 2), size_bytes=5, log_dirs=(None, "/d2"), log_dirs_before=("/d1", "/d1")
    ),
)
PLAN = RunPlan(
    kind="apply", source="p.json", digest="d", cluster_id="c", cluster="dev", reassignments=ROWS,
    batches=((0, 2), (1,)), remove_brokers=(1,), throttle_bytes=1000,
)  # fmt: skip
NO_THROTTLE = {**begin_entry(PLAN), "throttle_bytes": None}

Entry = tuple[str, dict[str, Any]]

S: Entry = ("throttle_set", {"rate_bytes": 1000, "throttle": {}})
D: Entry = ("throttle_done", {})
SLOWER: Entry = ("throttle_set", {"rate_bytes": 500, "throttle": {}})
B0: Entry = ("batch_start", {"batch": 0})
B0_DONE: Entry = ("batch_done", {"batch": 0})
B1: Entry = ("batch_start", {"batch": 1})
B1_DONE: Entry = ("batch_done", {"batch": 1})
R: Entry = ("throttle_restore", {})
RD: Entry = ("throttle_restored", {"remarks": ["x"], "left": None})
LEFT: Entry = ("throttle_restored", {"remarks": [], "left": {"resources": []}})
E: Entry = ("elect_start", {})
ED: Entry = ("elect_done", {"failed": {"a-1": "why"}})
P: Entry = ("pause", {"now": False, "pid": 5})
NOW: Entry = ("pause", {"now": True, "pid": 5})
BC: Entry = ("batch_cancel", {"batch": 0})
BCD: Entry = ("batch_cancelled", {"batch": 0, "taken_back": 2})
GO: Entry = ("resume", {"pid": 6})
SLOW: Entry = ("resume", {"pid": 6, "rate_bytes": 500})
C: Entry = ("cancel_start", {"pid": 7})
CD: Entry = ("cancel_done", {"taken_back": 1})
END: Entry = ("end", {"outcome": "completed"})


def _journal(*entries: Entry, begin: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    first = {"step": "begin", "at": "T0", "pid": 4, **(begin or begin_entry(PLAN))}
    return [first, *({"step": step, "at": f"T{i}", **fields} for i, (step, fields) in enumerate(entries, 1))]


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        ([], "throttle_set"),
        ([S], "throttle_set"),
        ([S, D], "batch_start"),
        ([S, D, B0], "batch_start"),
        ([S, D, B0, B0_DONE], "batch_start"),
        ([S, D, B0, B0_DONE, B1, B1_DONE], "throttle_restore"),
        ([S, D, B0, B0_DONE, B1, B1_DONE, R], "throttle_restore"),
        ([S, D, B0, B0_DONE, B1, B1_DONE, R, RD], "elect_start"),
        ([S, D, B0, B0_DONE, B1, B1_DONE, R, RD, E], "elect_start"),
        ([S, D, B0, B0_DONE, B1, B1_DONE, R, RD, E, ED], "end"),
        ([S, D, B0, B0_DONE, B1, B1_DONE, R, RD, E, ED, END], None),
        # pausing: the batch ends, then the throttle goes, then nothing
        ([S, D, B0, P], "batch_start"),
        ([S, D, B0, P, B0_DONE], "throttle_restore"),
        ([S, D, B0, P, B0_DONE, R, RD], None),
        ([S, D, B0, P, B0_DONE, R, RD, GO], "throttle_set"),
        ([P], None),
        # pausing now: the batch goes back
        ([S, D, B0, NOW], "batch_cancel"),
        ([S, D, B0, P, NOW], "batch_cancel"),
        ([S, D, B0, NOW, BC], "batch_cancel"),
        ([S, D, B0, NOW, BC, GO], "batch_cancel"),  # what was begun is finished before the batch begins again
        ([S, D, B0, NOW, BC, BCD], "throttle_restore"),
        ([S, D, B0, NOW, BC, BCD, R, RD], None),
        ([S, D, B0, NOW, BC, BCD, R, GO], "throttle_restore"),
        ([S, D, B0, NOW, BC, BCD, R, RD, GO], "throttle_set"),
        ([S, D, B0, NOW, BC, BCD, R, RD, GO, S, D], "batch_start"),
        # another rate
        ([S, D, B0, SLOW], "throttle_set"),
        ([S, D, B0, SLOW, SLOWER], "throttle_set"),
        ([S, D, B0, SLOW, SLOWER, D], "batch_start"),
        ([S, D, B0, ("resume", {"rate_bytes": None})], "throttle_restore"),
        ([S, D, B0, ("resume", {"rate_bytes": None}), R, RD], "batch_start"),
        # cancelling, from anywhere
        ([C], "cancel_start"),
        ([S, C], "cancel_start"),
        ([S, D, B0, C], "cancel_start"),
        ([S, D, B0, C, CD], "throttle_restore"),
        ([S, D, B0, C, CD, R], "throttle_restore"),
        ([S, D, B0, C, CD, R, RD], "end"),
        ([S, D, B0, NOW, BC, C], "cancel_start"),
        ([S, D, B0, C, GO], "cancel_start"),  # resume goes on with cancelling
        ([C, CD], "end"),
        # brokers that are down keep their throttle: tried again by the next resume, also after the end
        ([S, D, B0, C, CD, R, LEFT], "end"),
        ([S, D, B0, C, CD, R, LEFT, END], None),
        ([S, D, B0, C, CD, R, LEFT, END, GO], "throttle_restore"),
        ([S, D, B0, C, CD, R, LEFT, END, GO, RD], "end"),
        ([S, D, B0, P, B0_DONE, R, LEFT, GO], "throttle_restore"),
        ([S, D, B0, P, B0_DONE, R, LEFT, GO, LEFT], "throttle_set"),
    ],
)  # fmt: skip
def test_next_step(entries: list[Entry], wanted: str | None) -> None:
    assert next_step(replay(_journal(*entries))) == wanted


@pytest.mark.parametrize(
    ("entries", "wanted"), [([], "batch_start"), ([B0, B0_DONE, B1, B1_DONE], "elect_start"), ([SLOW], "throttle_set")]
)
def test_next_step_without_a_throttle(entries: list[Entry], wanted: str) -> None:
    assert next_step(replay(_journal(*entries, begin=NO_THROTTLE))) == wanted


def test_what_the_run_before_left_is_tried_at_the_end() -> None:
    begin = {**NO_THROTTLE, "throttle_left": {"resources": []}}
    assert next_step(replay(_journal(begin=begin))) == "batch_start"
    assert next_step(replay(_journal(B0, B0_DONE, B1, B1_DONE, begin=begin))) == "throttle_restore"
    assert next_step(replay(_journal(B0, B0_DONE, B1, B1_DONE, R, LEFT, begin=begin))) == "elect_start"


def test_no_election_unless_asked() -> None:
    begin = {**NO_THROTTLE, "elect": False}
    assert next_step(replay(_journal(B0, B0_DONE, B1, B1_DONE, begin=begin))) == "end"


def test_state() -> None:
    state = replay(_journal(S, D, B0, B0_DONE, B1))
    assert (state.batches_done, state.batch, state.batch_open) == (1, 1, True)
    assert (state.throttle_phase, state.throttle_rate, state.pid) == (ThrottlePhase.ON, 1000, 4)
    assert (state.began_at, state.last_at) == ("T0", "T5")
    state = replay(_journal(S, D, B0, NOW, BC, BCD, R, RD))
    assert (state.mode, state.batch_open, state.taken_back, state.remarks) == (Mode.PAUSED, False, 2, ["x"])
    assert state.pid == 5
    assert replay(_journal(S, D, B0, NOW, BC, BCD, R, RD, C, CD)).taken_back == 3, "before and by the cancellation"
    assert replay(_journal(S, D, B0, NOW, BC, BCD, R, RD, GO)).taken_back == 0
    state = replay(_journal(B0, B0_DONE, B1, B1_DONE, E, ED, END, begin=NO_THROTTLE))
    assert (state.batch, state.not_elected, state.outcome) == (None, {"a-1": "why"}, "completed")


@pytest.mark.parametrize(
    "entries",
    [
        [B1],
        [B0_DONE],
        [B0, B1_DONE],
        [B0, B0_DONE, B0],
        [END, B0],
        [END, GO],
        [("begin", {})],
        [("nonsense", {})],
        [("batch_start", {})],
        [("throttle_set", {"rate_bytes": 1, "throttle": []})],
        [("throttle_set", {"throttle": {}})],
        [("elect_done", {"failed": 3})],
    ],
)
def test_entries_that_do_not_fit(entries: list[Entry]) -> None:
    with pytest.raises(InvalidFile):
        replay(_journal(*entries))


def test_every_step_is_replayed_by_the_tables_above() -> None:
    """So that a new step gets its rows."""
    names = {row[0] for row in (S, D, B0, B0_DONE, R, RD, E, ED, P, BC, BCD, GO, C, CD, END)}
    assert names | {"begin"} == {step.value for step in RunStep}


def test_the_plan_survives() -> None:
    assert plan_of({"step": "begin", **begin_entry(PLAN)}) == PLAN


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2}, {"kind": "other"}, {"batches": [[7]]}, {"batches": 3}, {"partitions": [[0, 0]]},
        {"partitions": [[9, 0, [1], [2], None, None, None]]}, {"partitions": [[0, "x", [1], [2], None, None, None]]},
        {"topics": 1}, {"throttle_bytes": "much"}, {"remove_brokers": None},
    ],
)  # fmt: skip
def test_first_entries_that_are_wrong(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidFile):
        replay(_journal(begin={**begin_entry(PLAN), **change}))
    with pytest.raises(InvalidFile):
        replay([])
    with pytest.raises(InvalidFile):
        replay(_journal(B0)[1:])
