"""Create missing rollups: for each hour of a store that has ended, and for each whole day.

Only one kctl creates rollups of a store at a time. Hours are independent of each other, so another process can roll up
an hour and write its files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kctl.history.rollups.hour import roll_up
from kctl.history.rollups.rollup import fold
from kctl.history.snapshots import lock, read_progress, rollup_files
from kctl.history.snapshots.layout import Hour
from kctl.history.snapshots.passes import newest_ms
from kctl.history.snapshots.remote import as_given
from kctl.history.snapshots.rollup_files import DAY_MS, WRITTEN, day_of, day_path, hour_path
from kctl.history.snapshots.store import Damaged, Store

_PHASE = "rolling up"
# Rolls up hours; returns the start of each finished hour, and its read failures.
MakeHours: TypeAlias = Callable[[Store, Sequence[Hour]], Iterable[tuple[int, list[str]]]]


@dataclass
class CaughtUp:
    """The result of `catch_up`. hours, days: numbers of new rollups. errors: read failures."""

    hours: int = 0
    days: int = 0
    errors: list[str] = field(default_factory=list)


def missing_hours(store: Store) -> list[Hour]:
    """Return the hours that have ended, have passes and have no rollup.

    An hour has ended if a later hour has a pass. Passes in the future do not count: they come from a clock that was
    ahead, and the hour may still get passes.
    """
    newest = newest_ms(store, _now_ms() + 1)
    done = rollup_files.hours_done(store)
    return [hour for hour in store.hours() if newest is not None and hour.end_ms <= newest and hour not in done]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def catch_up(store: Store, *, make_hours: MakeHours | None = None) -> CaughtUp:
    """Create the missing rollups. make_hours: rolls up hours (default: hours_here).

    Raises Busy if another kctl is creating rollups, OperationFailed, NotAuthorized.
    """
    result = CaughtUp()
    if not missing_hours(store) and not _missing_days(store):
        return result
    with lock.hold(rollup_files.make_folder(store)):
        hours = missing_hours(store)  # another kctl may have created them since
        read_progress.report(_PHASE, 0, len(hours), "hours")
        for _, errors in (make_hours or hours_here)(store, hours):
            result.hours += 1
            result.errors += errors
            read_progress.report(_PHASE, result.hours, len(hours), "hours")
        days = _missing_days(store)
        for day_ms in days:
            with read_progress.observed(None):  # its files are part of this step
                result.errors += map(str, make_day(store, day_ms))
            result.days += 1
            read_progress.report(_PHASE, result.days, len(days), "days")
    result.errors = as_given(result.errors, store.root)
    return result


def make_hour(store: Store, hour: Hour) -> list[Damaged]:
    """Roll up an hour; return read failures. An hour without readable passes has empty rollups."""
    result = roll_up(store, hour)
    for table in WRITTEN:
        rollup_files.write(store, hour_path(store, table, hour), table, result.rows[table])
    return result.damaged


def make_day(store: Store, day_ms: int) -> list[Damaged]:
    """Roll up the hours of a day; return read failures."""
    damaged: list[Damaged] = []
    for table in WRITTEN:
        rows, bad = rollup_files.rows_of(store, table, day_ms, day_ms + DAY_MS, days=False)
        damaged += bad
        rollup_files.write(store, day_path(store, table, day_ms), table, fold(table, rows, day_ms))
    return damaged


def _missing_days(store: Store) -> list[int]:
    """Return the days that have hours, have ended and have no rollup. A day has ended if a later day has a pass."""
    days = sorted({day_of(hour.start_ms) for hour in rollup_files.hours_done(store)})
    newest = newest_ms(store, _now_ms() + 1)
    last = max([*days[-1:], *([] if newest is None else [day_of(newest)])], default=0)
    incomplete = {day_of(hour.start_ms) for hour in missing_hours(store)}
    done = rollup_files.days_done(store)
    return [day for day in days if day < last and day not in done and day not in incomplete]


def hours_here(store: Store, hours: Sequence[Hour]) -> Iterator[tuple[int, list[str]]]:
    """Roll up each hour in this process; see MakeHours."""
    for hour in hours:
        with read_progress.observed(None):  # its files are part of this step
            errors = [str(each) for each in make_hour(store, hour)]
        yield hour.start_ms, errors
