"""Passes at a steady pace, with housekeeping of the store between them.

The pace follows CLOCK_MONOTONIC: pass n is due n intervals after the first. If a pass takes longer than the interval,
the passes due meanwhile are skipped, and the next pass records how many. In the store, a pass has the time of the
system clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from kctl.base.units import format_duration
from kctl.errors import KctlError
from kctl.history.snapshots.collect import AnotherCluster, Pass
from kctl.history.snapshots.commit import PassReport, check_clock, put_pass, report
from kctl.history.snapshots.compact import NotCompacted, compact, discard
from kctl.history.snapshots.expire import expire, recent_hours, sweep
from kctl.history.snapshots.layout import Hour, hour_of
from kctl.history.snapshots.store import Store

HOUSEKEEPING_EVERY_S = 600.0
_MAX_UNCOMPACTED = 240  # passes of the current hour that are not compacted


class SnapshotClock:
    """The machine's clocks. Tests replace them."""

    def now_ms(self) -> int:
        """Return UTC milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def steady_s(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class Schedule:
    """The schedule of passes.

    every_s: interval between starts; None: a single pass. for_s: time after which no pass starts; None: no end.
    """

    every_s: float | None = None
    for_s: float | None = None


def run(
    store: Store,
    take_pass: Callable[[int], Pass],
    schedule: Schedule,
    *,
    warn: Callable[[str], None],
    keep_ms: int | None = None,
    clock: SnapshotClock | None = None,
) -> Iterator[PassReport]:
    """Call `take_pass` with the time of each pass, store the passes, and yield a report of each.

    The caller holds the lock.

    A pass that cannot be stored (disk full, clock set back) is reported, and the next one is tried. An unreachable
    cluster results in a pass without rows. warn: called with problems of housekeeping. keep_ms: age at which hours
    are removed. Raises AnotherCluster.
    """
    clock = clock or SnapshotClock()
    for hour in recent_hours(store, clock.now_ms(), 2):
        sweep(store, hour)
    keeper = _Housekeeping(store, keep_ms, warn, clock)
    started_s = clock.steady_s()
    number = missed = 0
    missed_because: str | None = None
    while True:
        interval_ms = None if schedule.every_s is None else round(schedule.every_s * 1000)
        late_s = 0.0 if schedule.every_s is None else clock.steady_s() - started_s - number * schedule.every_s
        pass_report = _take_and_store(store, take_pass, clock, interval_ms=interval_ms, missed=missed)
        yield replace(pass_report, missed_because=missed_because)
        if schedule.every_s is None:
            keeper.work(None)
            return
        due = int((clock.steady_s() - started_s) / schedule.every_s) + 1
        missed = max(due - number - 1, 0)
        missed_because = _slowest_phase(pass_report, late_s) if missed else None
        number = max(due, number + 1)
        if schedule.for_s is not None and number * schedule.every_s >= schedule.for_s:
            keeper.work(None)
            return
        keeper.work(started_s + number * schedule.every_s)
        remaining_s = started_s + number * schedule.every_s - clock.steady_s()
        if remaining_s > 0:
            clock.sleep(remaining_s)


def _slowest_phase(pass_report: PassReport, late_s: float) -> str:
    """Return why passes after this one were skipped: its longest phase. late_s: delay of its start."""
    phases = [
        (pass_report.duration_ms, "reading the cluster"),
        (pass_report.storing_ms, "writing to the disk of the store"),
        (round(late_s * 1000), "housekeeping of the store before it"),
    ]
    longest_ms, what = max(phases)
    return f"{what} took {format_duration(longest_ms)} in the previous pass"


def _take_and_store(
    store: Store, take_pass: Callable[[int], Pass], clock: SnapshotClock, *, interval_ms: int | None, missed: int
) -> PassReport:
    at_ms, started_s = clock.now_ms(), clock.steady_s()
    try:
        check_clock(store, at_ms)  # before the cluster is read: the pass could not be stored
        try:
            result = take_pass(at_ms)
        except AnotherCluster:
            raise
        except KctlError as exc:
            result = Pass(failures=[exc.message])
        ended_ms = at_ms + round((clock.steady_s() - started_s) * 1000)
        pass_report = put_pass(store, at_ms, ended_ms, result, interval_ms=interval_ms, missed=missed)
        return replace(pass_report, storing_ms=max(at_ms + round((clock.steady_s() - started_s) * 1000) - ended_ms, 0))
    except AnotherCluster:
        raise
    except KctlError as exc:
        ended_ms = at_ms + round((clock.steady_s() - started_s) * 1000)
        return report(at_ms, ended_ms, Pass(), stored=False, missed=missed, error=exc.message)


class _Housekeeping:
    """Compaction and expiry in small steps: a round every ten minutes and after each full hour."""

    def __init__(self, store: Store, keep_ms: int | None, warn: Callable[[str], None], clock: SnapshotClock) -> None:
        self._store = store
        self._keep_ms = keep_ms
        self._warn = warn
        self._clock = clock
        self._steps: Iterator[None] | None = None
        self._started_s = float("-inf")
        self._hour: Hour | None = None
        self._reported: set[str] = set()

    def work(self, until_s: float | None) -> None:
        """Work until this time (monotonic clock), at least one step; None: finish the round."""
        if self._steps is None:
            now_s, hour = self._clock.steady_s(), hour_of(self._clock.now_ms())
            crowded = len(self._store.valid_files(hour).files) > _MAX_UNCOMPACTED
            if now_s - self._started_s < HOUSEKEEPING_EVERY_S and hour == self._hour and not crowded:
                return
            self._started_s, self._hour = now_s, hour
            self._steps = self._round()
        for _ in self._steps:
            if until_s is not None and self._clock.steady_s() >= until_s:
                return
        self._steps = None

    def _round(self) -> Iterator[None]:
        try:
            if self._keep_ms is not None:
                for _ in expire(self._store, self._clock.now_ms() - self._keep_ms):
                    yield
            for hour in self._store.hours():
                yield from self._tidy(hour)
        except KctlError as exc:  # e.g. disk full: valid files are unchanged, and the next round tries again
            self._report_once(exc.message)

    def _tidy(self, hour: Hour) -> Iterator[None]:
        file_count = len(self._store.valid_files(hour).files)
        if hour.end_ms <= self._clock.now_ms() or file_count > _MAX_UNCOMPACTED:
            for path in self._store.foreign_files(hour) if file_count > 1 else ():
                self._report_once(f"{path} is not a file of the store and is ignored")
            try:
                yield from compact(self._store, hour)
            except NotCompacted as exc:
                self._report_once(f"an hour of the store cannot be compacted: {exc}")
        discard(self._store, hour)
        yield

    def _report_once(self, text: str) -> None:
        """Report a problem once, although rounds repeat."""
        if text not in self._reported:
            self._reported.add(text)
            self._warn(text)
