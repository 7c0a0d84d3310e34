"""Expire old hours, and remove files that crashed writers left behind.

An hour expires in one step: its folder of `passes` is renamed, which makes all of its files invalid. Then the files are
removed, and the renamed folder last, so that the next expiry can finish an interrupted one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kctl.base.durable import sync_folder
from kctl.history.snapshots import files, schema
from kctl.history.snapshots.layout import Hour, hour_of, parse_hour, parse_name
from kctl.history.snapshots.store import Store

_EXPIRED = ".expired-"
_OTHERS = tuple(name for name in schema.TABLES if name != schema.PASSES)


def expire(store: Store, before_ms: int) -> Iterator[Hour]:
    """Remove every hour that ended at `before_ms` or earlier; yield each hour after its removal.

    Foreign names and their folders are not removed. Raises OperationFailed, NotAuthorized.
    """
    _finish(store)
    for hour in store.hours():
        if hour.end_ms > before_ms:
            return
        folder = store.folder(schema.PASSES, hour)
        try:
            os.replace(folder, folder.parent / f"{_EXPIRED}{folder.name}")  # noqa: PTH105
            sync_folder(folder.parent)
        except OSError as exc:
            raise files.failed("remove", folder, exc) from exc
        _finish_hour(store, folder.parent, folder.name)
        yield hour


def _finish(store: Store) -> None:
    """Finish interrupted expiries."""
    top = store.root / schema.PASSES
    for date in files.names(top):
        for name in files.names(top / date):
            if name.startswith(_EXPIRED):
                _finish_hour(store, top / date, name.removeprefix(_EXPIRED))


def _finish_hour(store: Store, date: Path, name: str) -> None:
    hour = parse_hour(date.name, name)
    expired = date / f"{_EXPIRED}{name}"
    if hour is None or expired.is_symlink():
        return
    try:
        for table in _OTHERS:
            folder = store.folder(table, hour)
            _remove_data_files(folder)
            _remove_empty(folder.parent)
        _remove_data_files(expired)
        _remove_empty(date)
    except OSError as exc:
        raise files.failed("remove files of", expired, exc) from exc


def sweep(store: Store, hour: Hour) -> None:
    """Remove unfinished files of an hour: temporary files, and files without a file in `passes`.

    The caller holds the lock, and nothing is being written. Raises OperationFailed, NotAuthorized.
    """
    valid = {name for name in files.names(store.folder(schema.PASSES, hour)) if parse_name(name)}
    for table in schema.TABLES:
        folder = store.folder(table, hour)
        stale = [
            name for name in files.names(folder) if _is_temporary(name) or (parse_name(name) and name not in valid)
        ]
        try:
            if stale:
                files.remove(folder, stale)
        except OSError as exc:
            raise files.failed("remove files of", folder, exc) from exc


def recent_hours(store: Store, now_ms: int, count: int) -> list[Hour]:
    """Return the last `count` hours up to now for which any table has a folder."""
    result = {hour for table in schema.TABLES for hour in store.hours(table) if hour <= hour_of(now_ms)}
    return sorted(result)[-count:]


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and parse_name(name[1:].removesuffix(files.TEMPORARY)) is not None


def _remove_data_files(folder: Path) -> None:
    files.remove(folder, [name for name in files.names(folder) if _is_temporary(name) or parse_name(name)])


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        files.remove(folder, [])
