"""Growth over Arrow batches is what the plain rule says, whatever the batches' borders."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth_oracle import SizeSample, growth
from kctl.history.evaluate.growth import MAX_BYTES, Sizes, by_key, growths
from kctl.history.snapshots import schema
from kctl.history.snapshots.rows import batch_of

REPLICAS = Sizes(("topic", "partition", "broker", "log_dir", "future"), "size_bytes", ("offset_lag",))
VOLUMES = Sizes(("broker", "log_dir"), "usable_bytes", ("total_bytes",))

Row = tuple[int, int, str, str, int, int, int, bool]

replica_rows = st.lists(
    st.tuples(
        st.integers(1, 40),
        st.sampled_from([1, 2]),
        st.sampled_from(["/a", "/b"]),
        st.sampled_from(["t", "é"]),
        st.integers(0, 1),
        st.one_of(st.integers(0, 5), st.integers(0, 10**12), st.just(-1), st.just(MAX_BYTES + 1)),
        st.integers(0, 9),
        st.booleans(),
    ),
    max_size=60,
    unique_by=lambda row: (row[0], *row[1:5], row[7]),
)


def cut(batch: pa.RecordBatch, borders: list[int]) -> Iterator[pa.RecordBatch]:
    places = sorted({0, batch.num_rows, *(border % (batch.num_rows + 1) for border in borders)})
    for begin, end in pairwise(places):
        yield batch.slice(begin, end - begin)


def as_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    text = {"topic", "log_dir"}
    arrays = [
        column.dictionary_encode() if name in text else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


@given(replica_rows, st.lists(st.integers(0, 60), max_size=6), st.booleans())
def test_columns_say_what_the_plain_rule_says(rows: list[Row], borders: list[int], encoded: bool) -> None:
    batch = batch_of(schema.REPLICAS, rows)
    pieces = (as_dictionaries(each) if encoded else each for each in cut(batch, borders))
    found = dict(by_key(growths(pieces, REPLICAS), REPLICAS.names))
    by_name: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        _, broker, log_dir, topic, partition, size, _, future = row
        if 0 <= size <= MAX_BYTES:
            by_name.setdefault((topic, partition, broker, log_dir, future), []).append(row)
    expected = {}
    for key, each in by_name.items():
        last = max(each)
        name = (*key, last[6])
        expected[name] = growth(SizeSample(row[0], row[5]) for row in each)
    assert found == expected


def test_volumes_whose_size_is_not_known_at_times() -> None:
    rows = [(at, 1, "/d", 100, None if at == 2 else 90 - at, None) for at in range(5)]
    ((key, grown),) = by_key(growths([batch_of(schema.LOG_DIRS, rows)], VOLUMES), VOLUMES.names)
    assert key == (1, "/d", 100)
    assert (grown.samples, grown.first_bytes, grown.last_bytes, grown.shrunk_at_ms) == (4, 90, 86, 4)


def test_nothing_at_all() -> None:
    assert list(growths([], VOLUMES)) == []
    assert list(growths([batch_of(schema.LOG_DIRS, [])], VOLUMES)) == []
    unknown = batch_of(schema.LOG_DIRS, [(1, 1, "/d", None, None, "offline")])
    assert list(growths([unknown], VOLUMES)) == []


@pytest.mark.parametrize("rows_each", [1, 7, 1000])
def test_memory_is_a_key_whatever_the_number_of_rows(rows_each: int) -> None:
    """The rows of one key are given once, and only when the next one begins."""
    rng = random.Random(1)
    rows = [(at, 1, "/d", "t", partition, rng.randrange(100), 0, False) for partition in range(5) for at in range(200)]
    batch = batch_of(schema.REPLICAS, rows)
    pieces = (batch.slice(start, rows_each) for start in range(0, 1000, rows_each))
    found = list(by_key(growths(pieces, REPLICAS), REPLICAS.names))
    assert [key[1] for key, _ in found] == [0, 1, 2, 3, 4]
    assert all(grown.samples == 200 for _, grown in found)
