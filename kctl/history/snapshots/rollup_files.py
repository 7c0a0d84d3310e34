"""The files of rollups, in the folder of the snapshots from which they are computed.

    DIR/rollups/.lock                                       held by the process that computes rollups (flock)
    DIR/rollups/<table>/date=YYYY-MM-DD/hour=HH.parquet     the rollup of the passes of an hour
    DIR/rollups/<table>/date=YYYY-MM-DD/day.parquet         the rollup of the hours of a day that has ended

Tables and columns: rollups.rollup. A file that exists is valid, because files are written under a temporary name and
renamed. The file of `groups` is written last: an hour or a day that has one is complete. Snapshots expire; rollups stay
until they are removed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.errors import OperationFailed
from kctl.history.rollups.rollup import COLUMNS, GROUPS, TABLES
from kctl.history.snapshots import files, footer, read_progress
from kctl.history.snapshots.columns import column
from kctl.history.snapshots.layout import HOUR_MS, Hour
from kctl.history.snapshots.store import Damaged, Store

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "rollups"
DAY_MS = 24 * HOUR_MS
VERSION = 1
WRITTEN = (*(name for name in TABLES if name != GROUPS), GROUPS)  # `groups` last
_DATE = re.compile(r"date=([0-9]{4}-[0-9]{2}-[0-9]{2})", re.ASCII)
_HOUR = re.compile(r"hour=([01][0-9]|2[0-3])\.parquet", re.ASCII)
_DAY = "day.parquet"
_VERSION = "kctl.rollup"
_MAX_BYTES = 1 << 30
_THRIFT_TEXT, _THRIFT_ITEMS = 100_000_000, 1_000_000


def day_of(at_ms: int) -> int:
    """Return the first millisecond of the day (UTC) of a time."""
    return at_ms - at_ms % DAY_MS


def hour_path(store: Store, table: str, hour: Hour) -> Path:
    """Return the file of an hour."""
    date, _, name = hour.path.partition("/")
    return store.root / FOLDER / table / date / f"{name}.parquet"


def day_path(store: Store, table: str, day_ms: int) -> Path:
    """Return the file of a day."""
    return store.root / FOLDER / table / f"date={datetime.fromtimestamp(day_ms / 1000, timezone.utc):%Y-%m-%d}" / _DAY


def hours_done(store: Store) -> set[Hour]:
    """Return the hours that are rolled up. Foreign names are skipped."""
    top = store.root / FOLDER / GROUPS
    return {
        Hour(day_ms + int(match[1]) * HOUR_MS)
        for day_ms, date in _dates(top)
        for name in files.names(top / date)
        if (match := _HOUR.fullmatch(name))
    }


def days_done(store: Store) -> set[int]:
    """Return the first milliseconds of the days that are rolled up."""
    top = store.root / FOLDER / GROUPS
    return {day_ms for day_ms, date in _dates(top) if _DAY in files.names(top / date)}


def _dates(top: Path) -> Iterator[tuple[int, str]]:
    for date in files.names(top):
        match = _DATE.fullmatch(date)
        with suppress(ValueError):
            if match:
                at = datetime.strptime(f"{match[1]} +0000", "%Y-%m-%d %z")
                yield round(at.timestamp()) * 1000, date


def table_of(table: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Return rows as an Arrow table."""
    import pyarrow as pa

    arrow = _schema(table)
    arrays = [column([row[field.name] for row in rows], field.type) for field in arrow]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, schema=arrow)])


def write(store: Store, path: Path, table: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write a file completely or not at all. Raises OperationFailed, NotAuthorized."""
    import pyarrow.parquet as pq

    result = table_of(table, rows)
    try:
        files.make_folder(store.root, path.parent)
        with files.writing(path) as stream:
            writer = pq.ParquetWriter(
                stream, result.schema, compression="zstd", write_page_checksum=True, store_schema=False
            )
            try:
                writer.write_table(result, row_group_size=max(len(rows), 1))
                writer.add_key_value_metadata({footer.KEY: footer.PLACEHOLDER, _VERSION: json.dumps(VERSION)})
            finally:
                writer.close()
            footer.sign(stream)
    except OSError as exc:
        raise files.failed("write", path, exc) from exc


def read(path: Path, table: str, columns: Sequence[str] | None = None) -> list[dict[str, Any]] | Damaged:
    """Return rows of a file, optionally only some columns.

    Returns Damaged if the file is damaged or of a newer version, and no rows if it is missing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with files.opened(path) as stream:
            if os.fstat(stream.fileno()).st_size > _MAX_BYTES:
                return Damaged(path, "it is too large for a rollup")
            footer.check(stream)
            with pq.ParquetFile(
                stream, page_checksum_verification=True, thrift_string_size_limit=_THRIFT_TEXT,
                thrift_container_size_limit=_THRIFT_ITEMS, pre_buffer=False, arrow_extensions_enabled=False,
            ) as file:  # fmt: skip
                version = json.loads((file.metadata.metadata or {}).get(_VERSION.encode(), b"0"))
                if version != VERSION:
                    return Damaged(
                        path, f"it is of version {str(version)[:20]}, but this kctl supports version {VERSION}"
                    )
                actual, fields = file.schema_arrow, _schema(table)
                if actual.names != fields.names or any(a.type != b.type for a, b in zip(actual, fields, strict=True)):
                    return Damaged(path, "its columns do not match the table")
                return file.read(columns=None if columns is None else list(columns)).to_pylist()
    except FileNotFoundError:
        return []
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as exc:
        return Damaged(path, footer.reason_of(exc))


def rows_of(
    store: Store,
    table: str,
    from_ms: int,
    to_ms: int,
    *,
    days: bool,
    chosen: Callable[[dict[str, Any]], bool] | None = None,
    columns: Sequence[str] | None = None,
) -> tuple[list[dict[str, Any]], list[Damaged]]:
    """Return the selected rows of periods (days or hours) that begin in [from_ms, to_ms), in order of time."""
    done = days_done(store) if days else {hour.start_ms for hour in hours_done(store)}
    starts = sorted(start_ms for start_ms in done if from_ms <= start_ms < to_ms)
    rows: list[dict[str, Any]] = []
    damaged: list[Damaged] = []
    for number, start_ms in enumerate(starts):
        read_progress.report("reading rollups", number, len(starts), "files")
        path = day_path(store, table, start_ms) if days else hour_path(store, table, Hour(start_ms))
        result = read(path, table, columns)
        if isinstance(result, Damaged):
            damaged.append(result)
        else:
            rows += result if chosen is None else filter(chosen, result)
    return rows, damaged


def make_folder(store: Store) -> Path:
    """Create the folder of the rollups. Raises OperationFailed, NotAuthorized."""
    folder = store.root / FOLDER
    try:
        files.make_folder(store.root, folder)
    except OSError as exc:
        raise files.failed("make", folder, exc) from exc
    if not folder.is_dir():
        raise OperationFailed(f"{folder} is not a folder", hint="check the path")
    return folder


def _schema(table: str) -> pa.Schema:
    import pyarrow as pa

    kinds = {"int64": pa.int64(), "string": pa.string(), "bool": pa.bool_(), "double": pa.float64()}
    return pa.schema([pa.field(name, kinds[kind]) for name, (_, kind) in COLUMNS[table].items()])
