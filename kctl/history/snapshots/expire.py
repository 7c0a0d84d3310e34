"""Expiry, and what writers that died have left.

An hour that is too old goes at once: its folder of `passes` is renamed, and then nothing in it counts. Then the files
go, and the renamed folder last, so that an expiry which ended early is finished by the next one.
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
    """Remove every hour that ended at `before_ms` or earlier; each is given when it is gone.

    Names that are not of the layout stay, and so do their folders. Raises OperationFailed, NotAuthorized.
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
    """Go on with expiries that ended early."""
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
            _remove_ours(folder)
            _remove_empty(folder.parent)
        _remove_ours(expired)
        _remove_empty(date)
    except OSError as exc:
        raise files.failed("remove files of", expired, exc) from exc


def sweep(store: Store, hour: Hour) -> None:
    """Remove what nobody will finish in an hour: temporary files, and files without the one of `passes` that counts.

    Only while the store is held, and nothing is being written. Raises OperationFailed, NotAuthorized.
    """
    retained = {name for name in files.names(store.folder(schema.PASSES, hour)) if parse_name(name)}
    for table in schema.TABLES:
        folder = store.folder(table, hour)
        left = [name for name in files.names(folder) if _temporary(name) or (parse_name(name) and name not in retained)]
        try:
            if left:
                files.remove(folder, left)
        except OSError as exc:
            raise files.failed("remove files of", folder, exc) from exc


def recent_hours(store: Store, now_ms: int, count: int) -> list[Hour]:
    """The last `count` hours that any table has folders for, up to now."""
    result = {hour for table in schema.TABLES for hour in store.hours(table) if hour <= hour_of(now_ms)}
    return sorted(result)[-count:]


def _temporary(name: str) -> bool:
    return name.startswith(".") and parse_name(name[1:].removesuffix(files.TEMPORARY)) is not None


def _remove_ours(folder: Path) -> None:
    files.remove(folder, [name for name in files.names(folder) if _temporary(name) or parse_name(name)])


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        files.remove(folder, [])
