"""A report over a store of snapshots: everything is read once, as it streams by.

The rows of groups are those of `kctl spark lag` over the same span (kctl.spark.lag_rows): their series are taken from
the readings on the way. Sizes likewise, on the way to kctl.spark.outlook_job. Groups are read here, or by Spark's
tasks (kctl.spark.report_source); disks, which are fewer, always here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from typing import TypeAlias

from kctl.report.findings import findings
from kctl.report.model import Report, Span
from kctl.report.overview import overview
from kctl.snapshots import schema
from kctl.snapshots.passes import PassInfo, passes
from kctl.snapshots.read import read_table
from kctl.snapshots.store import Damaged, Store
from kctl.spark.lag_planning import LagPlan
from kctl.spark.report_disks import disk_reports
from kctl.spark.report_groups import GroupsPart, Most, group_reports, merged, read_part, times_of
from kctl.spark.report_series import Times
from kctl.spark.snapshot_ranges import EVERY_GROUP
from kctl.spark.stores import store_here

MOST_LACKING, MOST_FAILURES = 20, 5
DEFAULT_MOST = Most()
# What reads the groups of a plan; the list gets what could not be read, in words.
ReadGroups: TypeAlias = Callable[[LagPlan, Times, Most, list[str]], Iterable[GroupsPart]]


def read_here(plan: LagPlan, times: Times, most: Most, lacking: list[str]) -> Iterable[GroupsPart]:
    """All groups, in this process."""
    damaged: list[Damaged] = []
    yield read_part(plan.question, EVERY_GROUP, times, most, damaged)
    lacking += map(str, damaged)


def report_of(
    plan: LagPlan, *, made_at: datetime, most: Most = DEFAULT_MOST, read_groups: ReadGroups = read_here
) -> Report:
    """The report of a plan over a store (kctl.spark.lag_planning.plan_span). Raises KctlError, NotSorted, BadRows."""
    question = plan.question
    assert question.store is not None
    assert question.store is not None
    store = store_here(question.store)
    damaged: list[Damaged] = []
    lacking = list(plan.failures)
    seen = passes(store, question.from_ms, question.to_ms, damaged=damaged.append)
    times = times_of(each.at_ms for each in seen)
    groups = merged(read_groups(plan, times, most, lacking), most)
    disks = disk_reports(store, question, times)
    missed = _missed(store, question.from_ms, question.to_ms, damaged)
    span = _span(seen, times, missed)
    listed = group_reports(groups, most)
    topics = [row for row in disks.topics if row.now.topic in question.topics]
    return Report(
        cluster_id=store.cluster_id,
        made_at=made_at,
        span=span,
        overview=overview(groups.listed, disks.log_dirs, disks.topics),
        findings=findings(span, listed, groups.worst, disks.log_dirs, topics),
        groups=listed,
        partitions=groups.worst,
        brokers=disks.brokers,
        log_dirs=disks.log_dirs,
        topics=topics[: most.topics],
        losses=disks.losses[: most.losses],
        lacking=_some([*lacking, *disks.errors, *map(str, damaged)]),
    )


def _some(lacking: Iterable[str]) -> list[str]:
    """Each thing once, and not too many of them."""
    told = list(dict.fromkeys(lacking))
    more = len(told) - MOST_LACKING
    return told if more <= 0 else [*told[:MOST_LACKING], f"and {more} more"]


def _span(seen: list[PassInfo], times: Times, missed: int) -> Span:
    return Span(
        from_at=_at(seen[0].at_ms),
        to_at=_at(seen[-1].at_ms),
        bucket_ms=times.buckets.bucket_ms,
        buckets=times.buckets.size,
        passes=len(seen),
        incomplete=sum(not each.complete for each in seen),
        failures=list(dict.fromkeys(text for each in seen for text in each.failures))[:MOST_FAILURES],
        missed=missed,
    )


def _missed(store: Store, from_ms: int, to_ms: int, damaged: list[Damaged]) -> int:
    batches = read_table(store, schema.PASSES, from_ms, to_ms, damaged=damaged.append, columns=["missed"])
    return sum(sum(batch.column("missed").to_pylist()) for batch in batches)


def _at(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc)
