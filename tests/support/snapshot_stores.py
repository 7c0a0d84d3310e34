"""Stores for tests: passes with known rows, and the rows that a reader returns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.commit import PassReport, put_pass
from kctl.history.snapshots.compact import compact
from kctl.history.snapshots.layout import HOUR_MS, Hour
from kctl.history.snapshots.read import read_table
from kctl.history.snapshots.store import Damaged, Store, create_store

HOUR = Hour(1_790_000_000_000 // HOUR_MS * HOUR_MS)
FOREVER = (0, 10**13)

Seen = dict[str, list[tuple[Any, ...]]]


def commit(group: str, topic: str, partition: int, offset: int | None) -> tuple[Any, ...]:
    """Return a row of `commits` without at_ms."""
    end = 10 if offset is None else offset + 10
    return (group, topic, partition, offset, 0, end, 3, "id", False)


def a_pass(number: int = 0, groups: Iterable[str] = ("g1", "g2")) -> Pass:
    """Return rows in three tables, with offsets by number."""
    names = list(groups)
    rows = {
        schema.COMMITS: [commit(g, t, p, 100 * number + p) for g in reversed(names) for t in "ba" for p in (1, 0)],
        schema.GROUPS: [(g, "Stable", "classic", "consumer", number, 1) for g in names],
        schema.LOGS: [("a", 0, "id", 1, 3, 0, number, number, None)],
    }
    return Pass(rows=rows)


def store_with(root: Path, times: Iterable[int], cluster_id: str = "c") -> Store:
    """Return a store with a pass at each of `times` (ms after the start of HOUR)."""
    store = create_store(root, cluster_id)
    for number, offset in enumerate(times):
        put(store, offset, a_pass(number))
    return store


def put(store: Store, offset_ms: int, found: Pass) -> PassReport:
    """Write a pass this many ms after the start of HOUR."""
    at_ms = HOUR.start_ms + offset_ms
    return put_pass(store, at_ms, at_ms + 50, found)


def rows_of(found: Pass, offset_ms: int) -> Seen:
    """Return the sorted rows of that pass from a reader, without `passes`."""
    at_ms = HOUR.start_ms + offset_ms
    return {table: sorted(((at_ms, *row) for row in rows), key=repr) for table, rows in found.rows.items()}


def seen(store: Store, damaged: list[Damaged] | None = None, *, span: tuple[int, int] = FOREVER) -> Seen:
    """Return the sorted rows of each non-empty table. Damage is an error unless there is a list for it."""
    found: Seen = {}
    told: list[Damaged] = [] if damaged is None else damaged
    for table in schema.TABLES:
        for batch in read_table(store, table, *span, damaged=told.append):
            assert batch.schema.names == schema.arrow_schema(table).names
            found.setdefault(table, []).extend(tuple(row.values()) for row in batch.to_pylist())
    assert damaged is not None or not told, told
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


def no_damage(damaged: Damaged) -> None:
    """Raise for any damage."""
    raise AssertionError(str(damaged))


def compact_all(store: Store) -> None:
    """Compact every hour."""
    for hour in store.hours():
        for _ in compact(store, hour):
            pass


def names(store: Store, table: str) -> list[str]:
    """Return the files of a table in HOUR, including hidden ones."""
    folder = store.folder(table, HOUR)
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
