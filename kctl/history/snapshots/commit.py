"""Store a pass: all of its tables, then its row of `passes`, which makes it valid."""

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
    """The result of a pass. The field names are the JSON keys and never change.

    stored: it is valid in the store; if not, error is the reason. complete: everything was read; else see failures.
    missed: number of due passes that were skipped before this one; missed_because: the reason.
    duration_ms: of reading the cluster; storing_ms: of writing to the store.
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
    """Raised if the clock shows a time that the store already covers: the clock was set back."""


def check_clock(store: Store, at_ms: int) -> None:
    """Raise ClockBehind if a pass of this time would be invalid."""
    state = store.valid_files(hour_of(at_ms))
    if state.through_ms is not None and at_ms <= state.through_ms:
        raise ClockBehind(
            f"the clock shows {_iso(at_ms)}, but the store has passes up to {_iso(state.through_ms)}",
            hint="check whether the clock was set back; passes resume after that time",
        )
    if DataFile(at_ms, compacted=False) in state.files:
        raise ClockBehind(f"the store already has a pass of {_iso(at_ms)}", hint="check whether the clock was set back")


def put_pass(
    store: Store, at_ms: int, ended_ms: int, snapshot: Pass, *, interval_ms: int | None = None, missed: int = 0
) -> PassReport:
    """Store a pass completely or not at all. Raises ClockBehind, OperationFailed (e.g. disk full), NotAuthorized."""
    check_clock(store, at_ms)
    hour, file = hour_of(at_ms), DataFile(at_ms, compacted=False)
    size, stored = 0, []
    for table in schema.TABLES:
        if table != schema.PASSES and snapshot.rows.get(table):
            rows = ((at_ms, *row) for row in snapshot.rows[table])
            size += store.put(table, hour, file, batch_of(table, rows))
            stored.append(table)
    row = (at_ms, max(ended_ms, at_ms), snapshot.complete, snapshot.failures, stored, interval_ms, missed)
    size += store.put(schema.PASSES, hour, file, batch_of(schema.PASSES, [row]))
    return report(at_ms, ended_ms, snapshot, stored=True, missed=missed, size_bytes=size)


def report(
    at_ms: int,
    ended_ms: int,
    snapshot: Pass,
    *,
    stored: bool,
    missed: int = 0,
    size_bytes: int = 0,
    error: str | None = None,
) -> PassReport:
    """Return the report of a pass."""
    return PassReport(
        at=datetime.fromtimestamp(at_ms / 1000, timezone.utc),
        duration_ms=max(ended_ms - at_ms, 0),
        stored=stored,
        complete=snapshot.complete,
        missed=missed,
        group_count=len(snapshot.rows.get(schema.GROUPS, ())),
        commits=len(snapshot.rows.get(schema.COMMITS, ())),
        partition_count=len(snapshot.rows.get(schema.LOGS, ())),
        replica_count=len(snapshot.rows.get(schema.REPLICAS, ())),
        size_bytes=size_bytes,
        failures=snapshot.failures,
        error=error,
    )


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
