"""The groups of a report as a Spark data source: a task reads a range of groups (kctl.history.report.group_series).

The results of a task are small and of several kinds: rows of `kind` and a JSON `value`, with times in milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from kctl.errors import KctlError
from kctl.history.evaluate.group_ranges import GroupRange
from kctl.history.evaluate.windows import NotSorted
from kctl.history.lag.request import GROUP, PARTITION, LagQuery
from kctl.history.lag.row_batches import kinds
from kctl.history.lag.status_rows import GroupStatus, PartitionStatus
from kctl.history.report.group_series import GroupsPart, ListedGroup, RowLimits, read_part, times_of
from kctl.history.report.model import GroupSeries, State, StatusSpan
from kctl.history.snapshots.columns import column
from kctl.history.snapshots.store import Damaged
from kctl.lag.retention import at
from kctl.spark import task_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kctl.history.lag.plan import LagPlan
    from kctl.history.report.build import ReadGroups
    from kctl.history.report.lag_series import Times

FORMAT = "kctl_report"
SCHEMA = StructType([StructField("kind", StringType()), StructField("value", StringType())])
_LISTED, _WORST, _SERIES, _ERROR = "listed", "worst", "series", "error"


def read(query: LagQuery, groups: GroupRange, passes: Sequence[int], limits: RowLimits) -> Iterator[tuple[str, str]]:
    """Yield the rows of a range of groups, then the errors. Needs no Spark."""
    damaged: list[Damaged] = []
    errors: list[str] = []
    part = GroupsPart()
    try:
        part = read_part(query, groups, times_of(passes), limits, damaged)
    except KctlError as exc:
        errors.append(exc.message)
    except NotSorted as exc:
        errors.append(f"{query.store}: {exc}")
    yield from packed(part)
    for text in (*errors, *map(str, dict.fromkeys(damaged))):
        yield _ERROR, text


def packed(part: GroupsPart) -> Iterator[tuple[str, str]]:
    """Yield a part as rows."""
    for status, deleted in part.listed:
        yield _LISTED, json.dumps([_values(status), deleted])
    for row in part.worst:
        yield _WORST, json.dumps(_values(row))
    for series in part.series.values():
        spans = [(span.first, span.count, span.status) for span in series.timeline]
        yield _SERIES, json.dumps([series.group, series.lag, series.time_lag_ms, spans])


def unpacked(rows: Iterable[tuple[str, str]], lacking: list[str]) -> GroupsPart:
    """Return the rows of parts as one part. lacking: receives the errors."""
    part = GroupsPart()
    for kind, text in rows:
        if kind == _ERROR:
            lacking.append(text)
        elif kind == _LISTED:
            values, deleted = json.loads(text)
            part.listed.append(ListedGroup(_row(GroupStatus, GROUP, values), deleted))
        elif kind == _WORST:
            part.worst.append(_row(PartitionStatus, PARTITION, json.loads(text)))
        else:
            group, lag, age, spans = json.loads(text)
            timeline = [StatusSpan(first, count, state and State(state)) for first, count, state in spans]
            part.series[group] = GroupSeries(group, lag, age, timeline)
    return part


def _values(row: GroupStatus | PartitionStatus) -> list[Any]:
    values = (getattr(row, field.name) for field in fields(row))
    return [round(value.timestamp() * 1000) if isinstance(value, datetime) else value for value in values]


def _row(kind: type[Any], by: str, values: Sequence[Any]) -> Any:
    types = kinds(by).values()
    return kind(*(at(value) if of is datetime else value for of, value in zip(types, values, strict=True)))


# --- Spark ----------------------------------------------------------------------------------------------------------


def read_share(
    query: LagQuery, passes: Sequence[int], limits: RowLimits, groups: GroupRange
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `read` as a batch of SCHEMA. Runs in a task."""
    rows = list(read(query, groups, passes, limits))
    if rows:
        arrays = [column([row[place] for row in rows], pa.string()) for place in (0, 1)]
        yield pa.RecordBatch.from_arrays(arrays, names=["kind", "value"])


def read_by_spark(spark: SparkSession) -> ReadGroups:
    """Return a function that reads the groups of a plan in Spark's tasks."""

    def read_groups(plan: LagPlan, times: Times, limits: RowLimits, lacking: list[str]) -> Iterator[GroupsPart]:
        passes = tuple(times.passes.tolist())
        reads = partial(read_share, plan.query, passes, limits)
        rows = task_source.load(spark, FORMAT, SCHEMA, reads, plan.ranges).collect()
        yield unpacked(((row[0], row[1]) for row in rows), lacking)

    return read_groups
