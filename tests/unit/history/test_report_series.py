"""Groups over time: series over columns are what the plain rules give, whatever the batches' borders."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.history.evaluate.windows import judge_batches
from kctl.history.lag.status import Status, alarm_of, group_status, standing_of
from kctl.history.lag.window import Reading, WindowRules
from kctl.history.report.buckets import TimeBuckets, buckets_of, status_spans
from kctl.history.report.group_states import StateStream
from kctl.history.report.lag_series import SeriesWatch, Times
from kctl.history.report.model import GroupSeries, State
from kctl.history.report.owned_rows import OwnedRows
from kctl.history.snapshots import schema
from kctl.history.snapshots.rows import batch_of
from window_oracle import Observation, judge

RULES = WindowRules(observations=3, span_ms=10**9, history=20)
HOUR_MS = 3_600_000
Rows = dict[str, list[tuple[Any, ...]]]


def _pieces(table: str, rows: Iterable[tuple[Any, ...]], size: int) -> Iterator[pa.RecordBatch]:
    """Yield sorted rows as batches of `size`, with dictionary-encoded text like batches from the store."""
    batch = batch_of(table, rows)
    arrays = [array.dictionary_encode() if array.type == pa.string() else array for array in batch.columns]
    whole = pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
    for begin in range(0, whole.num_rows, size):
        yield whole.slice(begin, size)


def _watched(rows: Rows, times: list[int], buckets: TimeBuckets, size: int) -> SeriesWatch:
    watch = SeriesWatch(
        OwnedRows(_pieces(schema.OWNERS, rows[schema.OWNERS], size + 1)),
        StateStream(_pieces(schema.GROUPS, rows[schema.GROUPS], size + 2), np.array(times, dtype=np.int64)),
        Times(np.array(times, dtype=np.int64), buckets),
    )
    for _ in watch.watch(judge_batches(_pieces(schema.COMMITS, rows[schema.COMMITS], size), RULES)):
        pass
    return watch


def _random_rows(seed: int) -> tuple[Rows, list[int]]:
    """Return random groups over hourly passes, with gaps, deleted topics and changing owners."""
    rng = random.Random(seed)
    times = [HOUR_MS * (i + 1) for i in range(rng.randint(1, 30))]
    rows: Rows = {schema.COMMITS: [], schema.OWNERS: [], schema.GROUPS: []}
    for group in rng.sample(["a", "b", "c-long", "é", "z"], rng.randint(1, 4)):
        quiet = rng.random() < 0.5
        offset = dict.fromkeys(range(6), 10)
        for at in times:
            if rng.random() < 0.1:
                continue
            state = rng.choice(["Stable", "Empty", "Dead", "PreparingRebalance"]) if not quiet else "Empty"
            if rng.random() < 0.9:
                rows[schema.GROUPS].append((at, group, state, None, "consumer", rng.choice([None, 1]), 1))
            for number in range(6):
                topic, partition = ("t", "u", "v")[number // 2], number % 2
                end = 20 + at // HOUR_MS * 5
                offset[number] += 0 if quiet else rng.choice([0, 3, 5, -4])
                committed = None if rng.random() < 0.05 else max(min(offset[number], end), 0)
                deleted = topic == "v" and rng.random() < 0.5
                log_end = None if deleted or rng.random() < 0.05 else end
                start = None if deleted else 0
                rows[schema.COMMITS].append((at, group, topic, partition, committed, start, log_end, 3, "i", deleted))
                if state == "Stable" and rng.random() < 0.5:
                    rows[schema.OWNERS].append((at, group, topic, partition, "m", "c", "h"))
    return rows, times


# --- the plain way --------------------------------------------------------------------------------------------------


def _plain(rows: Rows, times: list[int], buckets: TimeBuckets, group: str) -> GroupSeries:
    deleted: dict[tuple[str, int, int], bool] = {}
    observed: dict[tuple[str, int], list[Observation]] = {}
    for at, name, topic, partition, committed, start, end, _, topic_id, gone in rows[schema.COMMITS]:
        if name == group:
            observed.setdefault((topic, partition), []).append(Observation(at, committed, start, end, topic_id))
            deleted[topic, partition, at] = gone
    readings = {key: judge(each, RULES) for key, each in observed.items()}
    owned = {(row[2], row[3], row[0]) for row in rows[schema.OWNERS] if row[1] == group}
    states = {row[0]: row[2] for row in rows[schema.GROUPS] if row[1] == group}
    lag: list[list[int]] = [[] for _ in range(buckets.size)]
    age: list[list[int]] = [[] for _ in range(buckets.size)]
    worst: list[list[Status]] = [[] for _ in range(buckets.size)]
    for at in times:
        place = buckets.of(at)
        seen = {key: r for key, each in readings.items() for r in each if r.at_ms == at}
        if not seen:
            continue
        worst[place].append(_alarm(at, seen, deleted, owned, states.get(at)))
        age[place] += [r.time_lag_least_ms for r in seen.values() if r.time_lag_least_ms is not None]
        committed_at = {key: r.unchanged_ms is not None for key, r in seen.items()}
        lacking = any(
            committed_at[key] and r.lag is None and not deleted[key[0], key[1], at] for key, r in seen.items()
        )
        lags = [r.lag for r in seen.values() if r.lag is not None]
        if lags and not lacking:
            lag[place].append(sum(lags))
    return GroupSeries(
        group,
        [max(each, default=None) for each in lag],
        [max(each, default=None) for each in age],
        status_spans(State[max(each).name] if each else None for each in worst),
    )


def _alarm(
    at: int,
    seen: dict[tuple[str, int], Reading],
    deleted: dict[tuple[str, int, int], bool],
    owned: set[tuple[str, int, int]],
    state: str | None,
) -> Status:
    found = []
    for (topic, partition), reading in seen.items():
        same = {key: r for key, r in seen.items() if key[0] == topic}
        unchanged = [r.unchanged_ms for r in same.values() if r.unchanged_ms is not None]
        standing = standing_of(
            state,
            deleted=deleted[topic, partition, at],
            topic_owned=any((*key, at) in owned for key in same),
            unchanged_ms=min(unchanged, default=None),
        )
        verdict = reading.status_owned if (topic, partition, at) in owned else reading.status
        found.append(alarm_of(verdict, standing))
    return group_status(found)


# --- tests ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(16))
def test_series_equal_those_of_the_plain_rules(seed: int) -> None:
    rows, times = _random_rows(seed)
    buckets = buckets_of(times, max_buckets=7)
    watch = _watched(rows, times, buckets, size=random.Random(seed).choice([1, 2, 7, 50, 10_000]))
    names = sorted({row[1] for row in rows[schema.COMMITS]})
    assert sorted(watch.by_group) == names
    for name in names:
        assert watch.series(name) == _plain(rows, times, buckets, name)


@settings(max_examples=6)
@given(st.integers(0, 50), st.integers(3, 40))
def test_batch_boundaries_do_not_matter(seed: int, size: int) -> None:
    rows, times = _random_rows(seed)
    buckets = buckets_of(times)
    one, other = _watched(rows, times, buckets, 10**6), _watched(rows, times, buckets, size)
    assert [one.series(name) for name in one.by_group] == [other.series(name) for name in other.by_group]


def test_owners_are_found_whatever_the_numbers() -> None:
    """Partitions and times at the limits of their types: the product of their ranges exceeds int64."""
    keys = [("g", "t", p, at) for p in (0, 2**31 - 1) for at in (0, 1, 2**62)]
    rows = [(at, g, t, p, 5, 0, 9, 3, "i", False) for g, t, p, at in keys]
    owners = [(at, g, t, p, "m", "c", "h") for g, t, p, at in keys[1::2]]
    (batch,) = _pieces(schema.COMMITS, rows, 100)
    found = OwnedRows(_pieces(schema.OWNERS, owners, 2)).of(batch)
    assert found.tolist() == [False, True] * 3


def test_a_group_that_was_never_read_has_gaps() -> None:
    rows, times = _random_rows(3)
    buckets = buckets_of(times)
    found = _watched(rows, times, buckets, 100).series("nobody")
    assert found.lag == found.time_lag_ms == [None] * buckets.size
    assert [(span.count, span.status) for span in found.timeline] == [(buckets.size, None)]


def test_a_stopped_group_is_an_alarm_until_it_is_stale() -> None:
    """A day without commits and members makes the group stale. Its earlier alarm remains in the past."""
    times = [HOUR_MS * (i + 1) for i in range(40)]
    rows: Rows = {
        schema.COMMITS: [(at, "g", "t", 0, 5, 0, 100 + at // HOUR_MS, 3, "i", False) for at in times],
        schema.OWNERS: [],
        schema.GROUPS: [(at, "g", "Empty", None, "consumer", 0, 1) for at in times],
    }
    spans = _watched(rows, times, TimeBuckets(times[0], HOUR_MS, 40), 100).series("g").timeline
    assert [(span.first, span.count, span.status) for span in spans] == [
        (0, 2, State.OK), (2, 22, State.ERR), (24, 16, State.OK),
    ]  # fmt: skip
