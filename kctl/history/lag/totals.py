"""Rows of the lag report added up for topics and groups, and in order of how bad they are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from kctl.base.grouping import grouped
from kctl.history.lag.status import Standing, Status, group_status
from kctl.history.lag.status_rows import GroupStatus, LagStatus, PartitionStatus, TopicStatus


def by_topic(rows: Iterable[PartitionStatus]) -> list[TopicStatus]:
    """Rows added up per group and topic, in the order of first appearance."""
    return [
        TopicStatus(
            group=members[0].group,
            state=members[0].state,
            topic=members[0].topic,
            standing=_least_alarming(members),
            **_added_up(members)._asdict(),
        )
        for members in grouped(rows, lambda row: (row.group, row.topic)).values()
    ]


def by_group(rows: Iterable[PartitionStatus]) -> list[GroupStatus]:
    """Rows added up per group, in the order of first appearance."""
    return [
        GroupStatus(
            group=members[0].group,
            state=members[0].state,
            topic_count=len({m.topic for m in members}),
            **_added_up(members)._asdict(),
        )
        for members in grouped(rows, lambda row: row.group).values()
    ]


class _AddedUp(NamedTuple):
    partition_count: int
    at: datetime | None
    status: str | None
    lag: int | None
    max_lag: int | None
    lost: int | None
    control_records: int | None
    not_committed: int
    unknown: int
    time_lag_ms: int | None
    time_lag_at_least_ms: int | None
    consumed_per_s: float | None
    produced_per_s: float | None
    catch_up_ms: int | None
    deletion_ms: int | None
    loss_ms: int | None
    last_commit: datetime | None
    lag_before: int | None
    worst_status: str | None
    held_by_transaction: bool | None
    ahead: int | None


def _added_up(rows: Sequence[PartitionStatus]) -> _AddedUp:
    lags = _known(row.lag for row in rows)
    return _AddedUp(
        partition_count=len(rows),
        at=max(_known(row.at for row in rows), default=None),
        status=_worst(row.status for row in rows),
        lag=sum(lags) if lags else None,
        max_lag=max(lags, default=None),
        lost=_total(row.lost for row in rows),
        control_records=_total(row.control_records for row in rows),
        not_committed=sum(row.committed_offset is None for row in rows),
        unknown=sum(row.committed_offset is not None and row.lag is None for row in rows),
        time_lag_ms=max(_known(row.time_lag_ms for row in rows), default=None),
        time_lag_at_least_ms=max(_known(row.time_lag_at_least_ms for row in rows), default=None),
        consumed_per_s=_total(row.consumed_per_s for row in rows),
        produced_per_s=_total(row.produced_per_s for row in rows),
        catch_up_ms=_last_to_catch_up(rows),
        deletion_ms=min(_known(row.deletion_ms for row in rows), default=None),
        loss_ms=min(_known(row.loss_ms for row in rows), default=None),
        last_commit=max(_known(row.last_commit for row in rows), default=None),
        lag_before=_total(row.lag_before for row in rows),
        worst_status=_worst(row.worst_status for row in rows),
        held_by_transaction=_any(row.held_by_transaction for row in rows),
        ahead=_total(row.ahead for row in rows),
    )


def _worst(names: Iterable[str | None]) -> str | None:
    """Of partitions' verdicts, their group's."""
    known = _known(names)
    return group_status(Status[name] for name in known).name if known else None


def _any(values: Iterable[bool | None]) -> bool | None:
    known = _known(values)
    return any(known) if known else None


def _last_to_catch_up(rows: Sequence[PartitionStatus]) -> int | None:
    """None as soon as one of those that are behind never catches up, or nobody knows."""
    found = [row.catch_up_ms for row in rows if row.lag is not None]
    known = _known(found)
    return max(known) if known and len(known) == len(found) else None


def _least_alarming(rows: Sequence[PartitionStatus]) -> str:
    """Of a topic's partitions: active unless all are something else."""
    found = {row.standing for row in rows}
    return found.pop() if len(found) == 1 else next(s.value for s in Standing if s.value in found)


_Number = TypeVar("_Number", int, float)
_Value = TypeVar("_Value")


def _known(values: Iterable[_Value | None]) -> list[_Value]:
    return [value for value in values if value is not None]


def _total(values: Iterable[_Number | None]) -> _Number | None:
    known = _known(values)
    return sum(known[1:], known[0]) if known else None


# --- order ------------------------------------------------------------------------------------------------------------


def severity(row: LagStatus) -> tuple[float, ...]:
    """What sorts the worst row first: by status (Burrow's numbers), soonest loss, messages lost, time lag, lag."""
    loss = float("inf") if row.loss_ms is None else float(row.loss_ms)
    age = row.time_lag_ms if row.time_lag_ms is not None else row.time_lag_at_least_ms
    status = Status[row.status] if row.status is not None else Status.UNKNOWN
    rank = 1.5 if status is Status.UNKNOWN else float(status)  # what cannot be judged comes before what is well
    return (-rank, loss, -float(row.lost or 0), -float(age or 0), -float(row.lag or 0))


def worst(rows: Iterable[LagStatus], count: int) -> list[LagStatus]:
    """The `count` worst rows, the worst first."""
    import heapq

    return heapq.nsmallest(count, rows, key=severity)
