"""The passes of a store over a time span, and their failures."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from kctl.history.snapshots import schema
from kctl.history.snapshots.read import read_table
from kctl.history.snapshots.store import Damaged, Store


class PassInfo(NamedTuple):
    """A row of the table `passes`. interval_ms: interval of the collector; None for a single pass."""

    at_ms: int
    complete: bool
    failures: tuple[str, ...]
    interval_ms: int | None


def passes(store: Store, from_ms: int, to_ms: int, *, damaged: Callable[[Damaged], None]) -> list[PassInfo]:
    """Return the passes with from_ms ≤ at_ms < to_ms, in order of time.

    damaged: see kctl.history.snapshots.read.read_table.
    """
    result = [
        PassInfo(row["at_ms"], row["complete"], tuple(row["failures"]), row["interval_ms"])
        for batch in read_table(store, schema.PASSES, from_ms, to_ms, damaged=damaged)
        for row in batch.to_pylist()
    ]
    return sorted(result)


def newest_ms(store: Store, before_ms: int | None = None) -> int | None:
    """Return the time of the newest pass, from file names only; None if no pass matches. before_ms: None for no limit.

    A compacted file has the time of its last pass. If that is not before the limit, return the start of the hour, a
    lower bound of its passes.
    """
    for hour in reversed(store.hours()):
        for file in reversed(store.valid_files(hour).files):
            if before_ms is None or file.at_ms < before_ms:
                return file.at_ms
            if file.compacted and hour.start_ms < before_ms:
                return hour.start_ms
    return None


def oldest_ms(store: Store) -> int | None:
    """Return the time of the first pass; for an unreadable compacted file, its hour. None if there is none."""
    for hour in store.hours():
        for file in store.valid_files(hour).files:
            if not file.compacted:
                return file.at_ms
            result = passes(store, hour.start_ms, file.at_ms + 1, damaged=lambda _: None)
            return result[0].at_ms if result else hour.start_ms
    return None


def latest_ms(store: Store, now_ms: int) -> int | None:
    """Return the time of the newest pass, ignoring passes in the future (by a collector whose clock was ahead).

    If all passes are in the future, return the newest: this machine's clock may be wrong. None without passes.
    """
    return newest_ms(store, now_ms + 1) or newest_ms(store)


def usual_interval_ms(infos: list[PassInfo]) -> int | None:
    """Return the median time between passes; None with fewer than two."""
    gaps = [after.at_ms - before.at_ms for before, after in pairwise(infos)]
    return round(median(gaps)) if gaps else None


def iso(at_ms: int) -> str:
    """Format a time for messages."""
    return f"{datetime.fromtimestamp(at_ms / 1000, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
