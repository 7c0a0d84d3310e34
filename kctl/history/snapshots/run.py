"""Passes at a steady pace, and the store's housekeeping in the time between them.

The pace is kept by a clock that nobody sets (CLOCK_MONOTONIC): the n-th pass is due n intervals after the first. A
pass that takes longer than the interval leaves out those that became due meanwhile, and the next one says how many. A
pass's time, in the store, is that of the machine's clock.
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
_MOST_LOOSE = 240  # passes of the running hour that are not compacted


class Clock:
    """The machine's clocks; a test has others."""

    def now_ms(self) -> int:
        """UTC, milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def steady_s(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class Pace:
    """every_s: between the starts of two passes; None: one pass. for_s: no pass begins later; None: no end."""

    every_s: float | None = None
    for_s: float | None = None


def run(
    store: Store,
    look: Callable[[int], Pass],
    pace: Pace,
    *,
    tell: Callable[[str], None],
    keep_ms: int | None = None,
    clock: Clock | None = None,
) -> Iterator[PassReport]:
    """Make passes by `look` (which is given the time) and store them; a report of each. The store is held.

    A pass that could not be stored (disk full, the clock put back) is reported, and the next one tried. A cluster that
    cannot be reached is a pass without rows. tell: what housekeeping could not do. keep_ms: older hours are removed.
    Raises AnotherCluster.
    """
    clock = clock or Clock()
    for hour in recent_hours(store, clock.now_ms(), 2):
        sweep(store, hour)
    keeper = _Housekeeping(store, keep_ms, tell, clock)
    began = clock.steady_s()
    number = missed = 0
    because: str | None = None
    while True:
        interval_ms = None if pace.every_s is None else round(pace.every_s * 1000)
        late_s = 0.0 if pace.every_s is None else clock.steady_s() - began - number * pace.every_s
        done = _one(store, look, clock, interval_ms=interval_ms, missed=missed)
        yield replace(done, missed_because=because)
        if pace.every_s is None:
            keeper.work(None)
            return
        due = int((clock.steady_s() - began) / pace.every_s) + 1
        missed = max(due - number - 1, 0)
        because = _longest(done, late_s) if missed else None
        number = max(due, number + 1)
        if pace.for_s is not None and number * pace.every_s >= pace.for_s:
            keeper.work(None)
            return
        keeper.work(began + number * pace.every_s)
        left = began + number * pace.every_s - clock.steady_s()
        if left > 0:
            clock.sleep(left)


def _longest(done: PassReport, late_s: float) -> str:
    """Why passes after this one were left out: what took longest. late_s: how long after it was due it began."""
    took = [
        (done.duration_ms, "reading the cluster"),
        (done.storing_ms, "writing to the disk of the store"),
        (round(late_s * 1000), "tidying up the store before it"),
    ]
    longest_ms, what = max(took)
    return f"{what} took {format_duration(longest_ms)} in the pass before"


def _one(
    store: Store, look: Callable[[int], Pass], clock: Clock, *, interval_ms: int | None, missed: int
) -> PassReport:
    at_ms, began = clock.now_ms(), clock.steady_s()
    try:
        check_clock(store, at_ms)  # before a cluster is asked for nothing
        try:
            found = look(at_ms)
        except AnotherCluster:
            raise
        except KctlError as exc:
            found = Pass(failures=[exc.message])
        ended_ms = at_ms + round((clock.steady_s() - began) * 1000)
        done = put_pass(store, at_ms, ended_ms, found, interval_ms=interval_ms, missed=missed)
        return replace(done, storing_ms=max(at_ms + round((clock.steady_s() - began) * 1000) - ended_ms, 0))
    except AnotherCluster:
        raise
    except KctlError as exc:
        ended_ms = at_ms + round((clock.steady_s() - began) * 1000)
        return report(at_ms, ended_ms, Pass(), stored=False, missed=missed, error=exc.message)


class _Housekeeping:
    """Compaction and expiry in small steps, a round of them each ten minutes and when an hour has ended."""

    def __init__(self, store: Store, keep_ms: int | None, tell: Callable[[str], None], clock: Clock) -> None:
        self._store = store
        self._keep_ms = keep_ms
        self._tell = tell
        self._clock = clock
        self._steps: Iterator[None] | None = None
        self._began_s = float("-inf")
        self._hour: Hour | None = None
        self._told: set[str] = set()

    def work(self, until_s: float | None) -> None:
        """Work until then (steady clock), one step at least; None: to the end of the round."""
        if self._steps is None:
            now_s, hour = self._clock.steady_s(), hour_of(self._clock.now_ms())
            crowded = len(self._store.counting(hour).files) > _MOST_LOOSE
            if now_s - self._began_s < HOUSEKEEPING_EVERY_S and hour == self._hour and not crowded:
                return
            self._began_s, self._hour = now_s, hour
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
        except KctlError as exc:  # disk full, say: what counts is as it was, and the next round tries again
            self._say(exc.message)

    def _tidy(self, hour: Hour) -> Iterator[None]:
        loose = len(self._store.counting(hour).files)
        if hour.end_ms <= self._clock.now_ms() or loose > _MOST_LOOSE:
            for path in self._store.strangers(hour) if loose > 1 else ():
                self._say(f"{path} is none of the store's files, and is left alone")
            try:
                yield from compact(self._store, hour)
            except NotCompacted as exc:
                self._say(f"an hour of the store cannot be compacted, because of {exc}")
        discard(self._store, hour)
        yield

    def _say(self, text: str) -> None:
        """Tell it, once: a round comes every ten minutes."""
        if text not in self._told:
            self._told.add(text)
            self._tell(text)
