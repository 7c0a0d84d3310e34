"""Rollups of an hour of snapshots (kctl.history.rollups.rollup), read once in the store's order, in constant memory.

Values are first summed over partitions for each pass. Peaks, means and last values are those of the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kctl.history.evaluate.column_arrays import differs, nullable, numbers
from kctl.history.evaluate.window_rules import Flags, Ints, NullableInts
from kctl.history.rollups.rollup import GROUPS, LOG_DIRS, PASSES, START, TOPICS
from kctl.history.snapshots import schema
from kctl.history.snapshots.layout import HOUR_MS, Hour
from kctl.history.snapshots.passes import passes
from kctl.history.snapshots.read import read_sorted
from kctl.history.snapshots.store import Damaged, Store

Floats = npt.NDArray[np.float64]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class HourRollup:
    """The rollups of an hour: rows by table, and read failures."""

    hour: Hour
    rows: dict[str, list[dict[str, Any]]]
    damaged: list[Damaged]


@dataclass(frozen=True)
class _PassTimes:
    """The passes of an hour.

    base_ms: the last pass before the hour, where the first increase starts; None: no such pass.
    """

    base_ms: int | None
    at: Ints
    complete: bool

    def places(self, at: Ints) -> Ints:
        """Return the index of the pass of each row; -1: the pass before the hour."""
        return np.searchsorted(self.at, at, side="right") - 1

    @property
    def from_ms(self) -> int:
        """Return the time of the first pass to read."""
        return int(self.at[0]) if self.base_ms is None else self.base_ms


def roll_up(store: Store, hour: Hour) -> HourRollup:
    """Roll up the passes of an hour. Without passes, there are no rows."""
    damaged: list[Damaged] = []
    available = passes(store, hour.start_ms - HOUR_MS, hour.end_ms, damaged=damaged.append)
    inside = [each for each in available if each.at_ms >= hour.start_ms]
    if not inside:
        return HourRollup(hour, {GROUPS: [], TOPICS: [], LOG_DIRS: []}, damaged)
    base = next((each.at_ms for each in reversed(available) if each.at_ms < hour.start_ms), None)
    at = np.array([each.at_ms for each in inside], dtype=np.int64)
    times = _PassTimes(base, at, all(each.complete for each in inside))

    def stream(table: str) -> Iterator[pa.RecordBatch]:
        return read_sorted(store, table, times.from_ms, hour.end_ms, damaged=damaged.append)

    sizes = _sizes(stream(schema.REPLICAS), times)
    rows = {
        GROUPS: [_group(*each) for each in _runs(stream(schema.COMMITS), ("group", "topic"), times, _commit_figures)],
        TOPICS: _topics(_runs(stream(schema.LOGS), ("topic",), times, _log_figures), sizes.by_topic),
        LOG_DIRS: _log_dirs(_runs(stream(schema.LOG_DIRS), ("broker", "log_dir"), times, _dir_figures), sizes.by_place),
    }
    complete = times.complete and not damaged
    for each in (row for table in rows.values() for row in table):
        each[START], each["complete"] = hour.start_ms, complete
    return HourRollup(hour, rows, damaged)


# --- figures of rows ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Figures:
    """The values of each row.

    sums: values summed for each pass. steps: increases since the row before (of the same partition), summed over the
    hour.
    """

    sums: dict[str, NullableInts]
    steps: dict[str, NullableInts]


def _commit_figures(column: Callable[[str], NullableInts]) -> _Figures:
    committed, start, end = column("committed_offset"), column("log_start_offset"), column("log_end_offset")
    both = committed.valid & start.valid
    reached = np.maximum(committed.value, start.value)
    lag = NullableInts(np.maximum(end.value - reached, 0), both & end.valid)
    deleted = NullableInts(np.maximum(start.value - committed.value, 0), both)
    consumed = np.zeros_like(committed.value)
    # As in kctl.lag.rates.consumed: messages already deleted by the row before were skipped, not consumed.
    consumed[1:] = np.maximum(committed.value[1:] - np.where(start.valid, reached, committed.value)[:-1], 0)
    steps = {"consumed": NullableInts(consumed, committed.valid), "produced": _increase(end)}
    return _Figures({"lag": lag, "lost": deleted}, steps)


def _log_figures(column: Callable[[str], NullableInts]) -> _Figures:
    start, end = column("log_start_offset"), column("log_end_offset")
    messages = NullableInts(np.maximum(end.value - start.value, 0), start.valid & end.valid)
    return _Figures({"messages": messages}, {"produced": _increase(end)})


def _dir_figures(column: Callable[[str], NullableInts]) -> _Figures:
    return _Figures({name: column(name) for name in ("total_bytes", "usable_bytes")}, {})


def _increase(value: NullableInts) -> NullableInts:
    """Return the increase since the row before. Only the later row is checked; `_stepped` checks both."""
    step = np.zeros_like(value.value)
    step[1:] = np.maximum(np.diff(value.value), 0)
    return NullableInts(step, value.valid)


# --- runs of a key --------------------------------------------------------------------------------------------------


@dataclass
class _Run:
    """The accumulated values of a key.

    sums, counts: for each pass, the sums and the numbers of rows with a value. rows: number of rows for each pass.
    steps: increases over the hour. stepped: true if any increase is known.
    """

    sums: dict[str, Floats]
    counts: dict[str, Floats]
    rows: Floats
    steps: dict[str, float]
    stepped: dict[str, bool]

    def add(self, other: _Run) -> None:
        for name, values in other.sums.items():
            self.sums[name] += values
            self.counts[name] += other.counts[name]
        self.rows += other.rows
        for name, value in other.steps.items():
            self.steps[name] += value
            self.stepped[name] |= other.stepped[name]

    def last(self, name: str) -> int | None:
        """Return the sum of the last pass that has one."""
        places = np.flatnonzero(self.counts[name])
        return int(self.sums[name][places[-1]]) if len(places) else None

    def peak(self, name: str) -> int | None:
        counted = self.counts[name] > 0
        return int(self.sums[name][counted].max()) if counted.any() else None

    def least(self, name: str) -> int | None:
        counted = self.counts[name] > 0
        return int(self.sums[name][counted].min()) if counted.any() else None

    def mean(self, name: str) -> float | None:
        counted = self.counts[name] > 0
        return float(self.sums[name][counted].mean()) if counted.any() else None

    def step(self, name: str) -> int | None:
        """Return the increase over the hour; None if no two rows of a partition have a value."""
        return int(self.steps[name]) if self.stepped[name] else None

    @property
    def passes(self) -> int:
        return int((self.rows > 0).sum())

    @property
    def partitions(self) -> int:
        places = np.flatnonzero(self.rows)
        return int(self.rows[places[-1]]) if len(places) else 0


def _runs(
    batches: Iterable[pa.RecordBatch],
    key: tuple[str, ...],
    times: _PassTimes,
    figures: Callable[[Callable[[str], NullableInts]], _Figures],
) -> Iterator[tuple[Key, _Run]]:
    """Yield a run for each key. Batches are sorted by key, partition and time."""
    open_: tuple[Key, _Run] | None = None
    tail: pa.RecordBatch | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        for result, run in _batch_runs(batch, tail, key, times, figures):
            if open_ is not None and open_[0] == result:
                open_[1].add(run)
                continue
            if open_ is not None and open_[1].passes:
                yield open_
            open_ = (result, run)
        tail = batch.slice(batch.num_rows - 1, 1)
    if open_ is not None and open_[1].passes:
        yield open_


def _batch_runs(
    batch: pa.RecordBatch,
    tail: pa.RecordBatch | None,
    key: tuple[str, ...],
    times: _PassTimes,
    figures: Callable[[Callable[[str], NullableInts]], _Figures],
) -> Iterator[tuple[Key, _Run]]:
    """Yield the runs of one batch. tail: the row before the batch, where the first increase starts."""
    names = (*key, "partition") if "partition" in batch.schema.names else key
    before = 0 if tail is None else 1

    def column(name: str) -> NullableInts:
        values = nullable(batch.column(name))
        if tail is None:
            return values
        first = nullable(tail.column(name))
        return NullableInts(np.concatenate((first.value, values.value)), np.concatenate((first.valid, values.valid)))

    result = figures(column)
    new_run, new_partition = _begins(batch, tail, key), _begins(batch, tail, names)
    run = np.cumsum(new_run) - (1 if new_run[0] else 0)
    begins = np.flatnonzero(new_run) if new_run[0] else np.append(0, np.flatnonzero(new_run))
    place = times.places(numbers(batch.column("at_ms")))
    count, width = len(begins), len(times.at)
    here = place >= 0
    cell = run * width + np.maximum(place, 0)

    def table(weights: npt.NDArray[Any]) -> Floats:
        result: Floats = np.bincount(cell[here], weights[here].astype(np.float64), count * width).astype(np.float64)
        return result.reshape(count, width)

    sums = {
        name: (table(np.where(value.valid, value.value, 0)[before:]), table(value.valid[before:]))
        for name, value in result.sums.items()
    }
    rows = table(np.ones(batch.num_rows))
    steps = {name: _stepped(v, new_partition, here, before) for name, v in result.steps.items()}
    for number, begin in enumerate(begins):
        name = tuple(batch.column(each)[int(begin)].as_py() for each in key)
        inside = slice(int(begin), int(begins[number + 1]) if number + 1 < count else batch.num_rows)
        yield (
            name,
            _Run(
                {each: values[number] for each, (values, _) in sums.items()},
                {each: counts[number] for each, (_, counts) in sums.items()},
                rows[number],
                {each: float(v.value[inside][v.valid[inside]].sum()) for each, v in steps.items()},
                {each: bool(v.valid[inside].any()) for each, v in steps.items()},
            ),
        )


def _stepped(value: NullableInts, new_partition: Flags, here: Flags, before: int) -> NullableInts:
    """Return the increases between rows of one partition that both have a value; the later row is in this hour."""
    both = np.zeros(len(value.valid), dtype=bool)
    both[1:] = value.valid[1:] & value.valid[:-1]
    return NullableInts(value.value[before:], both[before:] & ~new_partition & here)


def _begins(batch: pa.RecordBatch, tail: pa.RecordBatch | None, names: Iterable[str]) -> Flags:
    """Return a mask of the rows whose key differs from the row before."""
    result = np.zeros(batch.num_rows, dtype=bool)
    same = tail is not None
    for name in names:
        result |= differs(batch.column(name))
        same = same and tail is not None and tail.column(name)[0].as_py() == batch.column(name)[0].as_py()
    result[0] = not same
    return result


# --- sizes of replicas: by topic, and by log dir --------------------------------------------------------------------


@dataclass(frozen=True)
class _Sizes:
    by_topic: dict[Key, Floats]
    by_place: dict[Key, Floats]


def _sizes(batches: Iterable[pa.RecordBatch], times: _PassTimes) -> _Sizes:
    """Return the bytes of replicas at each pass; NaN if there was none."""
    by_topic: dict[Key, Floats] = {}
    by_place: dict[Key, Floats] = {}
    for batch in batches:
        place, size = times.places(numbers(batch.column("at_ms"))), nullable(batch.column("size_bytes"))
        here = (place >= 0) & size.valid
        for names, result in ((("topic",), by_topic), (("broker", "log_dir"), by_place)):
            code, keys = _codes(batch, names)
            cell = code[here] * len(times.at) + place[here]
            total = np.bincount(cell, size.value[here].astype(np.float64), len(keys) * len(times.at))
            count = np.bincount(cell, minlength=len(keys) * len(times.at))
            each = np.where(count > 0, total, np.nan).reshape(len(keys), len(times.at))
            for key, row in zip(keys, each, strict=True):
                before = result.get(key)
                result[key] = row if before is None else np.where(np.isnan(row), before, np.nan_to_num(before) + row)
    return _Sizes(by_topic, by_place)


def _codes(batch: pa.RecordBatch, names: tuple[str, ...]) -> tuple[Ints, list[Key]]:
    """Return a number for the key of each row, and the keys by number."""
    code = np.zeros(batch.num_rows, dtype=np.int64)
    for name in names:
        array = batch.column(name)
        if isinstance(array, pa.DictionaryArray):
            column = numbers(array.indices)
        else:
            column = np.unique(numbers(array), return_inverse=True)[1].astype(np.int64)
        code = code * (int(column.max()) + 1) + column
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    keys = [tuple(batch.column(name)[int(place)].as_py() for name in names) for place in first]
    return _merge_equal_keys(inverse.astype(np.int64), keys)


def _merge_equal_keys(code: Ints, keys: list[Key]) -> tuple[Ints, list[Key]]:
    """Merge equal keys: a dictionary column may contain a text twice."""
    places: dict[Key, int] = {}
    new_codes = np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int64)
    return new_codes[code], list(places)


def _last(sizes: Floats | None) -> int | None:
    values = _without_gaps(sizes)
    return int(values[-1]) if len(values) else None


def _peak(sizes: Floats | None) -> int | None:
    values = _without_gaps(sizes)
    return int(values.max()) if len(values) else None


def _without_gaps(sizes: Floats | None) -> Floats:
    return np.zeros(0) if sizes is None else sizes[~np.isnan(sizes)]


# --- rows -----------------------------------------------------------------------------------------------------------


def _group(key: Key, run: _Run) -> dict[str, Any]:
    return {
        "group": key[0],
        "topic": key[1],
        PASSES: run.passes,
        "partitions": run.partitions,
        "lag": run.last("lag"),
        "peak_lag": run.peak("lag"),
        "mean_lag": run.mean("lag"),
        "lost": run.last("lost"),
        "consumed": run.step("consumed"),
        "produced": run.step("produced"),
    }


def _topics(runs: Iterable[tuple[Key, _Run]], sizes: dict[Key, Floats]) -> list[dict[str, Any]]:
    return [
        {
            "topic": key[0],
            PASSES: run.passes,
            "partitions": run.partitions,
            "messages": run.last("messages"),
            "produced": run.step("produced"),
            "replicas_bytes": _last(sizes.get(key)),
            "peak_replicas_bytes": _peak(sizes.get(key)),
        }
        for key, run in runs
    ]


def _log_dirs(runs: Iterable[tuple[Key, _Run]], sizes: dict[Key, Floats]) -> list[dict[str, Any]]:
    return [
        {
            "broker": key[0],
            "log_dir": key[1],
            PASSES: run.passes,
            "replicas_bytes": _last(sizes.get(key)),
            "peak_replicas_bytes": _peak(sizes.get(key)),
            "total_bytes": run.last("total_bytes"),
            "usable_bytes": run.last("usable_bytes"),
            "least_usable_bytes": run.least("usable_bytes"),
        }
        for key, run in runs
    ]
