"""Sentences before and after runs: questions with figures, and the next commands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kctl.commands.reassign.tables import (
    moved_note,
    next_steps,
    progress_line,
    question,
    rest_line,
    sentences,
    would_cancel,
    would_pause,
)
from kctl.commands.reassign.verify import _tables as verification_tables
from kctl.commands.terminal import output
from kctl.errors import Refused
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.operations import refuse_second_rollback
from kctl.reassign.run.outcome import RunResult
from kctl.reassign.run.prepare import RunPreview
from kctl.reassign.run.progress import MovePhase, RunProgress
from kctl.reassign.run.reached import BrokerLeft, NotReached
from kctl.reassign.run.run_plan import RunPlan
from kctl.reassign.run.run_status import RunSummary
from kctl.reassign.run.steps import Mode, ReassignmentOutcome, ReassignmentPhase, RunState
from kctl.reassign.run.verify import PlanVerification, ThrottleLeft

PREVIEW = RunPreview("apply", "newc", 4, 0, 12, 1_700_000, 0, 0, 0, 2, None, None, [])
PLAN = RunPlan("apply", "p.json", "d", "c1", "newc", (Reassignment("t", 0, after=(2,), before=(1,)),), ((0,),))
VERIFICATION = PlanVerification(False, 3, 0, 0, 0, 0, [NotReached("t", 0, "before", "…")], [], [])


@pytest.mark.parametrize(
    ("shown", "source", "expected"),
    [
        (PREVIEW, "p.json", "Move 12 replicas (1.7 MB) on newc?"),
        (replace(PREVIEW, unknown_sizes=1), "p.json", "Move 12 replicas (1.7 MB and more) on newc?"),
        (replace(PREVIEW, moves=0), "p.json", "Move the replicas of 4 partitions on newc, copying nothing?"),
        (
            replace(PREVIEW, moves=0, removed_replicas=4),
            "p.json",
            "Remove 4 replicas of 4 partitions on newc, copying nothing?",
        ),
        (replace(PREVIEW, removed_replicas=1), "p.json", "Move 12 replicas (1.7 MB) and remove 1 on newc?"),
        (
            replace(PREVIEW, kind="rollback", moves=0, removed_replicas=1),
            "p.json",
            "Roll back p.json: remove 1 replica of 4 partitions on newc, copying nothing?",
        ),
        (replace(PREVIEW, kind="rollback", moves=1), "p.json", "Roll back p.json: move 1 replica (1.7 MB) on newc?"),
    ],
)
def test_questions_have_figures(shown: RunPreview, source: str, expected: str) -> None:
    assert question(shown, source) == expected


@pytest.mark.parametrize(
    ("shown", "texts"),
    [
        (PREVIEW, ["4 partitions in 2 batches: 12 replicas are copied, 1.7 MB"]),
        (replace(PREVIEW, reorders=1),
         ["4 partitions in 2 batches: 12 replicas are copied, 1.7 MB; nothing to copy for 1 partition"]),
        (replace(PREVIEW, moves=0, reorders=4, removed_replicas=4),
         ["4 partitions in 2 batches: nothing is copied",
          "4 replicas are removed: their partitions have fewer afterwards"]),
    ],
)  # fmt: skip
def test_sentences_of_a_preview(shown: RunPreview, texts: list[str]) -> None:
    assert sentences(shown)[: len(texts)] == texts


def test_a_rollback_is_not_rolled_back_by_accident() -> None:
    refuse_second_rollback(PLAN)
    with pytest.raises(Refused, match="itself a rollback"):
        refuse_second_rollback(replace(PLAN, kind="rollback"))


@pytest.mark.parametrize(
    ("verification", "started", "ways"),
    [
        (replace(VERIFICATION, as_before=3), False, ["not started on this machine"]),
        (replace(VERIFICATION, as_before=3), True, ["carry out the rest with"]),
        (replace(VERIFICATION, in_flight=3), True, ["complete by themselves"]),
        (replace(VERIFICATION, in_flight=1, elsewhere=2), True, ["complete by themselves", "make a new plan"]),
        (
            replace(VERIFICATION, failures=[], brokers_left=[BrokerLeft(4, 2, ["t-0"])]),
            True,
            ["plan --remove-broker 4`"],
        ),
        (
            replace(VERIFICATION, failures=[], brokers_left=[BrokerLeft(4, 2, ["t-0"], 2)]),
            True,
            ["2 partitions without a l"],
        ),
        (replace(VERIFICATION, as_before=1, brokers_left=[BrokerLeft(4, 2, ["t-0"])]), True, ["carry out the rest"]),
    ],
)
def test_next_steps(verification: PlanVerification, started: bool, ways: list[str]) -> None:
    texts = next_steps(verification, started=started)
    assert len(texts) == len(ways)
    assert all(part in line for part, line in zip(ways, texts, strict=True)), texts


RUN = RunSummary(
    "apply", ReassignmentPhase.RUNNING, True, 7, "j", "p.json", "T0", "T1", 3, 1, 4, 1, 2, 1, 0, None, "…", [], []
)
STATE = RunState(PLAN, "T0", "T1", 7, 500)


def test_dry_runs() -> None:
    assert would_cancel(RUN) == "2 partitions in flight return, 1 that was moved stays"
    assert would_pause(RUN, now=True).startswith("would cancel 2 partitions in flight, then pause apply of p.json")
    assert "complete batch 2 of 3" in would_pause(RUN, now=False)
    assert "before batch 2 of 3" in would_pause(replace(RUN, in_flight=0), now=False)
    assert would_pause(replace(RUN, state=ReassignmentPhase.PAUSED), now=False) == "apply of p.json is already paused"


def test_rest_of_a_run() -> None:
    assert rest_line(STATE, rate_bytes=500) == (
        "apply of p.json: 1 replica (0 B) in 1 of 1 batch left, at 500 B/s per broker"
    )
    assert rest_line(STATE, rate_bytes=None).endswith("without a throttle")
    assert "the final steps remain" in rest_line(replace(STATE, batches_done=1), rate_bytes=None)
    assert "being canceled" in rest_line(replace(STATE, mode=Mode.CANCELLED), rate_bytes=None)


@pytest.mark.parametrize(
    ("kind", "reached", "texts"),
    [
        ("apply", 1, "1 partition was already moved and stays; to move it back: `kctl topic reassign rollback`"),
        (
            "apply",
            1200,
            "1,200 partitions were already moved and stay; to move them back: `kctl topic reassign rollback`",
        ),
        ("rollback", 1, "1 partition was already moved and stays; to roll back the others as well: `kctl topic"),
    ],
)
def test_moved_partitions_of_a_cancelled_run(kind: str, reached: int, texts: str) -> None:
    result = RunResult(
        ReassignmentOutcome.CANCELLED, kind, "c", 9, reached, 0, 0, 0, 0, 1, 1, [], {}, [], [], [], None, None, None
    )  # fmt: skip
    assert moved_note(result).startswith(texts)


def test_progress_lines() -> None:
    progress = RunProgress(MovePhase.COPYING, 2, 7, 3, 4, 900, 1000, 100.0, 1000)
    assert progress_line(progress) == "copying 3/4, batch 2/7: 900 B of 1 kB, 100 B/s, 1s left"
    assert progress_line(replace(progress, phase=MovePhase.SYNCING, batches=1)) == "waiting for in-sync replicas 3/4"
    removal = RunProgress(MovePhase.REMOVING, 1, 1, 3, 40, 0, 0, None, None)
    assert progress_line(removal) == "removing replicas 3/40"


def test_a_verification_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    setting, log_dirs = "leader.replication.throttled.replicas", "replica.alter.log.dirs.io.max.bytes.per.second"
    verification = replace(
        VERIFICATION,
        failures=[NotReached("orders", 0, "before", "orders-0: its replicas are unchanged: 1,2")],
        throttles_left=[
            ThrottleLeft("topic", "orders", setting, ",".join(f"{n}:1" for n in range(40)), None),
            ThrottleLeft("broker", "3", log_dirs, "50000000", None),
        ],
    )
    output.emit(verification, lambda: verification_tables(verification), None)
    shown = capsys.readouterr().out
    assert "orders-0" not in shown
    assert "0:1,1:1,2:1 and 37 more" in shown
    assert "0  before    its replicas are unchanged: 1,2" in shown
