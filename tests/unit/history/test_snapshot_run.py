"""The collector's pace, and what it does when a pass fails, the clock is put back, or the disk is full.

The clocks are the test's own: hours cannot be waited for.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kctl.errors import ConnectionRefused
from kctl.history.snapshots import run as module
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import AnotherCluster, Pass
from kctl.history.snapshots.commit import PassReport, put_pass
from kctl.history.snapshots.compact import compact
from kctl.history.snapshots.layout import HOUR_MS, DataFile, Hour
from kctl.history.snapshots.run import Schedule, SnapshotClock, run
from kctl.history.snapshots.store import create_store
from snapshot_stores import HOUR, a_pass, seen, store_with


class TestClock(SnapshotClock):
    """Time goes on only by sleeping and by `spend`."""

    __test__ = False

    def __init__(self, start_ms: int = HOUR.start_ms) -> None:
        self._start_ms = start_ms
        self.at_s = 0.0
        self.back_ms = 0

    def now_ms(self) -> int:
        return self._start_ms + round(self.at_s * 1000) - self.back_ms

    def steady_s(self) -> float:
        return 1000.0 + self.at_s

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.at_s += seconds


def collected(
    root: Path, clock: TestClock, look: Callable[[int], Pass], schedule: Schedule, keep_ms: int | None = None
) -> tuple[list[PassReport], list[str]]:
    told: list[str] = []
    store = create_store(root, "c")
    return list(run(store, look, schedule, warn=told.append, keep_ms=keep_ms, clock=clock)), told


def test_passes_are_due_at_whole_intervals(tmp_path: Path) -> None:
    clock = TestClock()

    def look(at_ms: int) -> Pass:
        clock.at_s += 0.3  # a pass takes time, and the pace does not drift by it
        return a_pass()

    reports, told = collected(tmp_path / "s", clock, look, Schedule(10, 60))
    assert [report.at.timestamp() * 1000 - HOUR.start_ms for report in reports] == [0, 10e3, 20e3, 30e3, 40e3, 50e3]
    assert {report.duration_ms for report in reports} == {300}
    assert all(report.stored and report.complete and not report.missed for report in reports)
    assert not told


def test_a_slow_pass_leaves_some_out_and_says_so(tmp_path: Path) -> None:
    clock = TestClock()
    takes = iter([1.0, 25.0, 1.0, 10.0, 1.0])

    def look(at_ms: int) -> Pass:
        clock.at_s += next(takes)
        return a_pass()

    reports, _ = collected(tmp_path / "s", clock, look, Schedule(10, 70))
    starts = [round(report.at.timestamp() * 1000 - HOUR.start_ms) // 1000 for report in reports]
    assert list(zip(starts, (report.missed for report in reports), strict=True)) == [
        (0, 0), (10, 0), (40, 2), (50, 0), (70, 1)
    ][: len(starts)]  # fmt: skip
    assert len(starts) == 4
    rows = seen(create_store(tmp_path / "s", "c"))[schema.PASSES]
    assert [(row[6], row[5]) for row in rows] == [(0, 10_000), (0, 10_000), (2, 10_000), (0, 10_000)]


def test_what_took_long_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that a pass took to be read is not all of it."""
    clock, put = TestClock(), put_pass

    def slow_disk(*args: Any, **settings: Any) -> PassReport:
        clock.at_s += 12
        return put(*args, **settings)

    def look(at_ms: int) -> Pass:
        clock.at_s += 1
        return a_pass()

    monkeypatch.setattr(module, "put_pass", slow_disk)
    first, second = collected(tmp_path / "s", clock, look, Schedule(10, 30))[0]
    assert (first.duration_ms, first.storing_ms, first.missed, first.missed_because) == (1000, 12_000, 0, None)
    assert second.missed == 1
    assert second.missed_because == "writing to the disk of the store took 12s in the previous pass"


def test_a_cluster_that_cannot_be_reached_is_a_pass_without_rows(tmp_path: Path) -> None:
    clock = TestClock()

    def look(at_ms: int) -> Pass:
        if at_ms == HOUR.start_ms + 10_000:
            raise ConnectionRefused("nobody listens")
        return a_pass()

    reports, _ = collected(tmp_path / "s", clock, look, Schedule(10, 30))
    assert [(report.stored, report.complete) for report in reports] == [(True, True), (True, False), (True, True)]
    found = seen(create_store(tmp_path / "s", "c"))
    assert [(row[2], row[3], row[4] == []) for row in found[schema.PASSES]] == [
        (True, [], False), (False, ["nobody listens"], True), (True, [], False)
    ]  # fmt: skip
    assert {row[0] - HOUR.start_ms for row in found[schema.COMMITS]} == {0, 20_000}


def test_another_cluster_at_the_address_ends_it(tmp_path: Path) -> None:
    def look(at_ms: int) -> Pass:
        raise AnotherCluster("other")

    with pytest.raises(AnotherCluster):
        collected(tmp_path / "s", TestClock(), look, Schedule(10, 30))
    assert seen(create_store(tmp_path / "s", "c")) == {}


def test_a_clock_put_back_over_a_compacted_hour(tmp_path: Path) -> None:
    """Its passes could not count; they are told and left out until the clock has come past."""
    root = tmp_path / "s"
    clock = TestClock(HOUR.end_ms - 20_000)
    collected(root, clock, lambda at_ms: a_pass(), Schedule(10, 40))
    store = create_store(root, "c")
    assert store.valid_files(HOUR).through_ms == HOUR.end_ms - 10_000
    before = seen(store)
    clock.back_ms = 25_000
    reports, _ = collected(root, clock, lambda at_ms: a_pass(), Schedule(10, 30))
    assert [report.stored for report in reports] == [False, True, True]
    assert reports[0].error is not None
    assert "the clock shows" in reports[0].error
    found = seen(store)
    assert all(set(before[table]) <= set(found[table]) for table in (schema.COMMITS, schema.GROUPS))
    assert len(found[schema.PASSES]) == len(before[schema.PASSES]) + 2


def test_a_full_disk_loses_passes_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = TestClock()
    real = os.fsync

    def fsync(fd: int) -> None:
        if 9 < clock.at_s < 21:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    reports, _ = collected(tmp_path / "s", clock, lambda at_ms: a_pass(), Schedule(10, 40))
    assert [report.stored for report in reports] == [True, False, False, True]
    assert all("No space left" in (report.error or "") for report in reports[1:3])
    found = seen(create_store(tmp_path / "s", "c"))
    assert {row[0] - HOUR.start_ms for row in found[schema.COMMITS]} == {0, 30_000}


def test_hours_that_ended_are_compacted_and_old_ones_removed(tmp_path: Path) -> None:
    root, clock = tmp_path / "s", TestClock()
    reports, told = collected(root, clock, lambda at_ms: a_pass(), Schedule(1200, 3 * 3600 + 1), keep_ms=HOUR_MS)
    assert not told
    store = create_store(root, "c")
    hours = store.hours()
    assert hours == [Hour(HOUR.start_ms + 2 * HOUR_MS), Hour(HOUR.start_ms + 3 * HOUR_MS)]
    assert store.valid_files(hours[0]).files == (DataFile(hours[0].start_ms + 2_400_000, compacted=True),)
    assert len(store.valid_files(hours[1]).files) == 1
    assert len(reports) == 10


def test_housekeeping_ends_when_a_pass_is_due_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its steps takes three seconds here; passes stay at their times, and all hours get compacted."""
    root = tmp_path / "s"
    for hour in range(3):
        store_with(root, [hour * HOUR_MS, hour * HOUR_MS + 10])
    clock = TestClock(HOUR.start_ms + 3 * HOUR_MS)
    real = compact

    def slow(store: object, hour: Hour) -> object:
        for _ in real(store, hour):  # type: ignore[arg-type]
            clock.at_s += 3
            yield

    monkeypatch.setattr(module, "compact", slow)
    reports, _ = collected(root, clock, lambda at_ms: a_pass(), Schedule(10, 100))
    assert [round(r.at.timestamp() * 1000 - HOUR.start_ms - 3 * HOUR_MS) for r in reports][:3] == [0, 12_000, 21_000]
    store = create_store(root, "c")
    assert all(len(store.valid_files(hour).files) == 1 for hour in store.hours()[:3])


def test_a_bad_file_keeps_its_hour_and_is_told_once(tmp_path: Path) -> None:
    root = tmp_path / "s"
    store = store_with(root, [0, 10])
    bad = store.folder(schema.COMMITS, HOUR) / DataFile(HOUR.start_ms, compacted=False).name
    bad.write_bytes(b"no parquet")
    clock = TestClock(HOUR.end_ms)
    reports, told = collected(root, clock, lambda at_ms: a_pass(), Schedule(400, 2000))
    assert all(report.stored for report in reports)
    assert [str(bad) in line for line in told] == [True]


def test_one_pass_tidies_up_as_well(tmp_path: Path) -> None:
    root = tmp_path / "s"
    store = store_with(root, [0, 10])
    stranger = store.folder(schema.COMMITS, HOUR) / "mine.txt"
    stranger.write_text("x")
    before = seen(store)[schema.COMMITS]
    reports, told = collected(root, TestClock(HOUR.end_ms), lambda at_ms: a_pass(), Schedule())
    assert len(reports) == 1
    assert [str(stranger) in line for line in told] == [True]
    assert stranger.exists()
    assert store.valid_files(HOUR).through_ms == HOUR.start_ms + 10
    assert [row for row in seen(store)[schema.COMMITS] if row[0] < HOUR.end_ms] == before
