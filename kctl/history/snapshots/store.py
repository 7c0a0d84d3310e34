"""A store of snapshots in a local folder: its files, in the layout of kctl.history.snapshots.layout."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kctl.errors import InvalidFile, NotFound, NotSupported, Refused, UsageError
from kctl.history.snapshots import files, schema
from kctl.history.snapshots.layout import (
    LOCK_FILE,
    STORE_FILE,
    Counting,
    DataFile,
    Hour,
    counting,
    parse_hour,
    parse_name,
)
from kctl.history.snapshots.rows import EVERYTHING, BadRows, RowWriter, read_rows

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_BYTES = 64 * 1024  # of kctl-store.json


class Damaged(NamedTuple):
    """A file that counts and cannot be used, or not to its end; and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class Store:
    """A store that exists: see `open_store` and `create_store`. Reading needs no lock; writing needs `lock.hold`."""

    def __init__(self, root: Path, cluster_id: str | None) -> None:
        self.root = root
        self.cluster_id = cluster_id

    def folder(self, table: str, hour: Hour) -> Path:
        return self.root / table / hour.path

    def hours(self, table: str = schema.PASSES) -> list[Hour]:
        """The hours that `table` has folders for, in order. Names that are not ours are passed over."""
        found = []
        top = self.root / table
        for date in files.names(top):
            found += [hour for name in files.names(top / date) if (hour := parse_hour(date, name))]
        return sorted(found)

    def counting(self, hour: Hour) -> Counting:
        """Which files of an hour count."""
        return counting(hour, files.names(self.folder(schema.PASSES, hour)))

    def strangers(self, hour: Hour) -> list[Path]:
        """Names in an hour's folders that are not of this layout. They are never opened, and never removed."""
        return [
            folder / name
            for folder in (self.folder(table, hour) for table in schema.TABLES)
            for name in files.names(folder)
            if parse_name(name) is None and not name.endswith(files.TEMPORARY)
        ]

    def writing(
        self, table: str, hour: Hour, file: DataFile, batches: Iterable[pa.RecordBatch | pa.Table]
    ) -> Generator[None, None, None]:
        """Write a file of a table, a batch with each step; it is there when the steps have come to their end.

        Raises OperationFailed, NotAuthorized, and what `batches` raises.
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
        """`writing` at once; how many bytes the file has."""
        for _ in self.writing(table, hour, file, [batch]):
            pass
        return (self.folder(table, hour) / file.name).stat().st_size

    def passes(self, hour: Hour, file: DataFile) -> list[Mapping[str, object]]:
        """The rows of a file of `passes`. Raises BadRows, OSError."""
        with files.opened(self.folder(schema.PASSES, hour) / file.name) as stream:
            return [row for batch in read_rows(stream, schema.PASSES, EVERYTHING) for row in batch.to_pylist()]

    def has_rows(self, table: str, hour: Hour, file: DataFile) -> bool:
        """Whether the passes of a file have rows in `table`, as `passes` says; True when that cannot be read."""
        try:
            rows = self.passes(hour, file)
        except (BadRows, OSError):
            return True
        return any(isinstance(tables := row["tables"], list) and table in tables for row in rows)


def open_store(path: Path) -> Store:
    """The store in a folder. Raises NotFound, InvalidFile, NotSupported for a version that this kctl does not know."""
    about = path / STORE_FILE
    try:
        with files.opened(about) as stream:
            data = stream.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(
            f"{path} is no store of snapshots: there is no {STORE_FILE}",
            hint="`kctl history snapshot --store DIR` makes one",
        ) from None
    except NotADirectoryError:
        raise NotFound(
            f"{path} is no folder", hint="--store takes the folder that snapshots were collected in"
        ) from None
    except OSError as exc:
        raise files.failed("read", about, exc) from exc
    return Store(path, _cluster_id(about, data))


def _cluster_id(about: Path, data: bytes) -> str | None:
    """The cluster that kctl-store.json names, when everything else in it is as it must be."""
    try:
        found = json.loads(data) if len(data) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("format") != schema.FORMAT:
        raise InvalidFile(f"{about} is not of a store of snapshots", hint="look at the file, or choose another folder")
    version, cluster_id = found.get("version"), found.get("cluster_id")
    if type(version) is not int or version < 1 or not (cluster_id is None or isinstance(cluster_id, str)):
        raise InvalidFile(f"{about} has no version and cluster id that could be one", hint="look at the file")
    if version > schema.VERSION:
        raise NotSupported(
            f"{about.parent} is a store of version {version}, and this kctl knows version {schema.VERSION}",
            hint="use a newer kctl; nothing was changed",
        )
    return cluster_id


def create_store(path: Path, cluster_id: str | None) -> Store:
    """The store of a cluster in a folder, which is made when it is missing or empty.

    Raises what `open_store` does, Refused when the store is of another cluster or the folder has other things in it,
    UsageError when it is a file, OperationFailed.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        # Of a kctl that was making the same store just now, or died while it did.
        others = set(files.names(path)) - {LOCK_FILE, f".{STORE_FILE}{files.TEMPORARY}"}
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{path} is no folder", hint="give a new folder, an empty one, or a store") from None
    except OSError as exc:
        raise files.failed("make", path, exc) from exc
    if STORE_FILE in others:
        store = open_store(path)
        if store.cluster_id != cluster_id:
            raise Refused(
                f"{path} holds snapshots of cluster {store.cluster_id}, and this is cluster {cluster_id}",
                hint="use a store for each cluster",
            )
        return store
    if others:
        raise Refused(f"{path} is no store of snapshots, and is not empty", hint="give a new folder, or an empty one")
    about = {"format": schema.FORMAT, "version": schema.VERSION, "cluster_id": cluster_id}
    data = json.dumps(about, indent=2).encode() + b"\n"
    try:
        with files.writing(path / STORE_FILE) as stream:
            stream.write(data)
    except OSError as exc:
        raise files.failed("write", path / STORE_FILE, exc) from exc
    return Store(path, cluster_id)
