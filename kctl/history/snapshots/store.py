"""A snapshot store in a folder: its files, in the layout of kctl.history.snapshots.layout."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kctl.errors import InvalidFile, NotFound, NotSupported, Reason, Refused, UsageError
from kctl.history.snapshots import files, schema
from kctl.history.snapshots.layout import (
    LOCK_FILE,
    STORE_FILE,
    DataFile,
    Hour,
    ValidFiles,
    parse_hour,
    parse_name,
    valid_files,
)
from kctl.history.snapshots.rows import EVERYTHING, BadRows, RowWriter, read_rows

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_BYTES = 64 * 1024  # of kctl-store.json


class Damaged(NamedTuple):
    """A file that cannot be read completely, and the reason."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class Store:
    """An existing store; see `open_store` and `create_store`. Writing needs `lock.hold`, reading does not."""

    def __init__(self, root: Path, cluster_id: str | None) -> None:
        self.root = root
        self.cluster_id = cluster_id

    def folder(self, table: str, hour: Hour) -> Path:
        return self.root / table / hour.path

    def hours(self, table: str = schema.PASSES) -> list[Hour]:
        """Return the hours that have a folder for `table`, in order. Foreign names are skipped."""
        result = []
        top = self.root / table
        for date in files.names(top):
            result += [hour for name in files.names(top / date) if (hour := parse_hour(date, name))]
        return sorted(result)

    def valid_files(self, hour: Hour) -> ValidFiles:
        """Return the valid files of an hour."""
        return valid_files(hour, files.names(self.folder(schema.PASSES, hour)))

    def foreign_files(self, hour: Hour) -> list[Path]:
        """Return foreign names in the folders of an hour. They are never opened or removed."""
        return [
            folder / name
            for folder in (self.folder(table, hour) for table in schema.TABLES)
            for name in files.names(folder)
            if parse_name(name) is None and not name.endswith(files.TEMPORARY)
        ]

    def writing(
        self, table: str, hour: Hour, file: DataFile, batches: Iterable[pa.RecordBatch | pa.Table]
    ) -> Generator[None, None, None]:
        """Write a file of a table, one batch per step. The file appears after the last step.

        Raises OperationFailed, NotAuthorized, and the errors of `batches`.
        """
        path = self.folder(table, hour) / file.name
        try:
            files.make_folder(self.root, path.parent)
            with files.writing(path) as stream:
                writer = RowWriter(stream, table)
                try:
                    for batch in batches:
                        writer.write(batch)
                        yield
                    writer.close()
                finally:
                    writer.abandon()
        except OSError as exc:
            raise files.failed("write", path, exc) from exc

    def put(self, table: str, hour: Hour, file: DataFile, batch: pa.RecordBatch) -> int:
        """Run all steps of `writing`; return the size of the file."""
        for _ in self.writing(table, hour, file, [batch]):
            pass
        return (self.folder(table, hour) / file.name).stat().st_size

    def passes(self, hour: Hour, file: DataFile) -> list[Mapping[str, object]]:
        """Return the rows of a `passes` file. Raises BadRows, OSError."""
        with files.opened(self.folder(schema.PASSES, hour) / file.name) as stream:
            return [row for batch in read_rows(stream, schema.PASSES, EVERYTHING) for row in batch.to_pylist()]

    def has_rows(self, table: str, hour: Hour, file: DataFile) -> bool:
        """Return True if the passes of a file have rows in `table`, or if `passes` cannot be read."""
        try:
            rows = self.passes(hour, file)
        except (BadRows, OSError):
            return True
        return any(isinstance(tables := row["tables"], list) and table in tables for row in rows)


def open_store(path: Path) -> Store:
    """Open the store in a folder. Raises NotFound, InvalidFile, NotSupported for an unknown version."""
    about = path / STORE_FILE
    try:
        with files.opened(about) as stream:
            data = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(
            f"{path} is not a snapshot store: it has no {STORE_FILE}",
            hint="create one with `kctl history snapshot --store DIR`",
        ) from None
    except NotADirectoryError:
        raise NotFound(f"{path} is not a folder", hint="set --store to the folder of `kctl history snapshot`") from None
    except OSError as exc:
        raise files.failed("read", about, exc) from exc
    return Store(path, _cluster_id(about, data))


def _cluster_id(about: Path, data: bytes) -> str | None:
    """Return the cluster named in a valid kctl-store.json."""
    try:
        result = json.loads(data) if len(data) <= _MAX_BYTES else None
    except (ValueError, RecursionError):
        result = None
    if not isinstance(result, dict) or result.get("format") != schema.FORMAT:
        raise InvalidFile(f"{about} does not belong to a snapshot store", hint="check the file, or use another folder")
    version, cluster_id = result.get("version"), result.get("cluster_id")
    if type(version) is not int or version < 1 or not (cluster_id is None or isinstance(cluster_id, str)):
        raise InvalidFile(f"{about} has no valid version and cluster id", hint="check the file")
    if version > schema.VERSION:
        raise NotSupported(
            f"{about.parent} is a store of version {version}, but this kctl supports version {schema.VERSION}",
            hint="use a newer kctl; nothing was changed",
        )
    return cluster_id


def create_store(path: Path, cluster_id: str | None) -> Store:
    """Open the store of a cluster, or create it if the folder is missing or empty.

    Raises the errors of `open_store`, Refused if the store belongs to another cluster or the folder is not empty,
    UsageError if the path is a file, OperationFailed.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        # The lock and a temporary file may exist while another kctl creates the same store, or after it crashed.
        others = set(files.names(path)) - {LOCK_FILE, f".{STORE_FILE}{files.TEMPORARY}"}
    except (FileExistsError, NotADirectoryError):
        raise UsageError(
            f"{path} is not a folder", hint="set --store to a new folder, an empty folder, or a store"
        ) from None
    except OSError as exc:
        raise files.failed("make", path, exc) from exc
    if STORE_FILE in others:
        store = open_store(path)
        if store.cluster_id != cluster_id:
            raise Refused(
                f"{path} has snapshots of cluster {store.cluster_id}, but this is cluster {cluster_id}",
                hint="use a store for each cluster",
                reason=Reason.WRONG_CLUSTER,
            )
        return store
    if others:
        raise Refused(
            f"{path} is neither empty nor a snapshot store",
            hint="set --store to a new or empty folder",
            reason=Reason.INVALID_PATH,
        )
    about = {"format": schema.FORMAT, "version": schema.VERSION, "cluster_id": cluster_id}
    data = json.dumps(about, indent=2).encode() + b"\n"
    try:
        with files.writing(path / STORE_FILE) as stream:
            stream.write(data)
    except OSError as exc:
        raise files.failed("write", path / STORE_FILE, exc) from exc
    return Store(path, cluster_id)
