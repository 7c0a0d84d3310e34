"""Read the groups of a report, one range of groups at a time: their rows, series and worst partitions.

A range is read in this process or in a task of kctl.spark.report_source. The result holds only what a report shows, so
results are small and cheap to merge.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, NamedTuple

import numpy as np

from kctl.history.evaluate.group_ranges import GroupRange
from kctl.history.evaluate.store_access import store_here
from kctl.history.lag.request import LagQuery
from kctl.history.lag.rows import narrowed, partition_rows
from kctl.history.lag.status_rows import GroupStatus, PartitionStatus
from kctl.history.lag.totals import by_group, severity
from kctl.history.report.buckets import buckets_of
from kctl.history.report.group_states import StateStream
from kctl.history.report.lag_series import SeriesWatch, Times
from kctl.history.report.model import GroupReport, GroupSeries
from kctl.history.report.owned_rows import OwnedRows
from kctl.history.report.verdict import with_verdict
from kctl.history.snapshots import schema
from kctl.history.snapshots.read import read_sorted
from kctl.history.snapshots.store import Damaged


class RowLimits(NamedTuple):
    """Maximum number of groups, partitions, topics and losses that a report lists.

    The worst groups and partitions, and the largest topics and losses, are listed. The overview counts all of them.
    """

    groups: int = 1_000
    partitions: int = 2_000
    topics: int = 1_000
    losses: int = 500


class ListedGroup(NamedTuple):
    """A group. deleted: later passes have no commits of the group."""

    status: GroupStatus
    deleted: bool


@dataclass
class GroupsPart:
    """The results of a range of groups. listed: all groups. worst: worst partitions. series: of the worst groups."""

    listed: list[ListedGroup] = field(default_factory=list)
    worst: list[PartitionStatus] = field(default_factory=list)
    series: dict[str, GroupSeries] = field(default_factory=dict)


def times_of(passes: Iterable[int]) -> Times:
    """Return the passes of a report (ms, sorted, at least one) with their buckets."""
    at = list(passes)
    return Times(np.array(at, dtype=np.int64), buckets_of(at))


def read_part(
    query: LagQuery, groups: GroupRange, times: Times, limits: RowLimits, damaged: list[Damaged]
) -> GroupsPart:
    """Read a range of groups from a store. Raises KctlError, kctl.history.evaluate.windows.NotSorted."""
    assert query.store is not None
    store = store_here(query.store)
    inside = narrowed(groups, query.groups)

    def stream(table: str) -> Iterator[Any]:
        return read_sorted(
            store,
            table,
            query.from_ms,
            query.to_ms,
            damaged=damaged.append,
            lower=inside.lower,
            upper=inside.upper,
        )

    states = StateStream(stream(schema.GROUPS), times.passes)
    watch = SeriesWatch(OwnedRows(stream(schema.OWNERS)), states, times, judged=query.judged)
    part = GroupsPart()
    for result in partition_rows(query, groups, damaged, watch=watch.watch):
        rows = [with_verdict(row) for row in result]
        (status,) = by_group(rows)
        part.listed.append(ListedGroup(status, _is_deleted(status, query.since_ms)))
        part.worst += rows
        if len(part.worst) > 4 * limits.partitions:
            part.worst = _worst(part.worst, limits)
    part.worst = _worst(part.worst, limits)
    part.series = {each.status.group: watch.series(each.status.group) for each in _worst_groups(part.listed, limits)}
    return part


def merged(parts: Iterable[GroupsPart], limits: RowLimits) -> GroupsPart:
    """Merge the results of ranges that have no group in common."""
    whole = GroupsPart()
    for part in parts:
        whole.listed += part.listed
        whole.worst = _worst([*whole.worst, *part.worst], limits)
        whole.series |= part.series
        retained = {each.status.group for each in _worst_groups(whole.listed, limits)}
        whole.series = {name: series for name, series in whole.series.items() if name in retained}
    return whole


def group_reports(part: GroupsPart, limits: RowLimits) -> list[GroupReport]:
    """Return the worst groups, worst first, deleted ones last."""
    result = []
    for status, deleted in _worst_groups(part.listed, limits):
        series = part.series[status.group]
        result.append(GroupReport(status, deleted, series.lag, series.time_lag_ms, series.timeline))
    return result


def _worst(rows: Iterable[PartitionStatus], limits: RowLimits) -> list[PartitionStatus]:
    return heapq.nsmallest(
        limits.partitions, rows, key=lambda row: (*severity(row), row.group, row.topic, row.partition)
    )


def _worst_groups(listed: Iterable[ListedGroup], limits: RowLimits) -> list[ListedGroup]:
    return heapq.nsmallest(
        limits.groups, listed, key=lambda each: (each.deleted, *severity(each.status), each.status.group)
    )


def _is_deleted(status: GroupStatus, since_ms: int | None) -> bool:
    if since_ms is None or status.at is None:
        return False
    return status.at < datetime.fromtimestamp(since_ms / 1000, timezone.utc)
