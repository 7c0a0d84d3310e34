"""A report over a store of snapshots: everything is read once, as it streams by.

The rows of groups are those of `kctl spark lag` over the same span (kctl.spark.lag_rows): their series are taken from
the readings on the way. Sizes likewise, on the way to kctl.spark.growth_columns. It runs where it is called: a store
that one process reads in minutes needs no Spark.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, NamedTuple

import numpy as np

from kctl.lag.report import GroupStatus, PartitionStatus, by_group, severity
from kctl.report.buckets import buckets_of
from kctl.report.model import GroupReport, Report, Span
from kctl.report.overview import overview
from kctl.snapshots import schema
from kctl.snapshots.passes import PassInfo, passes
from kctl.snapshots.read import read_sorted, read_table
from kctl.snapshots.store import Damaged, Store, open_store
from kctl.spark.lag_planning import LagPlan
from kctl.spark.lag_rows import partition_rows
from kctl.spark.report_disks import disk_reports
from kctl.spark.report_keys import OwnedRows
from kctl.spark.report_series import SeriesWatch, Times
from kctl.spark.report_states import StateStream
from kctl.spark.size_source import SizesAsked
from kctl.spark.snapshot_ranges import EVERY_GROUP

MOST_LACKING = 20


class Most(NamedTuple):
    """How many groups, partitions and topics a report names: the worst, or the largest. The overview counts all."""

    groups: int = 1_000
    partitions: int = 2_000
    topics: int = 1_000


DEFAULT_MOST = Most()


def report_of(plan: LagPlan, *, made_at: datetime, most: Most = DEFAULT_MOST) -> Report:
    """The report of a plan over a store (kctl.spark.lag_planning.plan_span). Raises KctlError, NotSorted, BadRows."""
    question = plan.question
    assert question.store_path is not None
    store = open_store(question.store_path)
    damaged: list[Damaged] = []
    seen = passes(store, question.from_ms, question.to_ms, damaged=damaged.append)
    times = _times(seen)
    groups, partitions, all_groups = _groups(plan, store, times, most, damaged)
    since_ms = int(times.passes[-1]) if question.since_ms is None else question.since_ms
    asked = SizesAsked(question.store or "", question.from_ms, question.to_ms)
    disks = disk_reports(store, asked, times, since_ms, damaged)
    return Report(
        cluster_id=store.cluster_id,
        made_at=made_at,
        span=_span(seen, times, _missed(store, question.from_ms, question.to_ms, damaged)),
        overview=overview(all_groups, disks.log_dirs, disks.topics),
        groups=groups,
        partitions=partitions,
        brokers=disks.brokers,
        log_dirs=disks.log_dirs,
        topics=[row for row in disks.topics if row.now.topic in question.topics][: most.topics],
        lacking=_lacking(plan, damaged),
    )


def _lacking(plan: LagPlan, damaged: list[Damaged]) -> list[str]:
    """Each thing once, and not too many of them."""
    told = list(dict.fromkeys([*plan.failures, *map(str, damaged)]))
    more = len(told) - MOST_LACKING
    return told if more <= 0 else [*told[:MOST_LACKING], f"and {more} more"]


# --- time -----------------------------------------------------------------------------------------------------------


def _times(seen: list[PassInfo]) -> Times:
    at = [each.at_ms for each in seen]
    return Times(np.array(at, dtype=np.int64), buckets_of(at))


def _span(seen: list[PassInfo], times: Times, missed: int) -> Span:
    return Span(
        from_at=_at(seen[0].at_ms),
        to_at=_at(seen[-1].at_ms),
        bucket_ms=times.buckets.bucket_ms,
        buckets=times.buckets.size,
        passes=len(seen),
        incomplete=sum(not each.complete for each in seen),
        missed=missed,
    )


def _missed(store: Store, from_ms: int, to_ms: int, damaged: list[Damaged]) -> int:
    batches = read_table(store, schema.PASSES, from_ms, to_ms, damaged=damaged.append, columns=["missed"])
    return sum(sum(batch.column("missed").to_pylist()) for batch in batches)


def _at(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc)


# --- groups ---------------------------------------------------------------------------------------------------------


def _groups(
    plan: LagPlan, store: Store, times: Times, most: Most, damaged: list[Damaged]
) -> tuple[list[GroupReport], list[PartitionStatus], list[tuple[GroupStatus, bool]]]:
    """The worst groups and partitions, the worst first; and all groups, and whether each is gone."""
    question = plan.question
    lower, upper = question.groups.bounds

    def sorted_(table: str) -> Iterator[Any]:
        return read_sorted(
            store, table, question.from_ms, question.to_ms, damaged=damaged.append, lower=lower, upper=upper
        )

    watch = SeriesWatch(OwnedRows(sorted_(schema.OWNERS)), StateStream(sorted_(schema.GROUPS), times.passes), times)
    worst: list[PartitionStatus] = []
    found: list[tuple[GroupStatus, bool]] = []
    for rows in partition_rows(question, EVERY_GROUP, damaged, watch=watch.watch):
        (group,) = by_group(rows)
        gone = question.since_ms is not None and group.at is not None and group.at < _at(question.since_ms)
        found.append((group, gone))
        worst += rows
        if len(worst) > 4 * most.partitions:
            worst = heapq.nsmallest(most.partitions, worst, key=severity)
    chosen = heapq.nsmallest(most.groups, found, key=lambda each: (each[1], *severity(each[0])))
    groups = []
    for group, gone in chosen:
        series = watch.series(group.group)
        groups.append(GroupReport(group, gone, series.lag, series.time_lag_ms, series.timeline))
    return groups, heapq.nsmallest(most.partitions, worst, key=severity), found
