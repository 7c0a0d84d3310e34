"""How replicas grew by a store: the plain rule, whatever files the rows lie in and however topics are split."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from growth_oracle import SizeSample, growth
from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange
from kctl.history.lag.window import MINUTE_MS
from kctl.history.retention.replica_growth import ARROW, SizesQuery, read, replicas_of, rows_of, topic_ranges, volumes
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.compact import compact
from kctl.history.snapshots.layout import HOUR_MS
from kctl.history.snapshots.store import Store, create_store, open_store
from kctl.spark.size_source import SCHEMA
from snapshot_stores import HOUR, no_damage, put


def read_rows(*asked: Any) -> Any:
    return rows_of(read(*asked))


TOPICS = ["a", "b", "logs-1", "é"]
PASSES = 75


def _sizes(number: int) -> dict[tuple[str, int, int], int]:
    rng = random.Random(number)
    return {
        (topic, partition, broker): 1000 * number % 7000 + rng.randrange(100)
        for topic in TOPICS
        for partition in range(2)
        for broker in (1, 2)
        if rng.random() > 0.1
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Passes of 75 minutes; the first hour is compacted."""
    found = create_store(tmp_path_factory.mktemp("sizes") / "store", "c")
    for number in range(PASSES):
        replicas = [(b, "/d", t, p, size, 0, False) for (t, p, b), size in _sizes(number).items()]
        dirs = [(b, "/d", 10**9, None if number % 5 == 4 else 10**8 - number * 100, None) for b in (1, 2)]
        put(found, number * MINUTE_MS, Pass(rows={schema.REPLICAS: replicas, schema.LOG_DIRS: dirs}))
    for _ in compact(found, HOUR):
        pass
    return found


def _asked(store: Store, first: int = 0, end: int = PASSES) -> SizesQuery:
    return SizesQuery(str(store.root), HOUR.start_ms + first * MINUTE_MS, HOUR.start_ms + end * MINUTE_MS)


@pytest.mark.parametrize(("first", "end"), [(0, PASSES), (10, 20), (55, 70), (62, 63)])
@pytest.mark.parametrize("borders", [[], ["b"], ["b", "c", "z"]])
def test_replicas(store: Store, first: int, end: int, borders: list[str]) -> None:
    ranges = [GroupRange(*each) for each in zip([None, *borders], [*borders, None], strict=True)]
    found = {}
    for each in ranges:
        rows, errors = replicas_of(read_rows(_asked(store, first, end), each))
        assert errors == []
        for row in rows:
            key = (row.topic, row.partition, row.broker)
            assert key not in found
            found[key] = row.growth
    seen: dict[tuple[str, int, int], list[SizeSample]] = {}
    for number in range(first, end):
        for key, size in _sizes(number).items():
            seen.setdefault(key, []).append(SizeSample(HOUR.start_ms + number * MINUTE_MS, size))
    assert found == {key: growth(samples) for key, samples in seen.items()}


def test_volumes(store: Store) -> None:
    found = volumes(store, _asked(store), damaged=no_damage)
    assert [(row.broker, row.log_dir, row.total_bytes) for row in found] == [(1, "/d", 10**9), (2, "/d", 10**9)]
    assert found[0].growth.samples == PASSES - PASSES // 5
    assert found[0].growth.net_per_hour == pytest.approx(-6000)


def test_ranges_hold_all_topics(store: Store) -> None:
    asked = _asked(store)
    assert topic_ranges(store, asked.from_ms, asked.to_ms, 1, damaged=no_damage) == [EVERY_GROUP]
    found = topic_ranges(store, asked.from_ms, asked.to_ms, 3, damaged=no_damage)
    assert len(found) == 3
    assert (found[0].lower, found[-1].upper) == (None, None)
    assert [row.upper for row in found[:-1]] == [row.lower for row in found[1:]]
    assert topic_ranges(store, 0, 5, 3, damaged=no_damage) == [EVERY_GROUP]


def test_what_cannot_be_read_is_a_row(store: Store, tmp_path: Path) -> None:
    rows, (error,) = replicas_of(read_rows(SizesQuery(str(tmp_path / "none"), 0, 10**13)))
    assert rows == []
    assert "not a snapshot store" in error
    other = create_store(tmp_path / "s", "c")
    for number in range(2):
        put(other, number, Pass(rows={schema.REPLICAS: [(1, "/d", "t", 0, number, 0, False)]}))
    bad = other.folder(schema.REPLICAS, HOUR) / f"pass-{HOUR.start_ms}.parquet"
    bad.write_bytes(b"PAR1" + b"x" * 50)
    (row,), (error,) = replicas_of(read_rows(SizesQuery(str(other.root), 0, 10**13)))
    assert row.growth.samples == 1
    assert str(bad) in error
    assert open_store(other.root).hours() == [HOUR]
    assert HOUR.end_ms - HOUR.start_ms == HOUR_MS


def test_the_schemas_are_the_same() -> None:
    assert SCHEMA.names == ARROW.names
