"""Merging and compaction lose nothing, double nothing, and sort: with random passes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.history.snapshots import compact as module
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.commit import put_pass
from kctl.history.snapshots.merge import merged
from kctl.history.snapshots.read import read_sorted
from kctl.history.snapshots.rows import BadRows, batch_of, read_rows
from kctl.history.snapshots.store import create_store
from snapshot_stores import FOREVER, HOUR, commit, compact_all, names, no_damage, put, rows_of, seen

KEYS = schema.SORT_KEYS[schema.COMMITS]
TEXT = st.text(st.characters(codec="utf-8"), min_size=0, max_size=3) | st.sampled_from(
    ["g", "g1", "G", "é", "\U00010000", "￿"]
)
OFFSET = st.integers(0, 2**63 - 11)
ROWS = st.dictionaries(
    st.tuples(TEXT, TEXT, st.integers(0, 2**31 - 1) | st.integers(0, 3)), st.none() | OFFSET, max_size=12
)


def commits(rows: dict[tuple[str, str, int], int | None]) -> list[tuple[Any, ...]]:
    return [commit(*key, offset) for key, offset in rows.items()]


def key_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (row[1].encode(), row[2].encode(), row[3], row[0])


@pytest.fixture(autouse=True, scope="module")
def no_fsync() -> Iterator[None]:
    """Hundreds of stores, and a slow disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        yield


@given(st.lists(st.tuples(st.integers(1, 10**15), ROWS), max_size=6), st.integers(1, 4))
@settings(max_examples=40)
def test_merged_is_sorted_concatenation(passes: list[tuple[int, Any]], batch_rows: int) -> None:
    rows = [[(at, *row) for row in commits(each)] for at, each in passes]
    batches = [batch_of(schema.COMMITS, each) for each in rows]
    streams = [[b.slice(i, batch_rows) for i in range(0, b.num_rows, batch_rows)] for b in batches]
    given_rows = [tuple(row.values()) for piece in merged(streams, KEYS) for row in piece.to_pylist()]
    expected = [row for each in rows for row in each]
    assert sorted(given_rows, key=repr) == sorted(expected, key=repr)
    assert [key_of(row) for row in given_rows] == sorted(key_of(row) for row in expected)


@given(
    st.dictionaries(st.integers(0, 3_599_999), ROWS, min_size=1, max_size=7),
    st.integers(0, 7),
    st.sampled_from([2, 3, 240]),
)
@settings(max_examples=8)
def test_compaction_is_concatenation(passes: dict[int, Any], early: int, at_once: int) -> None:
    """Whatever is compacted when: a reader sees the rows of all passes, each once."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "AT_ONCE", at_once)
        store = create_store(Path(folder) / "store", "c")
        expected: dict[str, list[Any]] = {}
        for number, (offset, rows) in enumerate(sorted(passes.items())):
            if number == early:
                compact_all(store)
            found = Pass(rows={schema.COMMITS: commits(rows)})
            put(store, offset, found)
            for table, more in rows_of(found, offset).items():
                expected.setdefault(table, []).extend(more)
        before = seen(store)
        assert before.get(schema.COMMITS, []) == sorted(expected[schema.COMMITS], key=repr)
        compact_all(store)
        assert seen(store) == before
        ((file),) = store.valid_files(HOUR).files
        assert file.compacted
        if before.get(schema.COMMITS):
            with (store.folder(schema.COMMITS, HOUR) / file.name).open("rb") as stream:
                rows_there = [tuple(r.values()) for b in read_rows(stream, schema.COMMITS) for r in b.to_pylist()]
            assert [key_of(row) for row in rows_there] == sorted(key_of(row) for row in rows_there)


def test_a_stream_that_is_not_sorted_is_told() -> None:
    batch = batch_of(schema.COMMITS, [(1, *commit(f"g{i}", "t", 0, 1)) for i in range(8)])
    shuffled = [batch.slice(6, 2), batch.slice(4, 2), batch.slice(2, 2), batch.slice(0, 2)]
    with pytest.raises(BadRows, match="not sorted"):
        list(merged([shuffled], KEYS))


def test_keys_too_wide_for_one_number_sort_as_well() -> None:
    rows = [(at, *commit(g, t, p, None)) for at in (2**62, 1) for g in "zab" for t in "yx" for p in (2**31 - 1, 0)]
    pieces = list(merged([[batch_of(schema.COMMITS, rows[:12])], [batch_of(schema.COMMITS, rows[12:])]], KEYS))
    got = [tuple(row.values()) for piece in pieces for row in piece.to_pylist()]
    assert [key_of(row) for row in got] == sorted(key_of(row) for row in rows)


def test_read_sorted_goes_over_hours_and_takes_a_range_of_groups(tmp_path: Path) -> None:
    store = create_store(tmp_path / "store", "c")
    for hour in range(3):
        for minute in range(3):
            at_ms = HOUR.start_ms + hour * 3_600_000 + minute * 60_000
            rows = [commit(f"g{i}", "t", 0, at_ms - HOUR.start_ms) for i in range(6)]
            put_pass(store, at_ms, at_ms, Pass(rows={schema.COMMITS: rows}))
        if hour < 2:
            compact_all(store)
    got = [
        row
        for batch in read_sorted(store, schema.COMMITS, *FOREVER, damaged=no_damage, lower="g2", upper="g4")
        for row in batch.to_pylist()
    ]
    assert [(r["group"], r["at_ms"]) for r in got] == sorted((r["group"], r["at_ms"]) for r in got)
    assert {r["group"] for r in got} == {"g2", "g3"}
    assert len(got) == 2 * 9


def test_files_are_small_and_encoded_as_meant(tmp_path: Path) -> None:
    """13 bytes a row is the aim, with offsets that move by some thousand in a minute."""
    import random

    import pyarrow.parquet as pq

    dice = random.Random(6)
    store = create_store(tmp_path / "store", "c")
    position = {(g, p): dice.randrange(10**10) for g in range(5) for p in range(20)}
    for minute in range(60):
        rows = []
        for (g, p), end in position.items():
            position[g, p] = end + dice.randrange(3000)
            rows.append(
                (f"group-{g}", f"topic-{g % 7}", p, end - dice.randrange(1000), end - 10**6, end, 3, "x", False)
            )
        put(store, minute * 60_000 + dice.randrange(300), Pass(rows={schema.COMMITS: rows}))
    compact_all(store)
    (name,) = [name for name in names(store, schema.COMMITS) if name.startswith("hour-")]
    path = store.folder(schema.COMMITS, HOUR) / name
    assert path.stat().st_size / (60 * 100) < 13
    with path.open("rb") as stream:
        file = pq.ParquetFile(stream)
        group = file.metadata.row_group(0)
        encodings = {group.column(i).path_in_schema: set(group.column(i).encodings) for i in range(group.num_columns)}
        statistics = {group.column(i).path_in_schema: group.column(i).statistics for i in range(group.num_columns)}
    assert "DELTA_BINARY_PACKED" in encodings["log_end_offset"]
    assert "RLE_DICTIONARY" in encodings["group"]
    bounds = statistics["group"]
    assert bounds is not None
    assert (bounds.min, bounds.max) == ("group-0", "group-4")
