"""Rows of the lag report aggregated by topic and group, and sorted by severity. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from kctl.base.grouping import grouped
from kctl.history.lag.status import Standing, Status, group_status
from kctl.history.lag.status_rows import GroupStatus, LagStatus, LagTotals, PartitionStatus, TopicStatus


def by_topic(rows: Iterable[PartitionStatus]) -> list[TopicStatus]:
    """Return the rows aggregated by group and topic, in order of first appearance."""
    return [
        TopicStatus(
            group=members[0].group,
            state=members[0].state,
            topic=members[0].topic,
            partition_count=len(members),
            at=_latest(members),
            status=_worst(row.status for row in members),
            standing=_least_alarming(members),
            **vars(_totals(members)),
        )
        for members in grouped(rows, lambda row: (row.group, row.topic)).values()
    ]


def by_group(rows: Iterable[PartitionStatus]) -> list[GroupStatus]:
    """Return the rows aggregated by group, in order of first appearance."""
    return [
        GroupStatus(
            group=members[0].group,
            state=members[0].state,
            topic_count=len({m.topic for m in members}),
            partition_count=len(members),
            at=_latest(members),
            status=_worst(row.status for row in members),
            **vars(_totals(members)),
        )
        for members in grouped(rows, lambda row: row.group).values()
    ]


def _totals(rows: Sequence[PartitionStatus]) -> LagTotals:
    lags = _present(row.lag for row in rows)
    return LagTotals(
        lag=sum(lags) if lags else None,
        max_lag=max(lags, default=None),
        lost=_total(row.lost for row in rows),
        control_records=_total(row.control_records for row in rows),
        not_committed=sum(row.committed_offset is None for row in rows),
        unknown=sum(row.committed_offset is not None and row.lag is None for row in rows),
        time_lag_ms=max(_present(row.time_lag_ms for row in rows), default=None),
        time_lag_at_least_ms=max(_present(row.time_lag_at_least_ms for row in rows), default=None),
        consumed_per_s=_total(row.consumed_per_s for row in rows),
        produced_per_s=_total(row.produced_per_s for row in rows),
        catch_up_ms=_last_to_catch_up(rows),
        deletion_ms=min(_present(row.deletion_ms for row in rows), default=None),
        loss_ms=min(_present(row.loss_ms for row in rows), default=None),
        last_commit=max(_present(row.last_commit for row in rows), default=None),
        lag_before=_total(row.lag_before for row in rows),
        worst_status=_worst(row.worst_status for row in rows),
        held_by_transaction=_any(row.held_by_transaction for row in rows),
        ahead=_total(row.ahead for row in rows),
    )


def _latest(rows: Sequence[PartitionStatus]) -> datetime | None:
    return max(_present(row.at for row in rows), default=None)


def _worst(names: Iterable[str | None]) -> str | None:
    """Return the status of a group with these partitions."""
    present = _present(names)
    return group_status(Status[name] for name in present).name if present else None


def _any(values: Iterable[bool | None]) -> bool | None:
    present = _present(values)
    return any(present) if present else None


def _last_to_catch_up(rows: Sequence[PartitionStatus]) -> int | None:
    """Return the longest catch-up time; None if a lagging partition never catches up or its time is unknown."""
    durations = [row.catch_up_ms for row in rows if row.lag is not None]
    present = _present(durations)
    return max(present) if present and len(present) == len(durations) else None


def _least_alarming(rows: Sequence[PartitionStatus]) -> str:
    """Return a topic's standing: active unless all partitions have another standing."""
    standings = {row.standing for row in rows}
    return standings.pop() if len(standings) == 1 else next(s.value for s in Standing if s.value in standings)


_Number = TypeVar("_Number", int, float)
_Value = TypeVar("_Value")


def _present(values: Iterable[_Value | None]) -> list[_Value]:
    return [value for value in values if value is not None]


def _total(values: Iterable[_Number | None]) -> _Number | None:
    present = _present(values)
    return sum(present[1:], present[0]) if present else None


# --- order ------------------------------------------------------------------------------------------------------------


def severity(row: LagStatus) -> tuple[float, ...]:
    """Return a sort key, worst first: status (Burrow's numbers), soonest loss, lost messages, time lag, lag."""
    loss = float("inf") if row.loss_ms is None else float(row.loss_ms)
    age = row.time_lag_ms if row.time_lag_ms is not None else row.time_lag_at_least_ms
    status = Status[row.status] if row.status is not None else Status.UNKNOWN
    rank = 1.5 if status is Status.UNKNOWN else float(status)  # unknown sorts before OK
    return (-rank, loss, -float(row.lost or 0), -float(age or 0), -float(row.lag or 0))


def worst(rows: Iterable[LagStatus], count: int) -> list[LagStatus]:
    """Return the `count` worst rows, worst first."""
    import heapq

    return heapq.nsmallest(count, rows, key=severity)
