"""Rows of the lag report as Arrow batches: the result of reading a range of groups.

A reader reads the store's snapshots of its groups, appends the live passes, applies the rules (evaluate.windows), takes
the last reading of each partition with its span (evaluate.spans), and adds the state of the cluster (snapshots.moment).
A range contains whole groups, so a task sums its own rows, without shuffles or joins. A read failure is a row with only
`error` set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, get_type_hints

import pyarrow as pa

from kctl.errors import KctlError
from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange
from kctl.history.evaluate.windows import NotSorted
from kctl.history.lag.request import GROUP, PARTITION, TOPIC, LagQuery
from kctl.history.lag.rows import partition_rows
from kctl.history.lag.status_rows import GroupStatus, LagStatus, PartitionStatus, TopicStatus
from kctl.history.lag.totals import by_group, by_topic
from kctl.history.snapshots.columns import column
from kctl.history.snapshots.store import Damaged
from kctl.lag.retention import at

ROWS: dict[str, type[Any]] = {PARTITION: PartitionStatus, TOPIC: TopicStatus, GROUP: GroupStatus}
_BATCH_ROWS = 20_000
_ARROW: dict[type, pa.DataType] = {
    str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), datetime: pa.int64(),
}  # fmt: skip


def read(query: LagQuery, groups: GroupRange = EVERY_GROUP) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range of groups, then read failures, as batches of `arrow_schema`. Needs no Spark."""
    errors: list[str] = []
    for rows in read_rows(query, groups, errors):
        yield _batch(rows, query.by)
    if errors:
        yield _error_batch(list(dict.fromkeys(errors)), query.by)


def read_rows(query: LagQuery, groups: GroupRange, errors: list[str]) -> Iterator[list[LagStatus]]:
    """Yield the rows of a range of groups in chunks. errors: receives read failures."""
    damaged: list[Damaged] = []
    try:
        yield from _chunks(partition_rows(query, groups, damaged, errors=errors), query.by)
    except KctlError as exc:
        errors.append(exc.message)
    except NotSorted as exc:
        errors.append(f"{query.store}: {exc}")
    errors += map(str, damaged)


def _chunks(groups: Iterable[list[PartitionStatus]], by: str) -> Iterator[list[LagStatus]]:
    """Yield the rows of each group, aggregated, a chunk of groups at a time."""
    chunk: list[LagStatus] = []
    for rows in groups:
        chunk += by_group(rows) if by == GROUP else by_topic(rows) if by == TOPIC else rows
        if len(chunk) >= _BATCH_ROWS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


# --- columns --------------------------------------------------------------------------------------------------------


def kinds(by: str) -> dict[str, type]:
    """Return the type of each column of a report: str, int, float, bool or datetime. All are nullable."""
    hints = get_type_hints(ROWS[by])
    types = {}
    for field in fields(ROWS[by]):
        (kind,) = {each for each in getattr(hints[field.name], "__args__", (hints[field.name],)) if each in _ARROW}
        types[field.name] = kind
    return types


def arrow_schema(by: str) -> pa.Schema:
    """Return the Arrow schema of the rows: times in milliseconds, plus `error`."""
    columns = [pa.field(name, _ARROW[kind]) for name, kind in kinds(by).items()]
    return pa.schema([*columns, pa.field("error", pa.string())])


def _batch(rows: Sequence[LagStatus], by: str) -> pa.RecordBatch:
    arrays = []
    for name, kind in kinds(by).items():
        values = [getattr(row, name) for row in rows]
        if kind is datetime:
            values = [None if value is None else round(value.timestamp() * 1000) for value in values]
        arrays.append(column(values, _ARROW[kind]))
    arrays.append(pa.nulls(len(rows), pa.string()))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(by))


def _error_batch(errors: Sequence[str], by: str) -> pa.RecordBatch:
    schema = arrow_schema(by)
    arrays = [
        column(errors, pa.string()) if field.name == "error" else pa.nulls(len(errors), field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# --- back to rows ---------------------------------------------------------------------------------------------------


def rows_of(values: Iterable[Sequence[Any]], by: str) -> tuple[list[LagStatus], list[str]]:
    """Return the rows, sorted by group, topic and partition, and each error once.

    values: rows of `arrow_schema`, in any order.
    """
    types = list(kinds(by).values())
    row_type = ROWS[by]
    rows: list[Any] = []
    errors: dict[str, None] = {}
    for *columns, error in values:
        if error is not None:
            errors[error] = None
            continue
        rows.append(row_type(*(at(v) if kind is datetime else v for v, kind in zip(columns, types, strict=True))))
    return sorted_rows(rows), list(errors)


def sorted_rows(rows: Iterable[LagStatus]) -> list[LagStatus]:
    """Return the rows sorted by group, topic and partition."""
    return sorted(rows, key=lambda row: tuple(getattr(row, key, 0) for key in ("group", "topic", "partition")))
