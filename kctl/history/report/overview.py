"""The totals over the parts of a report. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from kctl.history.lag.status_rows import GroupStatus
from kctl.history.report.model import LogDirReport, Overview, State, TopicReport

_Number = TypeVar("_Number", int, float)


def overview(
    groups: Sequence[tuple[GroupStatus, bool]], log_dirs: Sequence[LogDirReport], topics: Sequence[TopicReport]
) -> Overview:
    """Return the totals.

    groups: each with a flag for deleted groups, which count only in group_count. Unknown values are not summed.
    """
    current = [group for group, deleted in groups if not deleted]
    by_state = [State[group.status] if group.status else State.UNKNOWN for group in current]
    longest = _max(group.time_lag_at_least_ms for group in current)
    exact = _max(group.time_lag_ms for group in current)
    return Overview(
        group_count=len(groups),
        groups_ok=by_state.count(State.OK),
        groups_warn=by_state.count(State.WARN),
        groups_err=by_state.count(State.ERR),
        groups_unknown=by_state.count(State.UNKNOWN),
        partition_count=sum(group.partition_count for group in current),
        lag=_sum(group.lag for group in current),
        lost=_sum(group.lost for group in current),
        time_lag_ms=longest if exact == longest else None,
        time_lag_at_least_ms=longest,
        next_loss_ms=_min(group.loss_ms for group in current),
        broker_count=len({row.now.broker for row in log_dirs}),
        log_dir_count=len(log_dirs),
        offline_log_dirs=sum(row.error is not None for row in log_dirs),
        topic_count=len(topics),
        replicas_bytes=sum(row.now.size_bytes for row in log_dirs),
        growth_bytes_per_hour=_sum(row.now.growth_bytes_per_hour for row in topics),
        next_full_ms=_min(row.now.full_ms for row in log_dirs),
    )


def _sum(values: Iterable[_Number | None]) -> _Number | None:
    present = [value for value in values if value is not None]
    return sum(present) if present else None


def _max(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _min(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)
