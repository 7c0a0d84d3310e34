"""Keeping roll-ups up to date: the hours of a store that have ended and have none get some, and so do whole days.

Hours are independent of each other: with Spark each task makes some of them, and writes their files itself (the store
is a folder that every executor can write to). Only one kctl makes roll-ups of a store at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kctl.errors import KctlError
from kctl.history.evaluate.store_access import store_here
from kctl.history.rollups.hour import roll_up
from kctl.history.rollups.rollup import fold
from kctl.history.snapshots import lock, rollup_files
from kctl.history.snapshots.columns import column
from kctl.history.snapshots.layout import Hour
from kctl.history.snapshots.passes import newest_ms
from kctl.history.snapshots.remote import as_given
from kctl.history.snapshots.rollup_files import DAY_MS, WRITTEN, day_of, day_path, hour_path
from kctl.history.snapshots.store import Damaged, Store
from kctl.spark import task_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = "kctl_rollups"
SCHEMA = StructType([StructField("start_ms", LongType()), StructField("error", StringType())])
_ARROW = pa.schema([pa.field("start_ms", pa.int64()), pa.field("error", pa.string())])


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
    store: Store,
    *,
    spark: SparkSession | None = None,
    parallelism: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> CaughtUp:
    """Make the roll-ups that are missing. Raises Busy when another kctl makes them, OperationFailed, NotAuthorized."""
    found = CaughtUp()
    if not missing_hours(store) and not _missing_days(store):
        return found
    with lock.hold(rollup_files.make_folder(store)):
        hours = missing_hours(store)  # another kctl may have made them since
        for number, (_, errors) in enumerate(_made(store, hours, spark, parallelism)):
            found.hours += 1
            found.errors += errors
            if progress is not None:
                progress(number + 1, len(hours))
        for day_ms in _missing_days(store):
            found.errors += map(str, make_day(store, day_ms))
            found.days += 1
    found.errors = as_given(found.errors, store.root)
    return found


def make_hour(store: Store, hour: Hour) -> list[Damaged]:
    """Roll an hour up; what could not be read. An hour without passes that can be read has empty roll-ups."""
    found = roll_up(store, hour)
    for table in WRITTEN:
        rollup_files.write(store, hour_path(store, table, hour), table, found.rows[table])
    return found.damaged


def make_day(store: Store, day_ms: int) -> list[Damaged]:
    """Roll the hours of a day up; what could not be read."""
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


def _made(
    store: Store, hours: Sequence[Hour], spark: SparkSession | None, parallelism: int
) -> Iterator[tuple[int, list[str]]]:
    """Each hour that was made, and what could not be read of it."""
    if spark is None or parallelism <= 1 or len(hours) <= 1:
        for hour in hours:
            yield hour.start_ms, [str(each) for each in make_hour(store, hour)]
        return
    shares = [tuple(hours[start::parallelism]) for start in range(min(parallelism, len(hours)))]
    errors: dict[int, list[str]] = {hour.start_ms: [] for hour in hours}
    made = task_source.load(spark, FORMAT, SCHEMA, partial(make_share, str(store.root.absolute())), shares)
    for row in made.collect():
        if row["error"] is not None:
            errors[row["start_ms"]].append(row["error"])
    yield from errors.items()


def make_share(store: str, hours: Sequence[Hour]) -> Iterator[pa.RecordBatch]:
    """Make the roll-ups of some hours: a row for each, and one for each thing that could not be read.

    A task that runs again makes the same files again.
    """
    for hour in hours:
        try:
            errors: list[str | None] = [str(each) for each in make_hour(store_here(store), hour)]
        except KctlError as exc:
            errors = [exc.message]
        rows = [None, *errors]
        arrays = [column([hour.start_ms] * len(rows), pa.int64()), column(rows, pa.string())]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
