"""Readings of a store: what the plain rules give, whatever files the rows lie in and however groups are split."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from kctl.history.evaluate import group_ranges as snapshot_ranges
from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange, group_ranges, split
from kctl.history.evaluate.reading_batches import ARROW, ReadingsQuery, read
from kctl.history.lag.status import Status
from kctl.history.lag.window import MINUTE_MS, Reading, WindowRules
from kctl.history.snapshots import files, schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.compact import compact
from kctl.history.snapshots.layout import HOUR_MS, DataFile, hour_of
from kctl.history.snapshots.store import Damaged, Store, open_store
from kctl.spark.snapshot_source import SCHEMA
from snapshot_stores import HOUR, put, store_with
from window_oracle import Observation, judge

Key = tuple[str, str, int]
GROUPS = ["", "a", "b", "group-with-a-long-name", "é", "日本"]
RULES = WindowRules(observations=4, span_ms=20 * MINUTE_MS, history=30)
NAMES = [field.name for field in fields(Reading)]
PASSES = 75  # a minute apart


_HALVES = [GroupRange(None, "g4"), GroupRange("g4", None)]


def _rows(number: int) -> list[tuple[Any, ...]]:
    """What pass `number` saw; each group has a way of its own, and some are not seen in each pass."""
    rng = random.Random(number)
    rows: list[tuple[Any, ...]] = []
    for place, group in enumerate(GROUPS):
        if rng.random() < 0.1:
            continue
        for topic in ("t", "u"):
            for partition in range(2):
                end = 100 + 10 * number + partition
                committed = [end, end - 5, 50, 50 + 5 * number, None, end - number % 7][place]
                rows.append((group, topic, partition, committed, 20, end, 3, "id", False))
        rows.append((group, "gone", 0, 5, None, None, None, None, True))
    return rows


def _observed() -> dict[Key, list[Observation]]:
    found: dict[Key, list[Observation]] = {}
    for number in range(PASSES):
        at_ms = HOUR.start_ms + number * MINUTE_MS
        for group, topic, partition, committed, start, end, _, topic_id, _ in _rows(number):
            row = Observation(at_ms, committed, start, end, topic_id)
            found.setdefault((group, topic, partition), []).append(row)
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """An hour that is compacted and a quarter of an hour of passes that are not."""
    found = store_with(tmp_path_factory.mktemp("store") / "s", [])
    for number in range(PASSES):
        put(found, number * MINUTE_MS, Pass(rows={schema.COMMITS: _rows(number)}))
    for _ in compact(found, HOUR):
        pass
    return found


def _question(store: Store, first: int = 0, last: int = PASSES, **options: Any) -> ReadingsQuery:
    """Of the passes from `first` on, before `last`."""
    from_ms, to_ms = (HOUR.start_ms + number * MINUTE_MS for number in (first, last))
    return ReadingsQuery(str(store.root), from_ms, to_ms, options.pop("rules", RULES), **options)


Found = tuple[dict[Key, list[Reading]], list[str]]


def _undamaged(damaged: Damaged) -> None:
    pytest.fail(str(damaged))


def _read(query: ReadingsQuery, ranges: Iterable[GroupRange] = (EVERY_GROUP,)) -> Found:
    found: dict[Key, list[Reading]] = {}
    errors: list[str] = []
    for each in ranges:
        own: set[Key] = set()
        for batch in read(query, each):
            batch.validate(full=True)
            assert batch.schema.equals(ARROW)
            for row in batch.to_pylist():
                if row["error"] is not None:
                    assert row["group"] is None
                    errors.append(row["error"])
                    continue
                key = (row["group"], row["topic"], row["partition"])
                own.add(key)
                reading = Reading(**{name: row[name] for name in NAMES})
                states = {"status": Status(reading.status), "status_owned": Status(reading.status_owned)}
                found.setdefault(key, []).append(replace(reading, **states))
                assert row["deleted"] is (row["topic"] == "gone")
        assert not own & (found.keys() - own)
    return found, errors


def _expected(first: int, last: int, rules: WindowRules, *, lookback_ms: int) -> dict[Key, list[Reading]]:
    from_ms, to_ms = (HOUR.start_ms + number * MINUTE_MS for number in (first, last))
    found = {}
    for key, rows in _observed().items():
        kept = judge([row for row in rows if from_ms - lookback_ms <= row.at_ms < to_ms], rules)
        found[key] = [reading for reading in kept if reading.at_ms >= from_ms]
    return {key: rows for key, rows in found.items() if rows}


@pytest.mark.parametrize(
    ("span", "tasks"), [((0, PASSES), 3), ((50, 70), 1), ((50, 70), 32), ((59, 61), 3), ((65, 66), 2), ((0, 5), 2)]
)
def test_readings_over_compacted_hours_and_single_passes(store: Store, span: tuple[int, int], tasks: int) -> None:
    query = _question(store, *span)
    ranges = group_ranges(store, query.read_from_ms, query.to_ms, tasks, damaged=_undamaged)
    assert len(ranges) <= tasks
    found, errors = _read(query, ranges)
    assert not errors
    expected = _expected(*span, RULES, lookback_ms=RULES.span_ms)
    assert found == expected
    last, _ = _read(replace(query, last_only=True), ranges)
    assert last == {key: rows[-1:] for key, rows in expected.items()}


def test_a_longer_look_back_finds_the_time_lag(store: Store) -> None:
    rules = RULES._replace(history=1440)
    near, far = (
        _read(_question(store, 72, 75, rules=rules, lookback_ms=back))[0]["b", "t", 0][-1]
        for back in (RULES.span_ms, 90 * MINUTE_MS)
    )
    assert (near.time_lag_ms, far.time_lag_ms) == (None, None)  # offset 50 is older than the store
    assert near.time_lag_least_ms is not None
    assert far.time_lag_least_ms is not None
    assert near.time_lag_least_ms < far.time_lag_least_ms
    assert far.status is near.status is Status.STOP


def test_a_damaged_file_is_named_and_the_rest_is_read(store: Store, tmp_path: Path) -> None:
    shutil.copytree(store.root, tmp_path / "s")
    copy = open_store(tmp_path / "s")
    at_ms = HOUR.start_ms + 68 * MINUTE_MS
    bad = copy.folder(schema.COMMITS, hour_of(at_ms)) / DataFile(at_ms, compacted=False).name
    bad.write_bytes(b"PAR1" + b"\0" * 100)
    found, errors = _read(_question(copy, 65, 75))
    assert len(errors) == 1
    assert str(bad) in errors[0]
    whole, _ = _read(_question(store, 65, 75))
    assert found.keys() == whole.keys()
    assert all(reading.at_ms != at_ms for rows in found.values() for reading in rows)
    damaged: list[object] = []
    query = _question(copy, 65, 69)  # the newest file is the damaged one: the next says how rows are spread
    assert len(group_ranges(copy, query.read_from_ms, query.to_ms, 3, damaged=damaged.append)) == 3
    assert len(damaged) == 1


def test_no_store_is_an_error_of_the_task(tmp_path: Path) -> None:
    found, errors = _read(ReadingsQuery(str(tmp_path / "none"), 0, 1))
    assert not found
    assert "is not a snapshot store" in errors[0]


def test_an_empty_span(store: Store) -> None:
    query = _question(store, PASSES + 600, PASSES + 700)
    assert group_ranges(store, query.from_ms, query.to_ms, 4, damaged=_undamaged) == [EVERY_GROUP]
    assert _read(query) == ({}, [])


def test_only_the_hours_that_are_asked_for_are_opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    plain = files.opened

    def noted(path: Path) -> Any:
        opened.append(path)
        return plain(path)

    monkeypatch.setattr(files, "opened", noted)
    list(read(_question(store, 70, 75, lookback_ms=MINUTE_MS)))
    hours = {path.parent for path in opened if schema.COMMITS in path.parts}
    assert hours == {store.folder(schema.COMMITS, hour_of(HOUR.start_ms + HOUR_MS))}


# --- ranges ---------------------------------------------------------------------------------------------------------


@given(
    weights=st.lists(st.tuples(st.text(max_size=3), st.integers(0, 1000)), max_size=40),
    parts=st.integers(1, 8),
)
def test_ranges_hold_each_group_once_and_none_is_much_too_large(weights: list[tuple[str, int]], parts: int) -> None:
    ranges = split(weights, parts)
    assert 1 <= len(ranges) <= parts
    assert ranges[0].lower is None
    assert ranges[-1].upper is None
    sums = [0] * len(ranges)
    for name, weight in weights:
        holding = [i for i, r in enumerate(ranges) if (r.lower or "") <= name and (r.upper is None or name < r.upper)]
        assert len(holding) == 1
        sums[holding[0]] += weight
    by_name: dict[str, int] = {}
    for name, weight in weights:
        by_name[name] = by_name.get(name, 0) + weight
    if by_name:
        assert max(sums) <= sum(by_name.values()) / parts + max(by_name.values())


def test_row_groups_say_where_to_cut_when_there_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "ROW_GROUP_ROWS", 10)
    found = store_with(tmp_path / "s", [])
    for number in range(10):
        rows = [(f"g{n}", "t", 0, 1, 0, 2, 3, "id", False) for n in range(12)]
        put(found, number * MINUTE_MS, Pass(rows={schema.COMMITS: rows}))
    for _ in compact(found, HOUR):
        pass
    read_files: list[object] = []
    monkeypatch.setattr(snapshot_ranges, "read_file", lambda *args, **options: iter(read_files))
    ranges = group_ranges(found, HOUR.start_ms, HOUR.end_ms, 3, damaged=_undamaged)
    borders = sorted(f"g{n}" for n in range(12))
    assert [each.lower for each in ranges] == [None, borders[4], borders[8]]
    assert group_ranges(found, HOUR.start_ms, HOUR.end_ms, 4, damaged=_undamaged) == [EVERY_GROUP]  # too few: it reads


def test_no_damage_of_a_footer_ends_planning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow ends the process when it is asked for the statistics of some of these."""
    monkeypatch.setattr(schema, "ROW_GROUP_ROWS", 2)
    found = store_with(tmp_path / "s", [])
    put(found, 0, Pass(rows={schema.COMMITS: [(f"g{n}", "t", 0, 1, 0, 2, 3, "id", False) for n in range(8)]}))
    path = found.folder(schema.COMMITS, HOUR) / DataFile(HOUR.start_ms, compacted=False).name
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    assert group_ranges(found, HOUR.start_ms, HOUR.end_ms, 2, damaged=_undamaged) == _HALVES
    for place in range(len(whole) - 8 - length, len(whole), 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        damaged: list[Damaged] = []
        ranges = group_ranges(found, HOUR.start_ms, HOUR.end_ms, 2, damaged=damaged.append)
        assert ranges == _HALVES or (ranges == [EVERY_GROUP] and damaged), place


def test_the_schema_is_arrows() -> None:
    assert to_arrow_schema(SCHEMA).names == ARROW.names
    assert [field.type for field in to_arrow_schema(SCHEMA)] == [field.type for field in ARROW]
    assert pa.int8() == ARROW.field("status").type
