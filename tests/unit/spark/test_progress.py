"""Progress of a Spark job: tasks in the words of other long reads, and lines without a terminal. No Spark runs."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.base.deadline import Deadline
from kctl.commands.history.engine import NO_PARQUET
from kctl.commands.spark import engine
from kctl.commands.terminal import output_progress
from kctl.history.snapshots import read_progress
from kctl.spark import watching


def _context(*stages: tuple[int, int] | None) -> Any:
    """Return a SparkContext with these active stages: completed tasks, all tasks; None: a stage that has just ended."""
    infos = [each and SimpleNamespace(numCompletedTasks=each[0], numTasks=each[1]) for each in stages]
    tracker = SimpleNamespace(getActiveStageIds=lambda: list(range(len(infos))), getStageInfo=infos.__getitem__)
    return SimpleNamespace(statusTracker=lambda: tracker)


@pytest.mark.parametrize(
    ("stages", "updates"),
    [
        ([(5, 16)], [("reading snapshots: 5 of 16 tasks", 5, 16)]),
        ([(5, 16), (1, 4), None], [("reading snapshots: 6 of 20 tasks", 6, 20)]),
        ([], []),
        ([None], []),
    ],
)
def test_tasks_of_the_running_stages(stages: list[tuple[int, int] | None], updates: list[tuple[str, int, int]]) -> None:
    found: list[tuple[Any, ...]] = []
    watching._show(_context(*stages), "reading snapshots", SimpleNamespace(update=lambda *each: found.append(each)))
    assert found == updates


@pytest.mark.parametrize(
    ("verbose", "lines_every_s", "displayed"), [(False, 30.0, True), (False, None, False), (True, 30.0, False)]
)
def test_a_display_without_a_terminal(*, verbose: bool, lines_every_s: float | None, displayed: bool) -> None:
    inv: Any = SimpleNamespace(verbose=verbose)
    with engine.starting(inv, lines_every_s=lines_every_s) as progress:
        assert (progress is not None) is displayed


def test_without_a_terminal_lines_begin_seconds_after_the_start_of_spark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark itself takes longer to start than the first line would."""
    clock = itertools.count(0.0, 2.0)
    monkeypatch.setattr(output_progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(read_progress, "_EVERY_S", 0.0)
    with engine.starting(SimpleNamespace(verbose=False), lines_every_s=30.0) as progress:  # type: ignore[arg-type] # a fake
        for _ in range(20):
            next(clock)  # Spark starts
        run = engine._SparkRun(SimpleNamespace(), progress, Deadline(1.0), NO_PARQUET, 1)  # type: ignore[arg-type] # a fake
        with run._display("reading snapshots") as display:
            watching._show(_context((0, 4)), "reading snapshots", display)  # type: ignore[arg-type] # not None
            assert capsys.readouterr().err == ""
            read_progress.report("reading passes", 3, 720, "hours")
            watching._show(_context((1, 4)), "reading snapshots", display)  # type: ignore[arg-type] # not None
    out, err = capsys.readouterr()
    assert (out, err) == ("", "reading snapshots: 1 of 4 tasks (25 %)\n")


@pytest.mark.parametrize(("master", "expected"), [(None, 30.0), ("spark://h:7077", None)])
def test_spark_submit_would_merge_progress_lines_into_the_result(
    master: str | None, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kctl.commands.history.engine import lines_every_s
    from kctl.spark.submitted import MASTER_VARIABLE

    monkeypatch.delenv(MASTER_VARIABLE, raising=False)
    if master is not None:
        monkeypatch.setenv(MASTER_VARIABLE, master)
    assert lines_every_s() == expected
