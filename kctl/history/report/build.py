"""A report over a snapshot store, in one streaming pass.

The rows of groups are those of `kctl history lag` over the same span (kctl.history.lag.rows), and their series are
computed from the same stream of readings. The same applies to sizes, in retention.store_reads. Groups are read in
processes of kctl or in Spark's tasks (kctl.spark.report_source); disks, which are fewer, always in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import TypeAlias

from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange
from kctl.history.evaluate.processes import each_share
from kctl.history.evaluate.store_access import store_here
from kctl.history.lag.evaluate import begin_progress
from kctl.history.lag.plan import LagPlan
from kctl.history.lag.request import LagQuery
from kctl.history.report.disk_series import disk_reports
from kctl.history.report.findings import findings
from kctl.history.report.group_series import GroupsPart, RowLimits, group_reports, merged, read_part, times_of
from kctl.history.report.lag_series import Times
from kctl.history.report.model import Gap, Report, ReportSpan
from kctl.history.report.overview import overview
from kctl.history.report.silent import gaps_of
from kctl.history.snapshots import schema
from kctl.history.snapshots.layout import hour_of
from kctl.history.snapshots.passes import PassInfo, newest_ms, passes
from kctl.history.snapshots.read import read_table
from kctl.history.snapshots.store import Damaged, Store

MAX_LACKING, MAX_FAILURES = 20, 5
DEFAULT_LIMITS = RowLimits()
# Reads the groups of a plan; the list receives read failures.
ReadGroups: TypeAlias = Callable[[LagPlan, Times, RowLimits, list[str]], Iterable[GroupsPart]]


def read_here(plan: LagPlan, times: Times, limits: RowLimits, lacking: list[str]) -> Iterable[GroupsPart]:
    """Read all groups in this process."""
    damaged: list[Damaged] = []
    yield read_part(plan.query, EVERY_GROUP, times, limits, damaged)
    lacking += map(str, damaged)


def read_in_processes(plan: LagPlan, times: Times, limits: RowLimits, lacking: list[str]) -> Iterable[GroupsPart]:
    """Read each range of groups of the plan in parallel processes."""
    parts = each_share(partial(_read_range, plan.query, times, limits), plan.ranges)
    for part, failures in parts:
        lacking += failures
        yield part


def _read_range(query: LagQuery, times: Times, limits: RowLimits, groups: GroupRange) -> tuple[GroupsPart, list[str]]:
    damaged: list[Damaged] = []
    part = read_part(query, groups, times, limits, damaged)
    return part, [str(each) for each in dict.fromkeys(damaged)]


def report_of(
    plan: LagPlan,
    *,
    made_at: datetime,
    until_ms: int | None = None,
    limits: RowLimits = DEFAULT_LIMITS,
    read_groups: ReadGroups = read_here,
) -> Report:
    """Return the report of a plan over a store (kctl.history.lag.plan.plan_span).

    Raises KctlError, NotSorted, BadRows. until_ms: end of the requested time; None: the newest pass.
    """
    query = plan.query
    assert query.store is not None
    store = store_here(query.store)
    damaged: list[Damaged] = []
    lacking = list(plan.failures)
    span_passes = passes(store, query.from_ms, query.to_ms, damaged=damaged.append)
    times = times_of(each.at_ms for each in span_passes)
    missing = _missing_tables(store)
    begin_progress(plan)
    groups = merged(read_groups(plan, times, limits, lacking), limits)
    disks = disk_reports(store, query, times, span_passes)
    missed = _missed(store, query.from_ms, query.to_ms, damaged)
    from_ms = query.from_ms if _has_earlier(store, query) else None
    last_ms = span_passes[-1].at_ms
    now_ms = min(last_ms if until_ms is None else until_ms - 1, round(made_at.timestamp() * 1000))
    ended = newest_ms(store) == last_ms
    gaps = gaps_of(span_passes, missed, from_ms=from_ms, until_ms=max(now_ms, last_ms), ended=ended)
    span = _span(span_passes, times, sum(missed.values()), gaps)
    messages = [*lacking, *disks.errors, *map(str, damaged)]
    listed = group_reports(groups, limits)
    topics = [row for row in disks.topics if row.now.topic in query.topics]
    return Report(
        cluster_id=store.cluster_id,
        made_at=made_at,
        span=span,
        overview=overview(groups.listed, disks.log_dirs, disks.topics),
        findings=findings(span, listed, groups.worst, disks.log_dirs, topics, disks.silent),
        groups=listed,
        partitions=groups.worst,
        brokers=disks.brokers,
        log_dirs=disks.log_dirs,
        topics=topics[: limits.topics],
        losses=disks.losses[: limits.losses],
        lacking=_limited(_without_tables(str(plan.root or store.root), missing, plan.lacking(messages))),
        silent_brokers=disks.silent,
        missing_tables=missing,
    )


def _has_earlier(store: Store, query: LagQuery) -> bool:
    """Return True if there are passes before the span."""
    return query.began_ms < query.from_ms or newest_ms(store, hour_of(query.from_ms).start_ms) is not None


def _missing_tables(store: Store) -> list[str]:
    """Return the tables without a folder in a store that has passes."""
    return [table for table in schema.TABLES if not store.hours(table)]


def _without_tables(root: str, missing: Sequence[str], lacking: Sequence[str]) -> list[str]:
    """Return the errors, with those of a missing table merged into one."""
    result = []
    for text in lacking:
        table = next((name for name in missing if text.startswith(f"{root}/{name}/")), None)
        result.append(text if table is None else f"{root}/{table} is missing")
    return result


def _limited(lacking: Iterable[str]) -> list[str]:
    """Return distinct errors, at most a limited number."""
    messages = list(dict.fromkeys(lacking))
    more = len(messages) - MAX_LACKING
    return messages if more <= 0 else [*messages[:MAX_LACKING], f"and {more} more"]


def _span(span_passes: list[PassInfo], times: Times, missed: int, gaps: list[Gap]) -> ReportSpan:
    return ReportSpan(
        from_at=_at(span_passes[0].at_ms),
        to_at=_at(span_passes[-1].at_ms),
        bucket_ms=times.buckets.bucket_ms,
        buckets=times.buckets.size,
        passes=len(span_passes),
        incomplete=sum(not each.complete for each in span_passes),
        failures=list(dict.fromkeys(text for each in span_passes for text in each.failures))[:MAX_FAILURES],
        missed=missed,
        gaps=gaps,
    )


def _missed(store: Store, from_ms: int, to_ms: int, damaged: list[Damaged]) -> dict[int, int]:
    """Return the number of skipped passes before each pass, by its time."""
    batches = read_table(store, schema.PASSES, from_ms, to_ms, damaged=damaged.append, columns=["at_ms", "missed"])
    return {row["at_ms"]: row["missed"] for batch in batches for row in batch.to_pylist() if row["missed"]}


def _at(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc)
