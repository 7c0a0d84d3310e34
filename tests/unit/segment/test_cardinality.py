"""Counting keys in bounded memory, against counting all of them."""

from __future__ import annotations

import hashlib
import random
from collections import Counter

import pytest

from kctl.segment.stats.cardinality import DistinctSketch, HotKeys, KeyTable, displayed_part, identity


def _keys(count: int, distinct: int, seed: int = 1) -> list[bytes]:
    """Some keys are far hotter than others."""
    pick = random.Random(seed)
    return [b"key-%d" % int(distinct * pick.random() ** 3) for _ in range(count)]


@pytest.mark.parametrize("length", [0, 1, 47, 48, 49, 5000])
def test_identity_is_the_key_or_its_beginning_and_md5(length: int) -> None:
    key = bytes(number % 251 for number in range(length))
    expected = key if length < 48 else key[:32] + hashlib.md5(key).digest()
    assert identity(key) == expected
    assert displayed_part(identity(key)) == ((key, False) if length < 48 else (key[:32], True))


def test_keys_that_only_differ_behind_their_beginning_differ() -> None:
    assert identity(b"x" * 100 + b"1") != identity(b"x" * 100 + b"2")
    assert identity(identity(b"x" * 100)) != identity(b"x" * 100)  # a key that looks like an identity


def test_a_beginning_ends_where_a_character_ends() -> None:
    assert displayed_part(identity(("a" + "ä" * 40).encode())) == (("a" + "ä" * 15).encode(), True)


@pytest.mark.parametrize(("count", "distinct", "capacity"), [(5000, 50, 100), (20_000, 5000, 40), (3000, 3000, 10)])
def test_hot_keys_are_within_their_error(count: int, distinct: int, capacity: int) -> None:
    keys = _keys(count, distinct)
    hot = HotKeys(capacity)
    for start in range(0, count, 37):
        hot.add(keys[start : start + 37])
    real = Counter(keys)
    top = hot.top(capacity)
    assert all(found.records <= real[found.identity] <= found.records + hot.error for found in top)
    found = {key.identity for key in hot.top(10 * capacity)}
    assert {key for key, records in real.items() if records > hot.error} <= found
    assert hot.error <= count / (capacity + 1)
    assert hot.error == 0 or len(real) > 2 * capacity
    if hot.error == 0:
        expected = sorted(real.items(), key=lambda item: (-item[1], item[0]))[:capacity]
        assert [tuple(key) for key in top] == expected


@pytest.mark.parametrize("distinct", [0, 1, 63, 128])
def test_few_values_are_counted_exactly(distinct: int) -> None:
    sketch = DistinctSketch(64)
    for _ in range(2):
        sketch.add([b"%d" % number for number in range(distinct)])
    assert (sketch.estimate(), sketch.relative_error, sketch.empty) == (distinct, 0.0, distinct == 0)


@pytest.mark.parametrize("distinct", [1000, 20_000])
def test_many_values_are_estimated(distinct: int) -> None:
    sketch = DistinctSketch(1024 if distinct > 5000 else 256)
    values = [b"%d" % number for number in range(distinct)]
    for start in range(0, distinct, 100):
        sketch.add(values[start : start + 100])
        sketch.add(values[: min(start, 50)])
    assert sketch.relative_error > 0
    assert abs(sketch.estimate() - distinct) < 4 * sketch.relative_error * distinct


@pytest.mark.parametrize("max_keys", [10_000, 300, 1])
def test_superseded_is_exact_or_a_lower_bound(max_keys: int) -> None:
    keys = _keys(6000, 900)
    sizes = [10 + number % 7 for number in range(len(keys))]
    table = KeyTable(max_keys)
    for start in range(0, len(keys), 50):
        table.add(keys[start : start + 50], sizes[start : start + 50])
    latest = dict(zip(keys, sizes, strict=True))
    records, size_bytes = len(keys) - len(latest), sum(sizes) - sum(latest.values())
    found = table.superseded()
    distinct, error = table.distinct()
    assert table.overflown == (len(latest) > max_keys)
    assert (distinct, error) == (len(latest), 0.0)  # the others are few enough for the sketch
    if table.overflown:
        assert 0 < found.records < records
        assert 0 < found.size_bytes < size_bytes
    else:
        assert found == (records, size_bytes)
