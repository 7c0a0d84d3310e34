"""Stores of snapshots for benchmarks, as large as asked, always the same: written by the store's own writer.

A pass each minute of a cluster in which each of `groups` groups reads all partitions of a topic that two groups share.
Offsets are closed forms of the partition and the minute, so that any hour can be made by itself, in a process of its
own. Of ten groups one is stopped, one falls behind, one is rewound, two have no traffic, and five keep up.

Members and logs are told in the last hour alone: reports look at those of their last pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kctl.history.evaluate.column_arrays import numeric
from kctl.history.rollups.rollup import COLUMNS, GROUPS
from kctl.history.snapshots import rollup_files, schema
from kctl.history.snapshots.layout import HOUR_MS, DataFile, Hour
from kctl.history.snapshots.store import Store, create_store, open_store

MINUTE_MS, PASSES_PER_HOUR = 60_000, 60
START_MS = 1_790_000_000_000 // rollup_files.DAY_MS * rollup_files.DAY_MS
Ints = npt.NDArray[np.int64]
_TASKS_ROWS = 120_000  # made at once


@dataclass(frozen=True)
class Shape:
    """How many groups, partitions of each, and hours from START_MS on. loose_minutes: passes after the last whole hour
    that are not compacted yet."""

    groups: int = 1_000
    partitions: int = 100
    hours: int = 1
    loose_minutes: int = 0

    @property
    def rows(self) -> int:
        """Rows of `commits`."""
        return self.groups * self.partitions * (self.hours * PASSES_PER_HOUR + self.loose_minutes)

    @property
    def end_ms(self) -> int:
        """The first moment after the last pass that has none."""
        return START_MS + self.hours * HOUR_MS + self.loose_minutes * MINUTE_MS


class _Piece(NamedTuple):
    """Groups × partitions × minutes, in the order of the store's key. Arrays of one length."""

    group: Ints
    partition: Ints
    minute: Ints


def make_store(root: Path, shape: Shape) -> Store:
    """The store. Hours are made by as many processes as there are cores."""
    store = create_store(root, "bench")
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        for _ in pool.map(_make_hour, [root] * shape.hours, [shape] * shape.hours, range(shape.hours)):
            pass
    for minute in range(shape.loose_minutes):
        _make_loose(store, shape, shape.hours * PASSES_PER_HOUR + minute)
    return store


def _make_hour(root: Path, shape: Shape, number: int) -> None:
    """One hour, as a compaction leaves it."""
    first = number * PASSES_PER_HOUR
    minutes = range(first, first + PASSES_PER_HOUR)
    file = DataFile(_at(minutes[-1]), compacted=True)
    is_last = number == shape.hours - 1
    _write(open_store(root), shape, minutes, file, with_members=is_last, steps=60)


def _make_loose(store: Store, shape: Shape, minute: int) -> None:
    _write(store, shape, range(minute, minute + 1), DataFile(_at(minute), compacted=False), with_members=True, steps=1)


def _write(store: Store, shape: Shape, minutes: range, file: DataFile, *, with_members: bool, steps: int) -> None:
    hour = Hour(file.at_ms - file.at_ms % HOUR_MS)
    tables: dict[str, Iterable[pa.RecordBatch]] = {
        schema.COMMITS: (_commits(piece) for piece in _pieces(shape, minutes)),
        schema.GROUPS: [_groups(shape, minutes)],
        schema.CONFIGS: [_configs(shape, minutes)],
    }
    if with_members:
        tables[schema.OWNERS] = (_owners(piece) for piece in _pieces(shape, minutes))
        tables[schema.LOGS] = (_logs(piece) for piece in _pieces(shape, minutes, every=2))
    for table, batches in tables.items():
        for _ in store.writing(table, hour, file, batches):
            pass
    store.put(schema.PASSES, hour, file, _passes(minutes, list(tables)))


def _at(minute: int) -> int:
    return START_MS + minute * MINUTE_MS


def _pieces(shape: Shape, minutes: range, *, every: int = 1) -> Iterator[_Piece]:
    """Every group (or every second one, …), some at a time."""
    of_group = shape.partitions * len(minutes)
    at_once = max(_TASKS_ROWS // of_group, 1)
    groups = np.arange(0, shape.groups, every)
    for begin in range(0, len(groups), at_once):
        chosen = groups[begin : begin + at_once]
        yield _Piece(
            np.repeat(chosen, of_group),
            np.tile(np.repeat(np.arange(shape.partitions), len(minutes)), len(chosen)),
            np.tile(np.arange(minutes.start, minutes.stop), len(chosen) * shape.partitions),
        )


# --- what is true at a minute ---------------------------------------------------------------------------------------


def _mixed(*numbers: Ints) -> Ints:
    """Something like chance, the same for the same numbers (splitmix64's last steps)."""
    found = np.zeros(len(numbers[0]), dtype=np.uint64)
    for each in numbers:
        found = (found ^ each.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
    mixed: Ints = (found >> np.uint64(2)).astype(np.int64)
    return mixed


def _ends(piece: _Piece, minute: Ints) -> Ints:
    """Log ends: 200 to 800 messages a minute; nothing in the topic of every fifth pair of groups."""
    topic = piece.group // 2
    rate = np.where(topic % 5 == 4, 0, 200 + _mixed(topic, piece.partition) % 600)
    return 1_000_000 + rate * minute + np.where(rate > 0, _mixed(topic, piece.partition, minute) % 150, 0)


def _committed(piece: _Piece) -> Ints:
    """Kinds of groups by their numbers' last digit: 0 stopped, 1 falls behind, 2 was rewound, the others keep up."""
    kind, minute = piece.group % 10, piece.minute
    end = _ends(piece, minute)
    found = np.maximum(end - _mixed(piece.group, piece.partition, minute) % 120, _ends(piece, minute - 1))
    stopped = _mixed(piece.group, piece.partition) % PASSES_PER_HOUR
    found = np.where(kind == 0, _ends(piece, np.minimum(minute, stopped)), found)
    found = np.where(kind == 1, 1_000_000 + (end - 1_000_000) * 9 // 10, found)
    back = (kind == 2) & (minute % PASSES_PER_HOUR // 15 == 2) & (piece.partition % 7 == 0)
    return np.where(back, found - 100_000, found)


# --- tables ---------------------------------------------------------------------------------------------------------


def _text(form: str, numbers: Ints) -> pa.Array:
    """Each number as text, in a dictionary."""
    values, places = np.unique(numbers, return_inverse=True)
    texts = pa.array([form.format(n) for n in values.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(numeric(places.astype(np.int32), pa.int32()), texts)


def _batch(table: str, columns: dict[str, Any], size: int) -> pa.RecordBatch:
    """Columns by name; a single value stands for all rows, and a column that is left out is null."""
    arrays, fields = [], []
    for field in schema.arrow_schema(table):
        value = columns.get(field.name)
        if isinstance(value, np.ndarray):
            value = numeric(value.astype(np.int32 if field.type == pa.int32() else np.int64), field.type)
        elif not isinstance(value, pa.Array):
            value = pa.array([value] * size, field.type)
        arrays.append(value)
        fields.append(pa.field(field.name, value.type, nullable=field.nullable))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _commits(piece: _Piece) -> pa.RecordBatch:
    columns = {
        "at_ms": START_MS + piece.minute * MINUTE_MS,
        "group": _text("group-{:05}", piece.group),
        "topic": _text("topic-{:05}", piece.group // 2),
        "partition": piece.partition,
        "committed_offset": _committed(piece),
        "log_start_offset": np.full(len(piece.group), 500_000),
        "log_end_offset": _ends(piece, piece.minute),
        "leader_epoch": 3,
        "topic_id": _text("AAAAAAAAAAAAAAAA{:05}A", piece.group // 2),
        "deleted": False,
    }
    return _batch(schema.COMMITS, columns, len(piece.group))


def _owners(piece: _Piece) -> pa.RecordBatch:
    member = piece.group * 10 + piece.partition % 10
    columns = {
        "at_ms": START_MS + piece.minute * MINUTE_MS,
        "group": _text("group-{:05}", piece.group),
        "topic": _text("topic-{:05}", piece.group // 2),
        "partition": piece.partition,
        "member_id": _text("consumer-{0:06}-5b2e4a30-91f7-4f3c-8a44-{0:012}", member),
        "client_id": _text("consumer-{:06}", member),
        "host": _text("/10.0.0.{}", member % 200),
    }
    return _batch(schema.OWNERS, columns, len(piece.group))


def _logs(piece: _Piece) -> pa.RecordBatch:
    end = _ends(piece, piece.minute)
    columns = {
        "at_ms": START_MS + piece.minute * MINUTE_MS,
        "topic": _text("topic-{:05}", piece.group // 2),
        "partition": piece.partition,
        "topic_id": _text("AAAAAAAAAAAAAAAA{:05}A", piece.group // 2),
        "leader": piece.partition % 3,
        "leader_epoch": 3,
        "log_start_offset": np.full(len(piece.group), 500_000),
        "log_end_offset": end,
        "last_stable_offset": end,
        "oldest_timestamp_ms": START_MS - 24 * HOUR_MS,
    }
    return _batch(schema.LOGS, columns, len(piece.group))


def _groups(shape: Shape, minutes: range) -> pa.RecordBatch:
    group = np.repeat(np.arange(shape.groups), len(minutes))
    minute = np.tile(np.arange(minutes.start, minutes.stop), shape.groups)
    columns = {
        "at_ms": START_MS + minute * MINUTE_MS, "group": _text("group-{:05}", group), "state": "Stable",
        "type": "classic", "protocol_type": "consumer", "members": 10, "coordinator": group % 3,
    }  # fmt: skip
    return _batch(schema.GROUPS, columns, len(group))


def _configs(shape: Shape, minutes: range) -> pa.RecordBatch:
    topic = np.arange((shape.groups + 1) // 2)
    columns = {
        "at_ms": _at(minutes[0]), "topic": _text("topic-{:05}", topic), "cleanup_policy": "delete",
        "retention_ms": 7 * 24 * HOUR_MS, "retention_bytes": -1, "segment_bytes": 1 << 30,
        "segment_ms": 7 * 24 * HOUR_MS,
    }  # fmt: skip
    return _batch(schema.CONFIGS, columns, len(topic))


def _passes(minutes: range, tables: Sequence[str]) -> pa.RecordBatch:
    rows: list[tuple[Any, ...]] = [(_at(m), _at(m) + 900, True, [], [*tables], MINUTE_MS, 0) for m in minutes]
    arrays = [
        pa.array(values, f.type)
        for values, f in zip(zip(*rows, strict=True), schema.arrow_schema(schema.PASSES), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.arrow_schema(schema.PASSES))


# --- roll-ups -------------------------------------------------------------------------------------------------------


def add_rollups(store: Store, shape: Shape, days: int) -> None:
    """Roll-ups of groups for so many days before START_MS, hour by hour and day by day."""
    for day in range(days):
        day_ms = START_MS - (days - day) * rollup_files.DAY_MS
        _put_rollup(store, rollup_files.day_path(store, GROUPS, day_ms), shape, day_ms, 24 * PASSES_PER_HOUR)
        for number in range(24):
            hour = Hour(day_ms + number * HOUR_MS)
            _put_rollup(store, rollup_files.hour_path(store, GROUPS, hour), shape, hour.start_ms, PASSES_PER_HOUR)


def _put_rollup(store: Store, path: Path, shape: Shape, start_ms: int, passes: int) -> None:
    rows: list[dict[str, Any]] = []
    for group in range(shape.groups):
        lag = (start_ms // HOUR_MS * 7919 + group * 104_729) % 100_000
        known = {
            "group": f"group-{group:05}", "topic": f"topic-{group // 2:05}", "start_ms": start_ms, "passes": passes,
            "complete": True, "partitions": shape.partitions, "lag": lag, "peak_lag": lag + 500,
            "mean_lag": lag + 0.5, "lost": 0, "consumed": 500 * passes, "produced": 500 * passes,
        }  # fmt: skip
        rows.append({name: known.get(name) for name in COLUMNS[GROUPS]})
    rollup_files.write(store, path, GROUPS, rows)
