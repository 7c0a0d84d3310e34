"""Progress of reads of a store: steps of each phase, other processes, and lines without a terminal. No real waiting."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from kctl.commands.app import main
from kctl.commands.history.engine import shown
from kctl.commands.terminal import output_progress
from kctl.history.evaluate.group_ranges import GroupRange
from kctl.history.evaluate.processes import each_share
from kctl.history.lag.evaluate import evaluate
from kctl.history.lag.plan import LagPlan, LagRequest, plan_span
from kctl.history.report.build import report_of
from kctl.history.retention.store_reads import reads_of
from kctl.history.rollups.catch_up import catch_up
from kctl.history.snapshots import read_progress, schema
from kctl.history.snapshots.commit import put_pass
from kctl.history.snapshots.layout import HOUR_MS
from kctl.history.snapshots.passes import passes
from kctl.history.snapshots.read import read_sorted
from kctl.history.snapshots.read_progress import ReadProgress, ReadStep, observed
from kctl.history.snapshots.store import Store, create_store
from kctl.lag.selection import EVERY, names_of
from report_stores import START_MS, a_pass, at_ms

pytestmark = pytest.mark.usefixtures("one_command_tree")
MINUTES = (0, 30, 60, 90, 120, 150)  # passes in three hours
SPAN = (START_MS, START_MS + 3 * HOUR_MS)
READ = ("--from", "2026-09-21T14:00:00Z", "--to", "2026-09-21T17:00:00Z")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return _store(tmp_path_factory.mktemp("progress") / "store")


def _store(root: Path) -> Store:
    made = create_store(root, "c")
    for minute in MINUTES:
        put_pass(made, at_ms(minute), at_ms(minute) + 50, a_pass(minute), interval_ms=30 * 60_000)
    return made


@pytest.fixture
def steps() -> Iterator[list[str]]:
    """Every step of the reads of the test."""
    found: list[str] = []
    with observed(ReadProgress(lambda step: found.append(str(step)), every_s=0)):
        yield found


def _plan(store: Store, request: LagRequest | None = None) -> LagPlan:
    return plan_span(store.root, *SPAN, request or LagRequest(EVERY, EVERY))


# --- steps ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (ReadStep("reading commits", 312, 1720, "files"), "reading commits: 312 of 1,720 files"),
        (ReadStep("evaluating groups", 12_000, None, "partitions"), "evaluating groups: 12,000 partitions"),
    ],
)
def test_a_step_in_words(step: ReadStep, text: str) -> None:
    assert str(step) == text


def test_steps_are_shown_from_time_to_time() -> None:
    now = 100.0
    found: list[int] = []
    progress = ReadProgress(lambda step: found.append(step.done), clock=lambda: now, every_s=1.0)
    for done in range(10):
        progress.report(ReadStep("x", done, 10, "files"))
        now += 0.25
    assert found == [0, 4, 8]


def test_counted_units_never_exceed_the_total() -> None:
    found: list[ReadStep] = []
    progress = ReadProgress(found.append, every_s=0)
    progress.begin("x", 5, "partitions")
    progress.advance(3)
    progress.advance(3)
    assert [(step.done, step.total) for step in found] == [(3, 5), (5, 5)]


def test_without_an_observer_nothing_is_reported() -> None:
    assert read_progress.observer() is None
    read_progress.begin("x", 5, "partitions")
    read_progress.advance(1)
    read_progress.report("x", 1, 5, "files")


def test_a_display_gets_words_and_numbers() -> None:
    updates: list[tuple[object, ...]] = []
    progress = shown(SimpleNamespace(update=lambda *values: updates.append(values)))
    assert progress is not None
    progress.report(ReadStep("reading commits", 1, 4, "files"))
    assert updates == [("reading commits: 1 of 4 files", 1, 4)]
    assert shown(None) is None


# --- reads ----------------------------------------------------------------------------------------------------------


def test_tables_are_read_by_hours(store: Store, steps: list[str]) -> None:
    assert len(passes(store, *SPAN, damaged=lambda _: None)) == len(MINUTES)
    assert steps == [f"reading passes: {hour} of 3 hours" for hour in range(3)]


def test_merged_tables_are_read_by_files(store: Store, steps: list[str]) -> None:
    rows = sum(batch.num_rows for batch in read_sorted(store, schema.COMMITS, *SPAN, damaged=lambda _: None))
    assert rows
    assert steps == [f"reading commits: {number} of 6 files" for number in range(1, 7)]


def test_one_file_is_no_long_read(store: Store, steps: list[str]) -> None:
    list(read_sorted(store, schema.COMMITS, START_MS, START_MS + 1, damaged=lambda _: None))
    passes(store, START_MS, START_MS + HOUR_MS, damaged=lambda _: None)
    assert steps == []


def test_a_lag_report_counts_partitions(store: Store, steps: list[str]) -> None:
    rows, _ = evaluate(_plan(store))
    assert len(rows) == 10  # two more than in the last pass, of a group that is gone
    assert "reading passes: 2 of 3 hours" in steps
    assert "checking files: 2 of 3 hours" in steps
    assert steps[-5:] == [f"evaluating groups: {done} of 8 partitions" for done in (2, 4, 6, 8, 8)]


def test_the_total_is_unknown_for_selected_names(store: Store, steps: list[str]) -> None:
    rows, _ = evaluate(_plan(store, LagRequest(names_of(["stopped"]), EVERY)))
    assert len(rows) == 2
    assert steps[-1] == "evaluating groups: 2 partitions"


def test_a_retention_report_counts_partitions(store: Store, steps: list[str]) -> None:
    reads = reads_of(str(store.root), *SPAN)
    outlook, _ = reads.outlook()
    assert "reading replicas: 6 of 6 files" in steps
    assert "evaluating replicas: 4 of 4 partitions" in steps
    assert reads.readers(outlook)
    assert steps[-1] == "evaluating groups: 8 partitions"


def test_a_report_shows_groups_and_disks(store: Store, steps: list[str]) -> None:
    report_of(_plan(store), made_at=datetime.fromtimestamp(SPAN[1] / 1000, timezone.utc))
    assert steps.index("evaluating groups: 8 of 8 partitions") < steps.index("evaluating replicas: 4 of 4 partitions")


def test_rollups_count_hours_and_no_files_within(tmp_path: Path, steps: list[str]) -> None:
    made = catch_up(_store(tmp_path / "store"))
    assert made.hours == 2
    assert [step for step in steps if "rolling" in step] == [f"rolling up: {done} of 2 hours" for done in range(3)]
    assert not [step for step in steps if "files" in step]


def test_other_processes_are_counted(steps: list[str]) -> None:
    """The first share is evaluated here, the others by processes that send what they have finished."""
    read_progress.begin("evaluating groups", 44, "partitions")
    each_share(read_progress.advance, [1, 41, 2])
    assert steps[-1] == "evaluating groups: 44 of 44 partitions"


def test_shares_of_a_store_in_processes(store: Store, steps: list[str]) -> None:
    shares = (GroupRange(None, "keeps-up"), GroupRange("keeps-up", None))
    evaluate(dataclasses.replace(_plan(store), ranges=shares[:1]))
    here = steps[-1]
    evaluate(dataclasses.replace(_plan(store), ranges=shares))
    assert here == "evaluating groups: 4 of 8 partitions"
    assert "evaluating groups: 6 of 8 partitions" in steps


# --- commands -------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[str, list[str]]]:
    """run(*args, tick_s=…): stdout and the lines on stderr, if each look at the clock takes tick_s."""
    monkeypatch.setattr(read_progress, "_EVERY_S", 0.0)

    def call(*args: str, tick_s: float) -> tuple[str, list[str]]:
        clock = itertools.count(0.0, tick_s)
        monkeypatch.setattr(output_progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        assert main([*args]) == 0
        out, err = capsys.readouterr()
        return out, err.splitlines()

    return call


COMMANDS = {
    "lag": ("lag", *READ),
    "retention": ("retention", "--to", "2026-09-21T17:00:00Z", "--last", "3h"),
    "report": ("report", *READ),
    "trends": ("trends",),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_without_a_terminal_a_long_read_prints_lines(
    tmp_path: Path, run: Callable[..., tuple[str, list[str]]], name: str
) -> None:
    command, *options = COMMANDS[name]
    args = ("history", command, "--store", str(_store(tmp_path / "store").root), *options)
    _, lines = run(*args, tick_s=20.0)
    progress = [line for line in lines if re.fullmatch(r"[a-z ]+: \d+ of \d+ (files|hours|partitions) \(\d+ %\)", line)]
    assert len(progress) >= 2
    out, quiet = run(*args, tick_s=0.001)
    assert out
    assert not [line for line in quiet if " of " in line], "a short read prints nothing"
    again, _ = run(*args, tick_s=20.0)
    assert again == out, "progress is never on stdout"


def test_the_first_line_is_due_after_seconds_and_the_next_ones_every_half_minute(
    store: Store, run: Callable[..., tuple[str, list[str]]]
) -> None:
    args = ("history", "lag", "--store", str(store.root), *READ)
    _, often = run(*args, tick_s=31.0)
    _, rare = run(*args, tick_s=1.0)
    assert len(often) > 10
    assert 1 <= len(rare) <= 2
