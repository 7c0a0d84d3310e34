"""Keeping roll-ups up to date: the hours of a store that have ended and have none get some, and so do whole days.

Only one kctl makes roll-ups of a store at a time. Hours are independent of each other, so any of them can be made in
another process, which writes their files itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kctl.history.rollups.hour import roll_up
from kctl.history.rollups.rollup import fold
from kctl.history.snapshots import lock, rollup_files
from kctl.history.snapshots.layout import Hour
from kctl.history.snapshots.passes import newest_ms
from kctl.history.snapshots.remote import as_given
from kctl.history.snapshots.rollup_files import DAY_MS, WRITTEN, day_of, day_path, hour_path
from kctl.history.snapshots.store import Damaged, Store

# Makes hours; returns the start of each hour that was made, and what could not be read of it.
MakeHours: TypeAlias = Callable[[Store, Sequence[Hour]], Iterable[tuple[int, list[str]]]]


@dataclass
class CaughtUp:
    """hours, days: that were rolled up now. errors: what could not be read, or written."""

    hours: int = 0
    days: int = 0
    errors: list[str] = field(default_factory=list)


def missing_hours(store: Store) -> list[Hour]:
    """The hours that have ended, have passes and no roll-up; ended: a later hour has a pass (that is not of the future:
    a collector's clock was ahead, and passes of the hour may still come)."""
    newest = newest_ms(store, _now_ms() + 1)
    done = rollup_files.hours_done(store)
    return [hour for hour in store.hours() if newest is not None and hour.end_ms <= newest and hour not in done]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def catch_up(
    store: Store, *, make_hours: MakeHours | None = None, progress: Callable[[int, int], None] | None = None
) -> CaughtUp:
    """Make the roll-ups that are missing; make_hours: where hours are made (None: here).

    Raises Busy when another kctl makes them, OperationFailed, NotAuthorized.
    """
    result = CaughtUp()
    if not missing_hours(store) and not _missing_days(store):
        return result
    with lock.hold(rollup_files.make_folder(store)):
        hours = missing_hours(store)  # another kctl may have made them since
        for number, (_, errors) in enumerate((make_hours or hours_here)(store, hours)):
            result.hours += 1
            result.errors += errors
            if progress is not None:
                progress(number + 1, len(hours))
        for day_ms in _missing_days(store):
            result.errors += map(str, make_day(store, day_ms))
            result.days += 1
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
    """The days that have hours, have ended, and have no roll-up; ended: a later day has an hour."""
    days = sorted({day_of(hour.start_ms) for hour in rollup_files.hours_done(store)})
    newest = newest_ms(store, _now_ms() + 1)
    last = max([*days[-1:], *([] if newest is None else [day_of(newest)])], default=0)
    waiting = {day_of(hour.start_ms) for hour in missing_hours(store)}
    done = rollup_files.days_done(store)
    return [day for day in days if day < last and day not in done and day not in waiting]


def hours_here(store: Store, hours: Sequence[Hour]) -> Iterator[tuple[int, list[str]]]:
    """Roll up each hour in this process; see MakeHours."""
    for hour in hours:
        yield hour.start_ms, [str(each) for each in make_hour(store, hour)]
