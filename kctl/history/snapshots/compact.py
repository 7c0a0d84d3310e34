"""Compaction: the passes of an hour as one sorted file for each table.

The new files become valid when the last one, that of `passes`, is renamed (kctl.history.snapshots.layout). Until then
the old files are valid, and an interrupted compaction starts again. Replaced files are removed later, because readers
may still use them.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing

from kctl.history.snapshots import files, schema
from kctl.history.snapshots.layout import DataFile, Hour, parse_name
from kctl.history.snapshots.merge import merged
from kctl.history.snapshots.read import read_file
from kctl.history.snapshots.rows import BATCH_ROWS, EVERYTHING, BadRows
from kctl.history.snapshots.store import Damaged, Store

AT_ONCE = 240  # files that are open at the same time
GRACE_MS = 15 * 60_000
_BATCH_ROWS = max(BATCH_ROWS * 4 // AT_ONCE, 1024)


class NotCompacted(Exception):
    """Raised if a file of the hour is unreadable: the hour is not changed, so that no more data is lost."""

    def __init__(self, damaged: Damaged) -> None:
        super().__init__(str(damaged))
        self.damaged = damaged


def compact(store: Store, hour: Hour) -> Generator[None, None, None]:
    """Merge the valid files of an hour into one file for each table, in short steps (tenths of a second).

    A compacted hour is not changed. Stopping between steps (`close`) leaves the valid files unchanged.
    Raises NotCompacted, OperationFailed (e.g. disk full), NotAuthorized.
    """
    while len(chosen := store.valid_files(hour).files[:AT_ONCE]) > 1 or (chosen and not chosen[0].compacted):
        target = DataFile(chosen[-1].at_ms, compacted=True)
        for table in (*(name for name in schema.TABLES if name != schema.PASSES), schema.PASSES):
            yield from _one_table(store, table, hour, chosen, target)


def _one_table(store: Store, table: str, hour: Hour, chosen: tuple[DataFile, ...], target: DataFile) -> Iterator[None]:
    def refuse(damaged: Damaged) -> None:
        raise NotCompacted(damaged)

    existing = set(files.names(store.folder(table, hour)))
    if not any(file.name in existing or store.has_rows(table, hour, file) for file in chosen):
        return
    streams = [
        read_file(store, table, hour, file, EVERYTHING, damaged=refuse, batch_rows=_BATCH_ROWS) for file in chosen
    ]
    try:
        with closing(store.writing(table, hour, target, merged(streams, schema.SORT_KEYS[table]))) as steps:
            yield from steps
    except BadRows as exc:
        raise NotCompacted(Damaged(store.folder(table, hour), str(exc))) from exc


def replaced(store: Store, hour: Hour) -> list[str]:
    """Return the names in an hour's `passes` that a compaction has replaced."""
    state = store.valid_files(hour)
    retained = {file.name for file in state.files}
    names = files.names(store.folder(schema.PASSES, hour))
    return [name for name in names if parse_name(name) is not None and name not in retained]


def discard(store: Store, hour: Hour, *, grace_ms: int = GRACE_MS) -> bool:
    """Remove the files of an hour that a compaction older than `grace_ms` has replaced.

    Return True if replaced files remain. Raises OperationFailed, NotAuthorized.
    """
    state = store.valid_files(hour)
    if state.through_ms is None or not replaced(store, hour):
        return False
    folder = store.folder(schema.PASSES, hour)
    newest = folder / DataFile(state.through_ms, compacted=True).name
    try:
        if time.time() - newest.stat().st_mtime < grace_ms / 1000:
            return True
        retained = {file.name for file in state.files}
        for table in (*(name for name in schema.TABLES if name != schema.PASSES), schema.PASSES):
            _remove_others(store, table, hour, retained, state.through_ms)
    except OSError as exc:
        raise files.failed("remove files of", folder, exc) from exc
    return False


def _remove_others(store: Store, table: str, hour: Hour, retained: set[str], through_ms: int) -> None:
    folder = store.folder(table, hour)
    result = ((name, parse_name(name)) for name in files.names(folder))
    files.remove(folder, [name for name, file in result if file and name not in retained and file.at_ms <= through_ms])
