"""Stores as others find them: what older versions wrote is read for ever, and other engines read what is written.

tests/data/snapshot_store_1 was written by the first version of the store: an hour that is compacted, and a later pass.
It is never made anew; a change of the schema that cannot read it needs a new version number.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kctl.errors import NotSupported
from kctl.history.snapshots import schema
from kctl.history.snapshots.compact import compact
from kctl.history.snapshots.layout import DataFile
from kctl.history.snapshots.store import Store, open_store
from snapshot_stores import HOUR, a_pass, compact_all, put, seen, store_with

DATA = Path(__file__).resolve().parents[2] / "data"


def test_what_version_1_wrote_is_read() -> None:
    expected = json.loads((DATA / "snapshot_store_1.json").read_text())
    found = seen(open_store(DATA / "snapshot_store_1"))
    assert found.keys() == set(schema.TABLES) == expected.keys()
    for table, rows in found.items():
        # Columns that came later are behind, and null.
        width = len(expected[table][0])
        assert [list(row[:width]) for row in rows] == expected[table]
        assert all(value is None for row in rows for value in row[width:])


def test_a_newer_version_is_refused_by_all(tmp_path: Path) -> None:
    about = json.loads((DATA / "snapshot_store_1/kctl-store.json").read_text())
    (tmp_path / "kctl-store.json").write_text(json.dumps({**about, "version": schema.VERSION + 1}))
    with pytest.raises(NotSupported, match=f"version {schema.VERSION + 1}, but this kctl supports version 1"):
        open_store(tmp_path)


def _by_the_documents_rule(store: Store, table: str) -> list[tuple[object, ...]]:
    """docs/history.md: each row once, and only of passes that count. By pyarrow's datasets, which know nothing of kctl.

    Hidden files are not for engines; the columns date and hour are the folders'.
    """
    import pyarrow.dataset as ds

    def rows(name: str) -> list[tuple[object, ...]]:
        found = ds.dataset(store.root / name, format="parquet", partitioning="hive", exclude_invalid_files=False)
        columns = schema.arrow_schema(name).names
        return [tuple(row[column] for column in columns) for row in found.to_table().to_pylist()]

    passes = {row[0] for row in rows(schema.PASSES)}
    return sorted({row for row in rows(table) if row[0] in passes}, key=repr)


def test_other_engines_read_the_same(tmp_path: Path) -> None:
    """With passes that are single, compacted, replaced, of a writer that died, and in the middle of a compaction."""
    store = store_with(tmp_path / "s", [0, 10])
    compact_all(store)
    put(store, 20, a_pass(2))
    put(store, 30, a_pass(3))
    store.folder(schema.PASSES, HOUR).joinpath(DataFile(HOUR.start_ms + 30, compacted=False).name).unlink()
    steps = compact(store, HOUR)
    for _ in range(3):
        next(steps)
    found = seen(store)
    assert len({row[0] for row in found[schema.COMMITS]}) == 3
    for table in (schema.COMMITS, schema.GROUPS, schema.LOGS):
        assert _by_the_documents_rule(store, table) == found[table]
    steps.close()
