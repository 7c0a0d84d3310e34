"""Journals of runs: one unfinished one for a cluster, found by the end of each file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kctl.base import journal
from kctl.errors import Busy, Refused
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run import journals, outcome
from kctl.reassign.run.journals import RunRequest
from kctl.reassign.run.reached import BrokerLeft, NotReached, PlanPositions
from kctl.reassign.run.run_plan import RunPlan
from kctl.reassign.run.run_status import last_run
from kctl.reassign.run.steps import RunState, replay

ROW = Reassignment("t", 0, after=(2,), before=(1,))


def _plan(partitions: int = 1, cluster_id: str = "c1") -> RunPlan:
    rows = tuple(Reassignment("t", number, after=(2,), before=(1,)) for number in range(partitions))
    return RunPlan("apply", "p.json", "d", cluster_id, "dev", rows, (tuple(range(partitions)),))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "kctl" / "reassignments"


def _ended(held: journal.Journal) -> Path:
    with held:
        held.append("end", outcome="completed", result={})
    return held.path


def test_a_clock_that_was_set_back(state: Path) -> None:
    """The completed run has a name of the future; the one that was killed is the one to be shown and gone on with."""
    done = _ended(journals.begin(_plan()))
    done.rename(done.with_name("20990101T000000.000Z-1.jsonl"))
    killed = journals.begin(_plan())
    killed.close()
    assert journals.runs("c1")[0] == killed.path
    assert journals.newest("c1") == last_run("c1").path == killed.path
    done = _ended(journal.resume(killed.path))
    assert journals.newest("c1") == done, "of those that have ended the one that was begun last"


def test_a_run_that_has_not_ended_comes_first_whatever_its_name() -> None:
    killed = journals.begin(_plan())
    killed.close()
    later = killed.path.with_name("20990101T000000.000Z-1.jsonl")
    with journal.create(later) as held:
        held.append("begin")
        held.append("end")
    assert journals.newest("c1") == killed.path


@pytest.mark.parametrize("kind", ["fifo", "writable", "link"])
def test_a_request_that_somebody_else_may_have_left_is_none(state: Path, kind: str) -> None:
    with journals.begin(_plan()) as held:
        journals.write_request(held.path, RunRequest.PAUSE)
        assert journals.read_request(held.path) is RunRequest.PAUSE
        beside = held.path.with_suffix(".request")
        if kind == "writable":
            beside.chmod(0o666)
        else:
            beside.unlink()
            os.mkfifo(beside) if kind == "fifo" else beside.symlink_to("/dev/zero")
        assert journals.read_request(held.path) is None


@pytest.mark.parametrize("partitions", [1, 20_000], ids=["short", "longer than what is read of the end"])
def test_one_unfinished_run(partitions: int) -> None:
    assert journals.unfinished("c1") is None
    with journals.begin(_plan(partitions)) as held:
        assert journals.unfinished("c1") == held.path
        with pytest.raises(Busy, match=rf"is running \(pid {os.getpid()}\), started at 2.*: apply of p.json \(run 2"):
            journals.begin(_plan())
        journals.begin(_plan(cluster_id="c2")).close()
    with pytest.raises(Refused, match=r"has not ended, started at 2.*: apply of p.json"):
        journals.begin(_plan())
    with journal.resume(held.path) as again:
        again.append("end", outcome="completed", result={})
    assert journals.unfinished("c1") is None
    with journals.begin(_plan()) as second:
        assert journals.runs("c1") == [second.path, held.path], "the newest first"
    assert replay(journal.read(held.path)).outcome == "completed"


def test_a_run_that_was_killed_while_it_began_is_none(state: Path) -> None:
    with journals.begin(_plan(20_000)) as held:
        path = held.path
    whole = path.read_bytes()
    for cut in (0, 1, 1000, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert journals.runs("c1") == [], cut
        assert journals.unfinished("c1") is None
    journals.begin(_plan()).close()
    assert len(journals.runs("c1")) == 1


def test_a_torn_end_is_no_end() -> None:
    with journals.begin(_plan()) as held:
        held.append("end", outcome="completed", result={})
    held.path.write_bytes(held.path.read_bytes()[:-1])
    assert journals.unfinished("c1") == held.path


@pytest.mark.parametrize("cluster_id", ["../../etc", "a/b", "", "x" * 300, "é"])
def test_cluster_ids_cannot_leave_the_folder(state: Path, cluster_id: str) -> None:
    with journals.begin(_plan(cluster_id=cluster_id)) as held:
        assert held.path.parent.parent == state
        assert journals.unfinished(cluster_id) == held.path


def test_requests() -> None:
    with journals.begin(_plan()) as held:
        assert journals.read_request(held.path) is None
        journals.withdraw_request(held.path)
        for request in RunRequest:
            journals.write_request(held.path, request)
            assert journals.read_request(held.path) is request
        held.path.with_suffix(".request").write_bytes(b"\xff nonsense" * 100)
        assert journals.read_request(held.path) is None
        journals.withdraw_request(held.path)
        assert journals.read_request(held.path) is None
        assert journals.runs("c1") == [held.path], "a request is no journal"


def test_two_that_begin_at_once(state: Path) -> None:
    """Only one of many processes gets to begin."""
    program = (
        "import sys, time\nfrom kctl.errors import Busy, Refused\nfrom kctl.reassign.run import journals\n"
        "from kctl.reassign.run.run_plan import RunPlan\n"
        "sys.stdin.readline()\n"
        "try:\n    journals.begin(RunPlan('apply', 'p', 'd', 'c1', 'dev', (), ()))\n    print('began')\n"
        "except Refused:\n    print('refused')\n"
    )
    many = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ
        )
        for _ in range(4)
    ]
    said = sorted(process.communicate("go\n", timeout=60)[0].strip() for process in many)
    assert said == ["began", "refused", "refused", "refused"]


def test_the_result_that_a_journal_keeps_is_read_again() -> None:
    """Its keys are those of earlier releases, whatever the fields are called now."""
    found = PlanPositions(4, 1, 1, 1, 1, [NotReached("t", 0, "before", "…")])
    left = [BrokerLeft(3, 2, ["t-0"], 1)]
    entry = outcome._entry(found, left)
    assert [entry[key] for key in ("partitions", "reached", "in_flight", "as_before", "elsewhere")] == [4, 1, 1, 1, 1]
    state = cast("RunState", SimpleNamespace(end={"result": json.loads(json.dumps(entry))}))
    assert outcome._from_entry(state) == (found, left)
