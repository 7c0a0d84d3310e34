"""A store: whose it is, who may write, and what a reader makes of files that somebody else put there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kctl.errors import Busy, InvalidFile, KctlError, NotFound, NotSupported, OperationFailed, Refused
from kctl.history.snapshots import footer, lock, rows, schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.compact import NotCompacted, compact, discard, replaced
from kctl.history.snapshots.expire import expire, sweep
from kctl.history.snapshots.layout import HOUR_MS, STORE_FILE, DataFile, Hour
from kctl.history.snapshots.read import read_file, read_table
from kctl.history.snapshots.rows import EVERYTHING
from kctl.history.snapshots.store import Damaged, Store, create_store, open_store
from snapshot_stores import FOREVER, HOUR, a_pass, commit, compact_all, names, no_damage, put, rows_of, seen, store_with

# --- whose it is ------------------------------------------------------------------------------------------------------


def test_a_store_is_made_once_and_found_again(tmp_path: Path) -> None:
    made = create_store(tmp_path / "a/b", "c")
    assert json.loads((made.root / STORE_FILE).read_text()) == {
        "format": "kctl-snapshots",
        "version": 1,
        "cluster_id": "c",
    }
    assert open_store(made.root).cluster_id == create_store(made.root, "c").cluster_id == "c"


def test_another_clusters_store_is_refused(tmp_path: Path) -> None:
    create_store(tmp_path / "s", "one")
    with pytest.raises(Refused, match="cluster one, but this is cluster two"):
        create_store(tmp_path / "s", "two")


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(Refused, match="neither empty nor a snapshot store"):
        create_store(tmp_path, "c")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", InvalidFile),
        ("[]", InvalidFile),
        ("[" * 60_000, InvalidFile),
        ('{"format": "other", "version": 1, "cluster_id": "c"}', InvalidFile),
        ('{"format": "kctl-snapshots", "version": true, "cluster_id": "c"}', InvalidFile),
        ('{"format": "kctl-snapshots", "version": 1, "cluster_id": ["c"]}', InvalidFile),
        ('{"format": "kctl-snapshots", "version": 1, "cluster_id": "c"}' + " " * 70_000, InvalidFile),
        ('{"format": "kctl-snapshots", "version": 2, "cluster_id": "c"}', NotSupported),
    ],
)
def test_what_a_stores_file_may_not_say(tmp_path: Path, text: str, error: type[KctlError]) -> None:
    (tmp_path / STORE_FILE).write_text(text)
    with pytest.raises(error):
        open_store(tmp_path)
    with pytest.raises(error):
        create_store(tmp_path, "c")


def test_no_store(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        open_store(tmp_path)
    os.mkfifo(tmp_path / STORE_FILE)
    with pytest.raises(OperationFailed, match="not a regular file"):
        open_store(tmp_path)


def test_one_collector_at_a_time(tmp_path: Path) -> None:
    with lock.hold(tmp_path), pytest.raises(Busy, match=f"process {os.getpid()} is collecting"), lock.hold(tmp_path):
        pass
    with lock.hold(tmp_path):
        pass


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / ".lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OperationFailed), lock.hold(tmp_path):
        pass
    assert (tmp_path / "victim").read_text() == "precious"


# --- reading ----------------------------------------------------------------------------------------------------------


def test_a_span_is_half_open(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [0, 10, 20])
    compact_all(store)
    put(store, 30, a_pass(3))
    start = HOUR.start_ms
    for first, last, expected in [(10, 30, {10, 20}), (11, 31, {20, 30}), (31, 40, set()), (0, 1, {0})]:
        found = seen(store, span=(start + first, start + last))
        assert {row[0] - start for row in found.get(schema.COMMITS, [])} == expected


def test_columns_and_a_range_of_groups(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [0])
    (batch,) = read_table(
        store, schema.COMMITS, *FOREVER, damaged=no_damage, columns=["topic", "log_end_offset"], lower="g2"
    )
    assert batch.schema.names == ["topic", "log_end_offset"]
    assert batch.to_pylist() == [{"topic": t, "log_end_offset": 10 + p} for t in "ab" for p in (0, 1)]
    assert not list(read_table(store, schema.COMMITS, *FOREVER, damaged=no_damage, upper="g1"))
    (coded,) = read_table(store, schema.COMMITS, *FOREVER, damaged=no_damage, dictionaries=True)
    assert pa.types.is_dictionary(coded.schema.field("group").type)


def test_a_pass_without_its_row_of_passes_does_not_count(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [0, 10])
    (store.folder(schema.PASSES, HOUR) / DataFile(HOUR.start_ms + 10, compacted=False).name).unlink()
    assert seen(store)[schema.COMMITS] == rows_of(a_pass(0), 0)[schema.COMMITS]
    sweep(store, HOUR)
    assert names(store, schema.COMMITS) == [DataFile(HOUR.start_ms, compacted=False).name]


# --- files that somebody else put there -----------------------------------------------------------------------------


def _write(table: pa.Table, path: Path) -> None:
    """A file with a checksum of its footer, as somebody who knows the format would make it."""
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table, row_group_size=1000)
        writer.add_key_value_metadata({footer.KEY: footer.PLACEHOLDER})
    with path.open("r+b") as stream:
        footer.sign(stream)


def _read(path: Path) -> pa.Table:
    with path.open("rb") as stream:
        return pq.ParquetFile(stream).read()


def _other_columns(path: Path) -> None:
    _write(pa.table({"at_ms": [HOUR.start_ms + 10], "x": ["y"]}), path)


def _no_checksum(path: Path) -> None:
    pq.write_table(_read(path), path)


def _other_type(path: Path) -> None:
    table = _read(path)
    _write(table.set_column(3, "partition", pa.array(["0"] * table.num_rows)), path)


def _nulls(path: Path) -> None:
    table = _read(path)
    _write(table.set_column(1, "group", pa.array([None] * table.num_rows, pa.string())), path)


def _not_utf8(path: Path) -> None:
    table = _read(path)
    bad = pa.array([b"\xff\xfe"] * table.num_rows, pa.binary()).view(pa.string())
    _write(table.set_column(1, "group", bad), path)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 0x55  # in a page, not in the footer
    path.write_bytes(data)


def _footer(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-40:-8] = bytes(32)
    path.write_bytes(data)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path) -> None:
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "harm",
    [
        _other_columns, _no_checksum, _other_type, _nulls, _not_utf8, _flip, _footer, _cut, _pipe, _link, _folder,
        lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"PAR1" * 8), lambda path: path.unlink(),
    ],
)  # fmt: skip
def test_a_bad_file_is_named_and_nothing_else_is_lost(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    store = store_with(tmp_path / "s", [0, 10, 20])
    path = store.folder(schema.COMMITS, HOUR) / DataFile(HOUR.start_ms + 10, compacted=False).name
    harm(path)
    damaged: list[Damaged] = []
    found = seen(store, damaged)
    assert [each.path for each in damaged] == [path]
    assert damaged[0].reason
    whole = rows_of(a_pass(0), 0)[schema.COMMITS] + rows_of(a_pass(2), 20)[schema.COMMITS]
    assert found[schema.COMMITS] == sorted(whole, key=repr)
    before = {table: names(store, table) for table in schema.TABLES}
    with pytest.raises(NotCompacted, match=path.name):
        list(compact(store, HOUR))
    assert {table: names(store, table) for table in schema.TABLES} == before


def test_whatever_byte_is_wrong_no_other_rows_are_given(tmp_path: Path) -> None:
    """Each byte in turn: the file is named, or its rows are the same. (Some bytes say nothing: padding, statistics.)"""
    store = create_store(tmp_path / "s", "c")
    put(store, 0, Pass(rows={schema.COMMITS: [commit("g", "t", p, 5) for p in range(3)]}))
    file = DataFile(HOUR.start_ms, compacted=False)
    path = store.folder(schema.COMMITS, HOUR) / file.name
    data = path.read_bytes()

    def given(damaged: list[Damaged]) -> list[object]:
        reading = read_file(store, schema.COMMITS, HOUR, file, EVERYTHING, damaged=damaged.append)
        return [row for batch in reading for row in batch.to_pylist()]

    whole, named = given([]), 0
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        damaged: list[Damaged] = []
        assert given(damaged) == whole or damaged, place
        named += bool(damaged)
    assert named > len(data) // 14
    assert len(whole) == 3


def test_rows_of_another_time_than_the_names_are_not_given(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [0, 10])
    folder = store.folder(schema.COMMITS, HOUR)
    first, second = (folder / DataFile(HOUR.start_ms + at, compacted=False).name for at in (0, 10))
    second.write_bytes(first.read_bytes())
    assert {row[0] for row in seen(store)[schema.COMMITS]} == {HOUR.start_ms}
    assert len(seen(store)[schema.COMMITS]) == len(rows_of(a_pass(0), 0)[schema.COMMITS])


def test_a_file_that_claims_too_much_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are lowered: a file that breaks the real ones takes long to make."""
    store = create_store(tmp_path / "s", "c")
    put(store, 0, Pass(rows={schema.LOG_DIRS: [(1, f"d{i:05d}", 1, 1, None) for i in range(10_000)]}))
    assert len(seen(store)[schema.LOG_DIRS]) == 10_000
    for limit, reason in (("_MAX_ROWS_PER_BYTE", "claims 10,000 rows in"), ("_MAX_ROW_GROUP_BYTES", "a row group")):
        with monkeypatch.context() as patch:
            patch.setattr(rows, limit, 0)
            damaged: list[Damaged] = []
            assert schema.LOG_DIRS not in seen(store, damaged)
            assert any(reason in each.reason for each in damaged)


def test_names_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [0, 10])
    before = seen(store)
    folder = store.folder(schema.COMMITS, HOUR)
    stranger = folder / "pass-1.parquet"
    stranger.write_bytes(b"x")
    (store.root / "passes" / "date=2026-99-99" / "hour=00").mkdir(parents=True)
    (store.root / "passes" / "date=1999-01-01").symlink_to(folder.parent)
    (store.root / "readme").write_text("hello")
    assert store.foreign_files(HOUR) == [stranger]
    compact_all(store)
    discard(store, HOUR, grace_ms=0)
    sweep(store, HOUR)
    assert seen(store) == before
    assert list(expire(store, HOUR.end_ms)) == [HOUR]
    assert stranger.exists()
    assert seen(store) == {}


def test_an_older_stores_missing_columns_are_null_and_newer_ones_not_read(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [0])
    path = store.folder(schema.COMMITS, HOUR) / DataFile(HOUR.start_ms, compacted=False).name
    table = _read(path)
    changed = table.drop_columns(["topic_id", "leader_epoch"]).append_column("new", pa.array([1] * table.num_rows))
    _write(changed, path)
    expected = [(*row[:7], None, None, row[9]) for row in rows_of(a_pass(0), 0)[schema.COMMITS]]
    assert seen(store)[schema.COMMITS] == sorted(expected, key=repr)


# --- compaction, what it replaced, expiry ---------------------------------------------------------------------------


def test_what_was_replaced_stays_for_a_while_and_never_counts_again(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [0, 10])
    before = seen(store)
    compact_all(store)
    assert len(replaced(store, HOUR)) == 2
    assert discard(store, HOUR, grace_ms=60_000)  # there is something left, and it is too early
    assert len(names(store, schema.COMMITS)) == 3
    put(store, 20, a_pass(2))
    compact_all(store)
    assert not discard(store, HOUR, grace_ms=0)
    for table in (schema.COMMITS, schema.GROUPS, schema.LOGS, schema.PASSES):
        assert names(store, table) == [DataFile(HOUR.start_ms + 20, compacted=True).name]
        after = [row for row in seen(store)[table] if row[0] != HOUR.start_ms + 20]
        assert after == before[table]


def test_files_that_go_while_they_are_read_end_the_reading(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [0, 10, 20])
    reading = read_table(store, schema.COMMITS, *FOREVER, damaged=no_damage)
    next(reading)
    compact_all(store)
    discard(store, HOUR, grace_ms=0)
    with pytest.raises(OperationFailed, match="while it was read"):
        list(reading)


def test_a_table_without_rows_has_no_file(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [0])
    assert not names(store, schema.OWNERS)
    assert schema.OWNERS not in seen(store)
    compact_all(store)
    assert not names(store, schema.OWNERS)


def test_expiry_takes_whole_hours(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [-HOUR_MS, 0, 10])
    before = Hour(HOUR.start_ms - HOUR_MS)
    assert list(expire(store, HOUR.end_ms - 1)) == [before]
    assert store.hours() == [HOUR]
    assert not store.folder(schema.COMMITS, before).exists()
    assert {row[0] for row in seen(store)[schema.COMMITS]} == {HOUR.start_ms, HOUR.start_ms + 10}
    assert list(expire(store, HOUR.end_ms)) == [HOUR]
    assert sorted(path.name for path in store.root.rglob("*.parquet")) == []


def test_text_that_is_no_text_is_stored_even_so(tmp_path: Path) -> None:
    """A lone surrogate cannot be written as UTF-8; a name with one must not stop the collector."""
    store = create_store(tmp_path / "s", "c")
    found = a_pass()
    found.rows[schema.COMMITS].append(commit("g\ud800", "t", 0, 1))
    put(store, 0, found)
    assert "g?" in {row[1] for row in seen(store)[schema.COMMITS]}


def test_a_table_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    store = create_store(tmp_path / "s", "c")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (store.root / schema.COMMITS).symlink_to(elsewhere)
    with pytest.raises(OperationFailed, match="is not a folder"):
        put(store, 0, a_pass())
    assert not list(elsewhere.iterdir())
    assert Store(store.root, "c").hours() == []
