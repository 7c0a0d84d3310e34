"""Rows of a report that need attention. The page collapses the others. Pure.

A row without a verdict (UNKNOWN, or a volume of unknown size) needs attention: it is not known to be healthy.
"""

from __future__ import annotations

from kctl.history.lag.status_rows import PartitionStatus
from kctl.history.report.model import GroupReport, LogDirReport, State, TopicReport
from kctl.history.report.verdict import WEEK_MS, is_due

NEARLY_FULL = 0.95  # share of a volume


def group_needs_attention(row: GroupReport) -> bool:
    """Return True for a group that is not OK, unless it was deleted."""
    return not row.gone and row.now.status != State.OK


def partition_needs_attention(row: PartitionStatus) -> bool:
    """Return True for a partition that is not OK."""
    return row.status != State.OK


def log_dir_needs_attention(row: LogDirReport) -> bool:
    """Return True for a log dir that is offline, stale, nearly full, full within a week, or of unknown usage."""
    used = row.now.disk_used
    is_stale = row.error is not None or row.silent_since is not None
    return is_stale or used is None or used >= NEARLY_FULL or is_due(row.now.full_ms, WEEK_MS)


def topic_needs_attention(row: TopicReport) -> bool:
    """Return True for a topic whose log cleaner is stalled."""
    return bool(row.now.cleaner_stands_still)
