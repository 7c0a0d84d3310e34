"""What is said before and after runs: questions with their figures, and what to type for what is left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kctl.commands.reassign.tables import (
    progress_line,
    question,
    rest_line,
    sentences,
    stays,
    ways_on,
    would_cancel,
    would_pause,
)
from kctl.commands.reassign.verify import _tables as verification_tables
from kctl.commands.terminal import output
from kctl.errors import Refused
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.operations import refuse_second_rollback
from kctl.reassign.run.outcome import RunResult
from kctl.reassign.run.prepare import Preview
from kctl.reassign.run.progress import Progress
from kctl.reassign.run.reached import BrokerLeft, NotReached
from kctl.reassign.run.run_plan import RunPlan
from kctl.reassign.run.run_status import RunOverview
from kctl.reassign.run.steps import Mode, RunState
from kctl.reassign.run.verify import ThrottleLeft, Verification

PREVIEW = Preview("apply", "newc", 4, 0, 12, 1_700_000, 0, 0, 0, 2, None, None, [])
PLAN = RunPlan("apply", "p.json", "d", "c1", "newc", (Reassignment("t", 0, after=(2,), before=(1,)),), ((0,),))
FOUND = Verification(False, 3, 0, 0, 0, 0, [NotReached("t", 0, "before", "…")], [], [])


@pytest.mark.parametrize(
    ("shown", "source", "asked"),
    [
        (PREVIEW, "p.json", "Move 12 replicas (1.7 MB) on newc?"),
        (replace(PREVIEW, unknown_sizes=1), "p.json", "Move 12 replicas (1.7 MB and more) on newc?"),
        (replace(PREVIEW, moves=0), "p.json", "Move the replicas of 4 partitions on newc, without a copy?"),
        (
            replace(PREVIEW, moves=0, removed_replicas=4),
            "p.json",
            "Remove 4 replicas of 4 partitions on newc, and copy none?",
        ),
        (replace(PREVIEW, removed_replicas=1), "p.json", "Move 12 replicas (1.7 MB) and remove 1 on newc?"),
        (
            replace(PREVIEW, kind="rollback", moves=0, removed_replicas=1),
            "p.json",
            "Roll back p.json: remove 1 replica of 4 partitions on newc, and copy none?",
        ),
        (replace(PREVIEW, kind="rollback", moves=1), "p.json", "Roll back p.json: move 1 replica (1.7 MB) on newc?"),
    ],
)
def test_questions_have_figures(shown: Preview, source: str, asked: str) -> None:
    assert question(shown, source) == asked


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (PREVIEW, ["4 partitions in 2 batches: 12 replicas are copied, 1.7 MB"]),
        (replace(PREVIEW, reorders=1),
         ["4 partitions in 2 batches: 12 replicas are copied, 1.7 MB; nothing to copy for 1 partition"]),
        (replace(PREVIEW, moves=0, reorders=4, removed_replicas=4),
         ["4 partitions in 2 batches: nothing is copied", "4 replicas are removed: their partitions have fewer then"]),
    ],
)  # fmt: skip
def test_what_a_run_will_do(shown: Preview, said: list[str]) -> None:
    assert sentences(shown)[: len(said)] == said


def test_a_rollback_is_not_rolled_back_by_accident() -> None:
    refuse_second_rollback(PLAN)
    with pytest.raises(Refused, match="itself a rollback"):
        refuse_second_rollback(replace(PLAN, kind="rollback"))


@pytest.mark.parametrize(
    ("found", "begun", "ways"),
    [
        (replace(FOUND, as_before=3), False, ["apply PLAN` carries it out"]),
        (replace(FOUND, as_before=3), True, ["apply PLAN` carries out the rest"]),
        (replace(FOUND, in_flight=3), True, ["arrives by itself"]),
        (replace(FOUND, in_flight=1, elsewhere=2), True, ["arrives by itself", "a new plan"]),
        (replace(FOUND, failures=[], brokers_left=[BrokerLeft(4, 2, ["t-0"])]), True, ["plan --remove-broker 4`"]),
        (replace(FOUND, failures=[], brokers_left=[BrokerLeft(4, 2, ["t-0"], 2)]), True, ["2 partitions without a l"]),
        (replace(FOUND, as_before=1, brokers_left=[BrokerLeft(4, 2, ["t-0"])]), True, ["carries out the rest"]),
    ],
)
def test_what_to_type_for_what_is_left(found: Verification, begun: bool, ways: list[str]) -> None:
    said = ways_on(found, begun=begun)
    assert len(said) == len(ways)
    assert all(part in line for part, line in zip(ways, said, strict=True)), said


RUN = RunOverview("apply", "running", True, 7, "j", "p.json", "T0", "T1", 3, 1, 4, 1, 2, 1, 0, None, "…", [], [])
STATE = RunState(PLAN, "T0", "T1", 7, 500)


def test_what_a_dry_run_says() -> None:
    assert would_cancel(RUN) == "2 partitions in flight go back, 1 that was moved stays"
    assert would_pause(RUN, now=True).startswith(
        "it would take back 2 partitions in flight, then pause apply of p.json"
    )
    assert "let batch 2 of 3 end" in would_pause(RUN, now=False)
    assert "before batch 2 of 3" in would_pause(replace(RUN, in_flight=0), now=False)
    assert would_pause(replace(RUN, state="paused"), now=False) == "apply of p.json is paused already"


def test_what_a_run_has_left() -> None:
    assert rest_line(STATE, rate_bytes=500) == (
        "apply of p.json: 1 replica (0 B) in 1 of 1 batch left, at 500 B/s for each broker"
    )
    assert rest_line(STATE, rate_bytes=None).endswith("without a throttle")
    assert "is left is to end it" in rest_line(replace(STATE, batches_done=1), rate_bytes=None)
    assert "being cancelled" in rest_line(replace(STATE, mode=Mode.CANCELLED), rate_bytes=None)


@pytest.mark.parametrize(
    ("kind", "reached", "said"),
    [
        ("apply", 1, "1 partition had been moved and stays so; `kctl topic reassign rollback` takes it back"),
        ("apply", 1200, "1,200 partitions had been moved and stay so; `kctl topic reassign rollback` takes them back"),
        ("rollback", 1, "1 partition had been moved and stays so; `kctl topic reassign rollback PLAN` takes the other"),
    ],
)
def test_what_a_cancelled_run_leaves(kind: str, reached: int, said: str) -> None:
    result = RunResult(
        "cancelled", kind, "c", 9, reached, 0, 0, 0, 0, 1, 1, [], {}, [], [], [], None, None, None
    )  # fmt: skip
    assert stays(result).startswith(said)


def test_progress_lines() -> None:
    going = Progress(2, 7, 3, 4, 900, 1000, 100.0, 1000)
    assert progress_line(going) == "2/7: 900 B of 1 kB, 100 B/s, 1s left"
    assert progress_line(replace(going, done_bytes=1000, eta_ms=0)).endswith(", coming in sync")


def test_a_verification_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    setting, log_dirs = "leader.replication.throttled.replicas", "replica.alter.log.dirs.io.max.bytes.per.second"
    found = replace(
        FOUND,
        failures=[NotReached("orders", 0, "before", "orders-0: its replicas are 1,2 as before")],
        throttles_left=[
            ThrottleLeft("topic", "orders", setting, ",".join(f"{n}:1" for n in range(40)), None),
            ThrottleLeft("broker", "3", log_dirs, "50000000", None),
        ],
    )
    output.emit(found, lambda: verification_tables(found), None)
    shown = capsys.readouterr().out
    assert "orders-0" not in shown
    assert "0:1,1:1,2:1 and 37 more" in shown
    assert "0  before    its replicas are 1,2 as before" in shown
