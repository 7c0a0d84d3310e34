"""Putting a pass into the store: all of its tables, then its row of `passes`, by which it counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from kctl.errors import Refused
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.layout import DataFile, hour_of
from kctl.history.snapshots.rows import batch_of
from kctl.history.snapshots.store import Store


@dataclass(frozen=True, slots=True)
class PassReport:
    """What a pass came to. The field names are the JSON keys and never change.

    stored: it counts in the store; if not, error says why. complete: everything was read; if not, failures says what
    was not. missed: passes that were due before this one and were left out, and missed_because what took so long.
    duration_ms: of reading the cluster; storing_ms: of writing it down, after that.
    """

    at: datetime
    duration_ms: int
    stored: bool
    complete: bool
    missed: int
    group_count: int
    commits: int
    partition_count: int
    replica_count: int
    size_bytes: int
    failures: list[str]
    error: str | None = None
    storing_ms: int = 0
    missed_because: str | None = None


class ClockBehind(Refused):
    """The clock shows a time that the store has been compacted over: the clock was put back."""


def check_clock(store: Store, at_ms: int) -> None:
    """Raise ClockBehind when a pass of this time could not count."""
    state = store.counting(hour_of(at_ms))
    if state.through_ms is not None and at_ms <= state.through_ms:
        raise ClockBehind(
            f"the clock shows {_iso(at_ms)}, but the store has passes up to {_iso(state.through_ms)}",
            hint="check whether the clock was set back; passes resume after that time",
        )
    if DataFile(at_ms, compacted=False) in state.files:
        raise ClockBehind(f"the store already has a pass of {_iso(at_ms)}", hint="check whether the clock was set back")


def put_pass(
    store: Store, at_ms: int, ended_ms: int, found: Pass, *, interval_ms: int | None = None, missed: int = 0
) -> PassReport:
    """Store a pass, whole or not at all. Raises ClockBehind, OperationFailed (disk full, say), NotAuthorized."""
    check_clock(store, at_ms)
    hour, file = hour_of(at_ms), DataFile(at_ms, compacted=False)
    size, stored = 0, []
    for table in schema.TABLES:
        if table != schema.PASSES and found.rows.get(table):
            rows = ((at_ms, *row) for row in found.rows[table])
            size += store.put(table, hour, file, batch_of(table, rows))
            stored.append(table)
    row = (at_ms, max(ended_ms, at_ms), found.complete, found.failures, stored, interval_ms, missed)
    size += store.put(schema.PASSES, hour, file, batch_of(schema.PASSES, [row]))
    return report(at_ms, ended_ms, found, stored=True, missed=missed, size_bytes=size)


def report(
    at_ms: int,
    ended_ms: int,
    found: Pass,
    *,
    stored: bool,
    missed: int = 0,
    size_bytes: int = 0,
    error: str | None = None,
) -> PassReport:
    """The report of a pass."""
    return PassReport(
        at=datetime.fromtimestamp(at_ms / 1000, timezone.utc),
        duration_ms=max(ended_ms - at_ms, 0),
        stored=stored,
        complete=found.complete,
        missed=missed,
        group_count=len(found.rows.get(schema.GROUPS, ())),
        commits=len(found.rows.get(schema.COMMITS, ())),
        partition_count=len(found.rows.get(schema.LOGS, ())),
        replica_count=len(found.rows.get(schema.REPLICAS, ())),
        size_bytes=size_bytes,
        failures=found.failures,
        error=error,
    )


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
