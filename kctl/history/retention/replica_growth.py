"""The growth of replicas, from a snapshot store: a row for each replica, as Arrow batches.

A reader has a range of topics. It reads the files of the requested hours, only the row groups that can contain its
topics, in the order of the store's key, and yields the growth of each replica (evaluate.growth). Memory use does not
grow with the time span. A damaged file is a row with only `error` set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kctl.errors import KctlError
from kctl.history.evaluate.column_arrays import Watch
from kctl.history.evaluate.error_rows import error_rows, read_rows
from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange, split
from kctl.history.evaluate.growth import GROWTH_TYPES, Sizes, growths
from kctl.history.evaluate.store_access import store_here
from kctl.history.retention.growth import GrownReplica, GrownVolume, Growth
from kctl.history.snapshots import read_progress, schema
from kctl.history.snapshots.read import chosen_files, read_file, read_sorted
from kctl.history.snapshots.rows import BadRows, Part
from kctl.history.snapshots.store import Damaged, Store

REPLICAS = Sizes(("topic", "partition", "broker", "log_dir", "future"), "size_bytes", ("offset_lag",))
VOLUMES = Sizes(("broker", "log_dir"), "usable_bytes", ("total_bytes",))
_MAX_FILES = 5  # damaged or empty files to skip when looking for one that shows how to split the topics


@dataclass(frozen=True, slots=True)
class SizesQuery:
    """Passes with from_ms ≤ at_ms < to_ms of a store in a folder that every executor can read."""

    store: str
    from_ms: int
    to_ms: int


def _arrow() -> pa.Schema:
    kinds = {field.name: field.type for field in schema.arrow_schema(schema.REPLICAS)}
    key_fields = [pa.field(name, kinds[name]) for name in REPLICAS.names]
    return pa.schema([*key_fields, *(pa.field(*each) for each in GROWTH_TYPES.items()), pa.field("error", pa.string())])


ARROW = _arrow()
_KEY_COLUMNS = len(REPLICAS.names)


def read(
    query: SizesQuery, topics: GroupRange = EVERY_GROUP, *, watch: Watch | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the replicas of a range of topics as batches of ARROW's schema, then the read failures. Needs no Spark.

    watch: gets all sizes and passes them on.
    """
    damaged: list[Damaged] = []
    errors: list[str] = []
    try:
        rows = read_sorted(
            store_here(query.store),
            schema.REPLICAS,
            query.from_ms,
            query.to_ms,
            damaged=damaged.append,
            lower=topics.lower,
            upper=topics.upper,
        )
        for batch in growths(rows if watch is None else watch(rows), REPLICAS):
            yield read_rows(batch, ARROW)
    except KctlError as exc:
        errors.append(exc.message)
    except BadRows as exc:
        errors.append(f"{query.store}: {exc}")
    errors += [str(each) for each in dict.fromkeys(damaged)]
    if errors:
        yield error_rows(errors, ARROW)


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Sequence[Any]]:
    """Yield the rows of `read` as plain values, in the order of ARROW's columns."""
    for batch in batches:
        rows = list(zip(*(batch.column(name).to_pylist() for name in ARROW.names), strict=True))
        read_progress.advance(len({row[:2] for row in rows}))  # topic, partition
        yield from rows


def replicas_of(rows: Iterable[Sequence[Any]]) -> tuple[list[GrownReplica], list[str]]:
    """Return the replicas in rows with ARROW's columns, and the errors in them."""
    result: list[GrownReplica] = []
    errors: list[str] = []
    for row in rows:
        if row[-1] is not None:
            errors.append(row[-1])
        else:
            topic, partition, broker, log_dir, future, offset_lag = row[:_KEY_COLUMNS]
            growth = Growth(*row[_KEY_COLUMNS:-1])
            result.append(GrownReplica(topic, partition, broker, log_dir, future, offset_lag, growth))
    return result, errors


def volumes(store: Store, query: SizesQuery, *, damaged: Callable[[Damaged], None]) -> list[GrownVolume]:
    """Return each log dir whose size is known. The rows are few, so this process reads them."""
    rows = read_sorted(store, schema.LOG_DIRS, query.from_ms, query.to_ms, damaged=damaged)
    return [
        GrownVolume(*row)
        for batch in growths(rows, VOLUMES)
        for row in zip(
            *(batch.column(name).to_pylist() for name in VOLUMES.names),
            (Growth(*each) for each in zip(*(batch.column(n).to_pylist() for n in GROWTH_TYPES), strict=True)),
            strict=True,
        )
    ]


def topic_ranges(
    store: Store, from_ms: int, to_ms: int, tasks: int, *, damaged: Callable[[Damaged], None]
) -> list[GroupRange]:
    """Return at most `tasks` ranges with about the same number of replicas, which together contain all topics."""
    if tasks <= 1:
        return [EVERY_GROUP]
    for hour, file in reversed(list(chosen_files(store, from_ms, to_ms))[-_MAX_FILES:]):
        weights: Counter[str] = Counter()
        for batch in read_file(store, schema.REPLICAS, hour, file, Part(), damaged=damaged, columns=["topic"]):
            weights.update(batch.column("topic").to_pylist())
        if weights:
            return split(weights.items(), tasks)
    return [EVERY_GROUP]
