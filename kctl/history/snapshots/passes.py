"""Which passes a store has over a span of time, and what they could not read."""

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
    """A row of `passes`. interval_ms: of the collector; None for a single pass."""

    at_ms: int
    complete: bool
    failures: tuple[str, ...]
    interval_ms: int | None


def passes(store: Store, from_ms: int, to_ms: int, *, damaged: Callable[[Damaged], None]) -> list[PassInfo]:
    """The passes with from_ms ≤ at_ms < to_ms, in order of time.

    damaged: as kctl.history.snapshots.read.read_table has it.
    """
    found = [
        PassInfo(row["at_ms"], row["complete"], tuple(row["failures"]), row["interval_ms"])
        for batch in read_table(store, schema.PASSES, from_ms, to_ms, damaged=damaged)
        for row in batch.to_pylist()
    ]
    return sorted(found)


def newest_ms(store: Store, before_ms: int | None = None) -> int | None:
    """When the newest pass before that moment (None: of all) was made, by files' names alone; None: there is none.

    A file that is compacted has the time of its last pass: where that is not before the moment, the answer is the
    hour's first millisecond, which is not after its passes.
    """
    for hour in reversed(store.hours()):
        for file in reversed(store.counting(hour).files):
            if before_ms is None or file.at_ms < before_ms:
                return file.at_ms
            if file.compacted and hour.start_ms < before_ms:
                return hour.start_ms
    return None


def oldest_ms(store: Store) -> int | None:
    """When the first pass was made; of a compacted file whose rows cannot be read, its hour. None: there is none."""
    for hour in store.hours():
        for file in store.counting(hour).files:
            if not file.compacted:
                return file.at_ms
            found = passes(store, hour.start_ms, file.at_ms + 1, damaged=lambda _: None)
            return found[0].at_ms if found else hour.start_ms
    return None


def latest_ms(store: Store, now_ms: int) -> int | None:
    """When the newest pass was made, passing over those of the future: of a collector whose clock was ahead. One that
    is alone counts even so (this machine's clock may be the wrong one). None: there is none."""
    return newest_ms(store, now_ms + 1) or newest_ms(store)


def usual_interval_ms(found: list[PassInfo]) -> int | None:
    """The time between two passes: the middle one of those seen; None with fewer than two."""
    gaps = [after.at_ms - before.at_ms for before, after in pairwise(found)]
    return round(median(gaps)) if gaps else None


def iso(at_ms: int) -> str:
    """A moment for people."""
    return f"{datetime.fromtimestamp(at_ms / 1000, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
