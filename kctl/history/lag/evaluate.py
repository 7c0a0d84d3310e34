"""The rows of a lag report, evaluated in processes started by kctl."""

from __future__ import annotations

from functools import partial

from kctl.history.evaluate.group_ranges import GroupRange
from kctl.history.evaluate.processes import each_share
from kctl.history.lag.plan import LagPlan
from kctl.history.lag.request import LagQuery
from kctl.history.lag.row_batches import read_rows, sorted_rows
from kctl.history.lag.status_rows import LagStatus
from kctl.history.snapshots import read_progress


def evaluate(plan: LagPlan) -> tuple[list[LagStatus], list[str]]:
    """Return the rows, sorted by group, topic and partition, and the distinct read failures."""
    rows: list[LagStatus] = []
    errors: dict[str, None] = {}
    begin_progress(plan)
    for part, failures in each_share(partial(_read_range, plan.query), plan.ranges):
        rows += part
        errors |= dict.fromkeys(failures)
    return sorted_rows(rows), list(errors)


def begin_progress(plan: LagPlan) -> None:
    """Start to count evaluated partitions. Their total is unknown if only some groups or topics are selected."""
    query = plan.query
    is_everything = query.groups.everything and query.topics.everything and query.states is None
    read_progress.begin("evaluating groups", plan.partition_count if is_everything else None, "partitions")


def _read_range(query: LagQuery, groups: GroupRange) -> tuple[list[LagStatus], list[str]]:
    errors: list[str] = []
    rows = [row for chunk in read_rows(query, groups, errors) for row in chunk]
    return rows, errors
